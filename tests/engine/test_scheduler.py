"""Several processes give the findings of one, and a file that ends its process fails alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine import partition
from torchrepro_lint.engine.checker import Checker, CheckResult, check
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.process_pool import FORKS
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.engine.run import prepare
from torchrepro_lint.trace.traces import Traces

Maker = Callable[[Mapping[str, str | bytes]], Path]

pytestmark = pytest.mark.skipif(not FORKS, reason="processes are not forked here")

COUNT = 60
MODEL = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n"
TRAIN = (
    "import torch\nfrom torch.utils.data import DataLoader\n\nfrom model_{0} import Net\n\n"
    'if __name__ == "__main__":\n    net = Net()\n    for x in DataLoader([1], shuffle=True, num_workers=2):\n'
    '        net(x)\n    torch.save(net, "net.pt")\n'
)


@pytest.fixture
def tree(project: Maker) -> tuple[Checker, dict[str, ParsedFile]]:
    files = {f"model_{number}.py": MODEL for number in range(COUNT)}
    files |= {f"train_{number}.py": TRAIN.format(number) for number in range(COUNT)}
    (found,) = plan([str(project(files))], ConfigOptions()).trees
    return prepare(found, honour_comments=True)[0], read_tree(found).files


def _checked(tree: tuple[Checker, dict[str, ParsedFile]], jobs: int) -> dict[str, CheckResult]:
    checker, files = tree
    return partition.check_tree(checker, Partition(checker, files), jobs)


def test_any_number_of_processes_says_the_same_in_the_same_order(tree: tuple[Checker, dict[str, ParsedFile]]) -> None:
    alone = _checked(tree, 1)
    assert sum(len(each.findings) for each in alone.values()) == 2 * COUNT
    for jobs in (2, 3, 8):
        assert list(_checked(tree, jobs).items()) == list(alone.items())


def test_stored_facts_say_the_same(tree: tuple[Checker, dict[str, ParsedFile]], tmp_path: Path) -> None:
    checker, _ = tree
    means = ReadOptions(cached=True, directory=str(tmp_path / "caches"))
    for _ in range(2):
        stored = read_tree(checker.tree, options=means).files
    assert _checked((checker, stored), 2) == _checked(tree, 1)


def test_a_file_that_ends_its_process_is_named_and_the_others_are_checked(
    tree: tuple[Checker, dict[str, ParsedFile]], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, ours = _checked(tree, 1), os.getpid()

    def deadly(checker: Checker, path: str, reading: ParsedFile, project: Traces) -> CheckResult:
        if path == "train_30.py":
            assert os.getpid() != ours
            os.kill(os.getpid(), signal.SIGKILL)
        return check(checker, path, reading, project)

    monkeypatch.setattr(partition, "check", deadly)
    found = _checked(tree, 2)
    (dead,) = found.pop("train_30.py").findings
    assert (dead.code, dead.message) == ("TRL001", "cannot be checked: its process was ended by SIGKILL")
    del alone["train_30.py"]
    assert found == alone
