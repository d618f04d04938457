"""Whether anything of a file is written like a set."""

from __future__ import annotations

import pytest

from one_file import facts_of


@pytest.mark.parametrize(
    "text",
    [
        "x = {1, 2}",
        "f({each for each in y})",
        "x = set(y)",
        "x = y.union(z)",
        "class A(B):\n    def f(self):\n        return super().difference(x)",
        "x |= y",
        "def f():\n    x |= y",
        "def f(x: set): ...",
        "def f(x: t.Optional[t.Set[str]]): ...",
        "def f() -> frozenset[str]: ...",
        "class A:\n    x: set = y",
        "x = defaultdict(set)",
        "x = t.cast(t.Set[str], y)",
        "from typing import Set as S\n\ndef f(x: S): ...",
        "f = lambda x: {x, y}",
        "with a as b:\n    for c in d:\n        try:\n            e = {f}\n        finally: ...",
    ],
)
def test_what_is_written_like_a_set(text: str) -> None:
    assert facts_of(text + "\n").summary.sets


@pytest.mark.parametrize(
    "text",
    [
        "x = {1: 2}",
        "f([each for each in y])",
        "x = {each: 1 for each in y}",
        "x.settle = y.setdefault(1, 2)",
        "x += y",
        "x = y | z",
        "def f(x: dict[str, int]) -> tuple[int, ...]: ...",
        "x: 'Settings' = 1",
        "# set()\nx = 'set()'",
    ],
)
def test_what_is_not(text: str) -> None:
    assert not facts_of(text + "\n").summary.sets
