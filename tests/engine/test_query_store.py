"""Query answers that a run takes over from the run before: all that a change leaves valid, and no wrong finding."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.engine.store.cache import Cache
from torchrepro_lint.trace.traces import Traces

Maker = Callable[[Mapping[str, str]], Path]
Lint = Callable[..., Ran]

LAYERS = """\
import torch


class Pick(torch.nn.Module):
    def forward(self, x, index):
        return torch.index_select(x, 0, index)
"""
DATA = """\
import random
import torch
from torch.utils.data import DataLoader


def seed_worker(number):
    random.seed(0)


def loader(data):
    return DataLoader(data, num_workers=2, worker_init_fn=seed_worker, generator=torch.Generator().manual_seed(0))
"""
TRAIN = """\
import torch
from data import loader
from layers import Pick

if __name__ == "__main__":
    net = Pick().cuda()
    for x, index in loader([1]):
        net(x, index).sum().backward()
"""
FILES = {"layers.py": LAYERS, "data.py": DATA, "train.py": TRAIN, "notes.py": "def note(text):\n    return text\n"}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose entry points are run, as they are."""
    found: list[str] = []
    find = Traces.traces_from

    def noted(self: Traces, entries: tuple[object, ...]) -> Iterator[object]:
        found.append(entries[0].path)  # type: ignore[attr-defined]
        return find(self, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(Traces, "traces_from", noted)
    return found


@pytest.fixture(autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHREPRO_LINT_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))


def test_a_program_that_a_change_does_not_concern_is_not_run_again(project: Maker, lint: Lint, runs: list[str]) -> None:
    folder = project(FILES)
    assert "TRL401" in lint().out
    assert runs == ["train.py"]
    Path(folder, "notes.py").write_text("import torch\n\ndef pick(x, index):\n    return x.index_select(0, index)\n")
    assert "TRL401" in lint("notes.py").out
    assert runs == ["train.py"]
    assert lint("notes.py") == lint("notes.py", "--no-cache")


def test_a_program_that_a_change_concerns_is_run_again(project: Maker, lint: Lint, runs: list[str]) -> None:
    folder = project(FILES)
    assert "TRL401" in lint("layers.py").out
    Path(folder, "train.py").write_text(TRAIN.replace(".cuda()", ""))
    assert lint("layers.py").out == ""
    assert runs == ["train.py", "train.py"]


def test_what_seeds_workers_is_known_in_the_next_run(project: Maker, lint: Lint) -> None:
    folder = project(FILES)
    assert "TRL307" in lint("data.py").out
    Path(folder, "notes.py").write_text("x = 1\n")
    assert "TRL307" in lint("data.py").out
    Path(folder, "data.py").write_text("# One line more.\n" + DATA)
    assert "data.py:8:" in lint("data.py").out
    Path(folder, "data.py").write_text(DATA.replace("worker_init_fn=seed_worker, ", ""))
    assert "TRL307" not in lint("data.py").out


def test_other_settings_take_over_nothing(project: Maker, lint: Lint, runs: list[str]) -> None:
    folder = project({**FILES, "other.py": TRAIN.replace('if __name__ == "__main__":', "def run():")})
    lint()
    Path(folder, "pyproject.toml").write_text("[tool.torchrepro-lint]\nentry-points = ['other.py']\n")
    lint()
    assert runs == ["train.py", "other.py", "train.py"]


def test_a_text_from_standard_input_leaves_what_is_stored(project: Maker, lint: Lint, tmp_path: Path) -> None:
    project(FILES)
    lint()
    stored = {path: path.read_bytes() for path in _cached()}
    assert len(stored) == 4  # facts, answers, findings, the outcome of the run
    piped = lint(
        "-", "--stdin-filename", "layers.py", stdin=LAYERS.replace("torch.index_select(x,", "x.index_select(").encode()
    )
    assert "TRL401" in piped.out
    assert {path: path.read_bytes() for path in _cached()} == stored


def test_a_few_changed_files_are_stored_when_something_was_worked_out_anew(project: Maker, lint: Lint) -> None:
    """What is stored stays the ground on which the next runs begin: each sees all that has changed since."""
    folder = project(FILES)
    lint()
    stored = {path: path.read_bytes() for path in _cached()}
    Path(folder, "notes.py").write_text(f"{DATA}\n# Nothing runs it.\n".replace("loader", "other"))
    assert "TRL307" in lint("notes.py").out
    Path(folder, "data.py").write_text(f"# One line more.\n{DATA}")
    for asked in ("notes.py", "data.py", "train.py", "layers.py"):
        assert lint(asked) == lint(asked, "--no-cache")
    Path(folder, "notes.py").write_text(FILES["notes.py"])
    Path(folder, "data.py").write_text(DATA)
    assert lint() == lint("--no-cache")
    Path(folder, "train.py").write_text(TRAIN.replace(".cuda()", ""))
    assert lint("layers.py").out == ""
    assert _facts() not in stored.values()


