"""Findings are stored by component: only components in which something changed are checked again, and the outcome is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.engine import partition
from torchrepro_lint.engine.checker import CheckResult
from torchrepro_lint.engine.store.finding_store import FindingStore

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

_TRAIN = "import torch\n\nfrom {0}.nets import build\n\nnet = build()\nnet(torch.ones(1, 3)).sum().backward()\n"
_NETS = "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n"
# Two components: neither imports the other.
FILES = {
    "pyproject.toml": "",
    "one/__init__.py": "",
    "one/nets.py": _NETS,
    "one/train.py": _TRAIN.format("one"),
    "two/__init__.py": "",
    "two/nets.py": _NETS,
    "two/train.py": _TRAIN.format("two"),
    "broken.py": "x = (\n",
}
ALL = {path for path in FILES if path.endswith(".py")}
ONE = {path for path in ALL if path.startswith("one/")}


@pytest.fixture(autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHREPRO_LINT_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The files that were checked; to be cleared between runs."""
    found: set[str] = set()
    check = partition.check

    def record(checker: object, path: str, *rest: object) -> CheckResult:
        found.add(path)
        return check(checker, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(partition, "check", record)
    return found


def _ran(lint: Lint, checked: set[str], *options: str) -> tuple[Ran, set[str]]:
    """The outcome of a run, which must be that of a run without a cache, and the files that it checked."""
    checked.clear()
    ran = lint("--output-format", "full", *options)
    looked_at = set(checked)
    assert ran == lint("--output-format", "full", "--no-cache", *options)
    return ran, looked_at


def test_only_the_component_of_a_changed_file_is_checked_again(project: Maker, lint: Lint, checked: set[str]) -> None:
    folder = project(FILES)
    first, looked_at = _ran(lint, checked)
    assert first.out.count("TRL101") == 2
    assert looked_at == ALL
    Path(folder, "one/nets.py").write_text(_NETS.replace("return", "torch.manual_seed(0)\n    return"))
    changed, looked_at = _ran(lint, checked)
    assert changed.out.count("TRL101") == 1
    assert looked_at == ONE | {"broken.py"}
    Path(folder, "one/nets.py").write_text(_NETS)
    assert _ran(lint, checked) == (first, ONE | {"broken.py"})


def test_files_of_a_component_are_checked_when_they_are_first_given(
    project: Maker, lint: Lint, checked: set[str]
) -> None:
    project(FILES)
    assert _ran(lint, checked, "two/train.py")[1] == {"two/train.py"}
    assert _ran(lint, checked, "two")[1] == ALL - ONE - {"broken.py", "two/train.py"}
    assert _ran(lint, checked)[1] == ONE | {"broken.py"}


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ("[tool.torchrepro-lint]\nentry-points = ['one/train.py']\n", ""),
        ("[tool.torchrepro-lint]\ntorch-version = '1.13'\n", ""),
        ("[project]\nname = 'x'\nversion = '1'\ndependencies = ['torch>=2.5']\n", ""),
        ("", "--ignore=TRL101"),
        ("", "--ignore-noqa"),
        ("", "--extend-select=TRL406"),
    ],
)
def test_other_settings_and_options_check_everything(
    project: Maker, lint: Lint, checked: set[str], settings: str, option: str
) -> None:
    folder = project(FILES)
    _ran(lint, checked)
    Path(folder, "pyproject.toml").write_text(settings)
    assert _ran(lint, checked, *([option] if option else []))[1] == ALL


def test_a_new_file_is_seen_by_those_that_import_it(project: Maker, lint: Lint, checked: set[str]) -> None:
    folder = project({**FILES, "one/train.py": "import seeding\n" + FILES["one/train.py"]})
    assert _ran(lint, checked)[0].out.count("TRL101") == 2
    Path(folder, "seeding.py").write_text("import torch\n\ntorch.manual_seed(0)\n")
    assert _ran(lint, checked)[0].out.count("TRL101") == 1
    Path(folder, "seeding.py").unlink()
    assert _ran(lint, checked)[0].out.count("TRL101") == 2


def test_files_come_go_and_break_in_one_component(project: Maker, lint: Lint, checked: set[str]) -> None:
    folder = project(FILES)
    _ran(lint, checked)
    Path(folder, "one/data.py").write_text("import torch\n\nSIZE = 3\n")
    assert _ran(lint, checked)[1] == ONE | {"one/data.py", "broken.py"}
    Path(folder, "one/nets.py").write_text("def build(:\n")
    assert _ran(lint, checked)[1] == ONE | {"one/data.py", "broken.py"}
    Path(folder, "one/nets.py").unlink()
    assert _ran(lint, checked)[1] == {"broken.py"}  # nothing was known of it
    Path(folder, "one/data.py").unlink()
    assert _ran(lint, checked)[1] == {"one/__init__.py", "one/train.py", "broken.py"}
    Path(folder, "three.py").write_text("from one import train\n")
    assert _ran(lint, checked)[1] == {"one/__init__.py", "one/train.py", "broken.py", "three.py"}


def test_what_broke_off_is_tried_again(
    project: Maker, lint: Lint, checked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project(FILES)

    def fail(*_: object) -> CheckResult:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(partition, "check", fail)
        assert "cannot be checked" in lint("one").out
    ran, looked_at = _ran(lint, checked, "one")
    assert "cannot be checked" not in ran.out
    assert looked_at == ONE


def test_a_damaged_entry_is_checked_again(
    project: Maker, lint: Lint, checked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(FILES)
    _ran(lint, checked)
    Path(folder, "broken.py").write_text("y = (\n")
    monkeypatch.setattr(FindingStore, "_read", lambda *_: {"one/nets.py": ["Unknown", 1]})
    assert _ran(lint, checked)[1] == ALL


_LOADER = (
    "import torch\nfrom torch.utils.data import DataLoader\n\n"
    "for x in DataLoader(list(range(9)), batch_size=2, shuffle=True):\n    print(x)\n"
)


def test_a_folder_of_another_component_may_hide_a_library(project: Maker, lint: Lint, checked: set[str]) -> None:
    """Whether ``torch/`` in the project is the library depends on which of its folders there are."""
    folder = project({"pyproject.toml": "", "torch/vision/a.py": "X = 1\n", "app/train.py": _LOADER})
    before, _ = _ran(lint, checked)
    Path(folder, "torch/utils").mkdir()
    Path(folder, "torch/utils/b.py").write_text("Y = 1\n")
    assert _ran(lint, checked)[0] != before


def test_a_text_that_names_a_class_may_lead_elsewhere(project: Maker, lint: Lint, checked: set[str]) -> None:
    files = {
        "pyproject.toml": "",
        "lib/tool.py": "",
        "lib/pkg/model.py": "import torch\n\n\ndef build():\n    return torch.randn(3)\n",
        "lib/app/train.py": "import pydoc\nimport torch\n\ntorch.save(pydoc.locate('pkg.model.build')(), 'x.pt')\n",
    }
    folder = project(files)
    before, _ = _ran(lint, checked)
    Path(folder, "pkg/sub").mkdir(parents=True)
    Path(folder, "pkg/sub/other.py").write_text("Y = 1\n")
    assert "TRL101" in before.out
    assert _ran(lint, checked)[0] != before
