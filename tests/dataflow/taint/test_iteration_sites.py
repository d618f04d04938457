"""The prefilter of iteration sites is sound: it drops no iteration over a set."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_file import facts_of, project_of
from torchrepro_lint.dataflow import taint
from torchrepro_lint.dataflow.taint.loops import iteration_sites
from torchrepro_lint.dataflow.taint.sources import may_iterate, set_orders
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.syntax.use_def import UseDefIndex

FILES = sorted(Path(taint.__file__).parent.glob("*.py"))

TAKEN = """
for a in b:
    [c for d in e for f in g if h]
    i, j = k
    l += m
while n:
    print(*o, *list(p))
class Q(tuple(r)):
    s = [*t]
    def u(self, v=list(w)):
        yield from x
        (y := enumerate(z))[iter(aa)] = zip(ab, ac)
        return lambda: sorted(",".join(ad))
@ae(list(af))
def ag():
    with chain(ah) as ai, aj(*ak):
        match next(al):
            case _ if dict(am):
                del an[tuple(ao)]
"""


def _left_out(facts: SyntaxTree) -> list[str]:
    among = {*iteration_sites(facts)}
    return [str(node) for node, spot in UseDefIndex(facts).items() if may_iterate(node, spot) and node not in among]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_of_our_own_files_is_left_out(path: Path) -> None:
    assert not _left_out(facts_of(path.read_text(encoding="utf-8")))


def test_nothing_that_goes_along_anything_is_left_out() -> None:
    facts = facts_of(TAKEN)
    taken = {
        root
        for node, spot in UseDefIndex(facts).items()
        if may_iterate(node, spot)
        for root in getattr(node, "roots", ())
    }
    words = {root.rpartition(".")[2].lstrip(":?") for root in taken}
    assert words == {*"begkmnoprtwxz", "aa", "ab", "ac", "ad", "af", "ah", "ak", "al", "am", "ao"}
    assert not _left_out(facts)


def test_a_file_without_sets_has_no_spots_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    project = project_of({"a.py": "import torch\n\nfor x in list(y):\n    print(x)\n"})
    monkeypatch.setattr(UseDefIndex, "__init__", None)
    assert not list(set_orders(project, "a.py"))
