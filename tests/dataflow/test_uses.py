"""Positions of expressions are cached for few files; the attributes that a file reads are known without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_file import facts_of, project_of
from torchrepro_lint.dataflow import uses
from torchrepro_lint.dataflow.uses import DefUse, attributes_read, may_read
from torchrepro_lint.syntax.nodes import Attribute


def test_the_spots_of_few_files_are_kept_and_made_again_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DefUse.spots.definition, "lru", 1)  # type: ignore[attr-defined]
    texts = {f"{word}.py": f"{word} = {word}({word})\n" for word in "abc"}
    found = project_of(texts).taint.uses
    first = found.spots("a.py")
    found.spots("b.py")
    assert found.spots("a.py") is first
    found.spots("c.py")
    found.spots("b.py")
    again = found.spots("a.py")
    assert again is not first
    assert list(again.items()) == list(first.items())


FILES = sorted((Path(uses.__file__).parent / "taint").glob("*.py"))

READ = """
a.b = c.d
e.f += g().h.i
with j.k as l.m, n:
    pass
class O(p.q):
    @r.s
    def t(self, u=v.w):
        for x.y in self.z:
            [aa.ab for aa.ac in ad.ae if (af := ag.ah)]
            lambda: ai.aj
            (ak.al, am[an.ao]) = 1, 2
"""


def test_the_attributes_that_are_read() -> None:
    read = [each.name if isinstance(each, Attribute) else each.path[-1] for each in attributes_read(facts_of(READ))]
    assert sorted(read) == sorted(["d", "i", "h", "k", "q", "s", "w", "z", "ac", "ae", "ah", "ab", "aj", "al", "ao"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_reads_an_attribute_that_its_summary_does_not_have(path: Path) -> None:
    facts = facts_of(path.read_text(encoding="utf-8"))
    for each in attributes_read(facts):
        for word in (each.name,) if isinstance(each, Attribute) else each.path:
            assert may_read(facts.summary, word)


@pytest.mark.parametrize("word", ["d", "i", "h", "k", "q", "s", "w", "z", "ac", "ae", "ah", "ab", "aj", "al", "ao"])
def test_a_summary_has_the_attributes_that_are_read(word: str) -> None:
    assert may_read(facts_of(READ).summary, word)


@pytest.mark.parametrize(
    "text",
    ["x.a.b", "x.a.b()", "x().a", "x().a()", "f(x.a.b)", "[y for x.a.b in z]", "[y for (x.a, b) in z]", "super().a()"],
)
def test_a_summary_has_an_attribute_from_which_others_are_read(text: str) -> None:
    summary = facts_of(f"class C:\n    def f(self, x, y, z):\n        {text}\n").summary
    assert may_read(summary, "a")
    assert not may_read(summary, "c")