def test_a_change_that_nothing_rests_on_rewrites_nothing(project: Maker, lint: Lint) -> None:
    folder = project(FILES)
    lint()
    facts = _facts()
    for number in range(3):
        Path(folder, "notes.py").write_text(f"def note(text):\n    return {number}\n")
        assert lint("notes.py") == lint("notes.py", "--no-cache")
    assert _facts() == facts


def test_many_changed_files_are_stored(project: Maker, lint: Lint) -> None:
    folder = project({f"module_{number}.py": "x = 1\n" for number in range(12)})
    lint()
    facts = _facts()
    for number in range(9):
        Path(folder, f"module_{number}.py").write_text("x = 2\n")
    lint()
    assert _facts() != facts


def test_many_changed_files_are_stored_once_and_answers_with_them(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project({**FILES, **{f"module_{number}.py": "x = 1\n" for number in range(12)}})
    written: list[str] = []
    replace = Cache.replace

    def noted(self: Cache, name: str, data: bytes) -> bool:
        written.append(name)
        return replace(self, name, data)

    monkeypatch.setattr(Cache, "replace", noted)
    lint()
    assert written.count("facts") == 1
    for number in range(9):
        Path(folder, f"module_{number}.py").write_text("x = 2\n")
    lint("notes.py")
    assert (written.count("facts"), sum(name.startswith("answers-") for name in written)) == (2, 2)


PART = """from layers import Pick


class Part{0}(Pick):
    def go(self, value):
        return self.forward(value, {0})


def start(part=None):
    part = part or Part{0}()
    return part.go(1)
"""


@pytest.mark.parametrize("runs", [5, pytest.param(20, marks=pytest.mark.long)])
def test_tables_are_taken_up_by_the_next_runs(project: Maker, lint: Lint, runs: int) -> None:
    files = {**FILES, **{f"part_{number}.py": PART.format(number) for number in range(50)}}
    starts = "".join(f"import part_{number}\npart_{number}.start()\n" for number in range(50))
    files["train.py"] = starts + TRAIN
    folder = project(files)
    lint()
    stored = {path.name.partition("-")[0] for path in _cached()}
    assert stored > {"above", "calls", "imported", "outcomes", "runs"}
    dice = random.Random(5)
    for _ in range(runs):
        path = dice.choice(["part_7.py", "part_30.py", "layers.py", "train.py", "data.py"])
        files[path] = _changed(files[path], dice)
        Path(folder, path).write_text(files[path])
        asked = dice.choice(["part_7.py", "layers.py", "train.py"])
        assert lint(asked, "--verbose") == lint(asked, "--verbose", "--no-cache")


def _facts() -> bytes:
    (found,) = (path for path in _cached() if path.name == "facts")
    return found.read_bytes()


def _cached() -> list[Path]:
    import os

    return sorted(path for path in Path(os.environ["TORCHREPRO_LINT_CACHE_DIR"]).glob("*/*"))


@pytest.mark.parametrize("seed", range(3))
def test_runs_after_changes_say_what_a_run_without_a_cache_says(project: Maker, lint: Lint, seed: int) -> None:
    folder = project(FILES)
    dice = random.Random(seed)
    texts = dict(FILES)
    for _ in range(12):
        path = dice.choice(sorted(texts))
        texts[path] = _changed(texts[path], dice)
        Path(folder, path).write_text(texts[path])
        asked = [dice.choice(sorted(texts))] if dice.randrange(3) else []
        assert lint(*asked, "--verbose") == lint(*asked, "--verbose", "--no-cache")


def _changed(text: str, dice: random.Random) -> str:
    """A text after one of some changes, most of which matter to other files."""
    changes = [
        ("", "# A line more.\n"),
        ("import torch\n", "import torch\n\ntorch.manual_seed(0)\n"),
        (".cuda()", ""),
        ("Pick().", "Pick().cuda()."),
        ("class Pick(torch.nn.Module)", "class Pick(torch.nn.Identity)"),
        ("def note(", "def note2("),
        ("random.seed(0)", "random.seed(number)"),
        ("num_workers=2", "num_workers=0"),
        ("from layers import Pick", "from layers import *"),
        ("worker_init_fn=seed_worker, ", ""),
        ("def forward(self, x, index):", "@torch.no_grad()\n    def forward(self, x, index):"),
        ("if __name__", "x = 1\nif __name__"),
    ]
    fitting = [each for each in changes if each[0] in text]
    old, new = dice.choice(fitting)
    return text.replace(old, new, 1) if old else new + text
