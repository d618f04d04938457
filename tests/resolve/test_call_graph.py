"""The call graph: what calls pass for a parameter, also through functions that hand their arguments on."""

from __future__ import annotations

import pytest

from tests.one_file import NAME, project_of
from torchrepro_lint.resolve.call_graph import CallGraph
from torchrepro_lint.syntax.nodes import Constant, Expression

_WIDTH = 4


def _handing_on(levels: int, star: str) -> str:
    """Functions of which each calls all functions of the next level with the arguments that it gets."""
    lines = ["def end(value): ...\n"]
    for level in range(levels):
        called = [f"f{level - 1}_{number}" for number in range(_WIDTH)] if level else ["end"]
        for number in range(_WIDTH):
            lines.append(f"def f{level}_{number}({star}rest):\n")
            lines.extend(f"    {each}({star}rest)\n" for each in called)
    passed = "value=1" if star == "**" else "1"
    return "".join([*lines, *(f"f{levels - 1}_{number}({passed})\n" for number in range(_WIDTH))])


def _literal(passed: tuple[str, Expression | None]) -> object:
    assert isinstance(passed[1], Constant)
    return passed[1].value


@pytest.mark.parametrize("star", ["*", "**"])
def test_functions_that_hand_on_their_arguments_are_asked_once(star: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = project_of({NAME: _handing_on(3, star)}).resolver
    (end,) = names.functions(f"{NAME}:end")
    asked: list[str] = []
    of = CallGraph.of
    monkeypatch.setattr(CallGraph, "of", lambda self, name, function: [asked.append(name), of(self, name, function)][1])
    passed = list(names.call_graph.passed(f"{NAME}:end", end, 0))
    assert list(map(_literal, passed)) == [1] * _WIDTH
    assert len(asked) == len(set(asked)) == 1 + 3 * _WIDTH


def test_arguments_that_are_handed_on_in_a_circle_come_to_an_end() -> None:
    names = project_of(
        {NAME: "def end(value): ...\ndef f(first, *rest):\n    f(*rest)\n    end(*rest)\nf(0, 1)\n"}
    ).resolver
    (end,) = names.functions(f"{NAME}:end")
    assert 1 in map(_literal, names.call_graph.passed(f"{NAME}:end", end, 0))
