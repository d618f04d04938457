"""Trace fragments: a run that reuses fragments of others has the trace that it would have alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_file import facts_of
from page_examples import examples
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.domain.programs import all_programs
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.events import CallFrame, Target, TraceMemoTables
from torchrepro_lint.trace.traces import Traces

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([*(_ROOT / "rules").glob("TRL[1-9]*.md"), *(_ROOT / "tests/rules").glob("TRL[1-9]*.md")])

# Three programs; what the second module leaves waiting is run by some of them, and one comes to the modules in another order.
_FILES = {
    "kit/__init__.py": "from kit import draws, nets\n",
    "kit/draws.py": "import torch\n\ndef draw():\n    return torch.rand(3)\n\nFIRST = draw()\n",
    "kit/nets.py": (
        "import torch\nfrom kit.draws import draw\n\n"
        "def numbers():\n    yield draw()\n\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return draw() + x\n\n"
        "NET = torch.nn.Sequential(Net())\nLEFT = numbers()\n"
    ),
    "one.py": "import kit\n\nkit.nets.NET(1)\n",
    "two.py": "from kit import nets\n\nfor each in nets.LEFT:\n    print(each)\n",
    "three.py": "def main():\n    from kit.nets import NET\n    from kit.draws import draw\n    NET(draw())\n\nmain()\n",
    "four.py": "from kit.draws import FIRST\n\nprint(FIRST)\n",
}


def _project(files: dict[str, str]) -> Traces:
    facts = {path: facts_of(text) for path, text in files.items() if path.endswith(".py")}
    return Traces(facts, Settings(), catalogue.load("2.13"))


def _runs(files: dict[str, str], entries: list[Entry]) -> list[Trace]:
    """Runs of some entry points, one after the other."""
    project = _project(files)
    return [Trace.from_entry(entry, project.resolver, project.database.part(TraceMemoTables)) for entry in entries]


def _expect_the_same(files: dict[str, str]) -> int:
    entries = list(_project(files).entries)
    for entry, run in zip(entries, _runs(files, entries), strict=True):
        (alone,) = _runs(files, [entry])
        assert run.trace_events == alone.trace_events
        assert run.call_edges == alone.call_edges
        assert run.functions == alone.functions
    return len(entries)


def test_programs_that_import_the_same_modules_run_as_they_would_alone() -> None:
    assert _expect_the_same(_FILES) == 4


def test_what_was_done_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated: list[bool] = []
    repeats = Trace._replay

    def noted(self: Trace, target: Target, way: tuple[CallFrame, ...]) -> bool:
        repeated.append(repeats(self, target, way))
        return repeated[-1]

    monkeypatch.setattr(Trace, "_replay", noted)
    _ = all_programs(_project(_FILES))
    assert any(repeated)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem[:6]}")
def test_programs_of_the_pages_run_as_they_would_alone(page: Path) -> None:
    for each in examples(page)[::3]:
        if sum(path.endswith(".py") for path in each.files) > 2:
            _expect_the_same(dict(each.files))
