"""Inferred types do not depend on the order of queries, nor on a query that hit a limit."""

from __future__ import annotations

import random
import sys

import pytest

from infer_sources import SOURCES
from infer_tensor_sources import TENSOR_SOURCES
from one_file import NAME, project_of
from torchrepro_lint.call_stack import with_deep_stack
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.syntax.nodes import Expression
from torchrepro_lint.syntax.visitor import bodies, expressions, statements, subexpressions

# Values that grow from round to round, and circles between functions, loops and attributes.
_CIRCLES = """
import torch


def grown(n, x):
    while n:
        x = x.unsqueeze(0)
        n = n - 1
    return x


def even(n, x):
    return x if n == 0 else odd(n - 1, x.unsqueeze(0))


def odd(n, x):
    return x[0] if n == 0 else even(n - 1, x)


def nested(n):
    found = []
    for _ in range(n):
        found = [found]
    return found


class Net:
    def __init__(self):
        self.state = torch.zeros(3)
        self.count = 0

    def step(self, x):
        self.state = torch.stack([self.state, x])
        self.count = self.count + 1
        return self.last()

    def last(self):
        return self.state if self.count else self.step(torch.zeros(3))


def run():
    net = Net()
    a, b = 1, torch.zeros(2, 3)
    for i in range(3):
        a, b = b, a
        c = grown(i, b)
    return even(3, torch.zeros(1)), odd(2, c), net.step(a), nested(4)
"""
_ALL = {**SOURCES, **TENSOR_SOURCES, "circles": _CIRCLES}


def _asked(text: str) -> list[Expression]:
    project = project_of({NAME: text})
    found = [
        each
        for body in bodies(project.files[NAME])
        for statement in statements(body)
        for expression in expressions(statement)
        for each in subexpressions(expression)
    ]
    return list({(each.start, each.end): each for each in found}.values())


def _answers(text: str, order: list[int]) -> dict[int, AbstractValue]:
    kinds, asked = type_inference(project_of({NAME: text})), _asked(text)
    return {number: kinds.of(NAME, asked[number])._replace(constructor_call=None) for number in order}


@pytest.mark.parametrize("title", sorted(_ALL))
def test_answers_do_not_depend_on_the_order_of_questions(title: str) -> None:
    text = _ALL[title]
    order = list(range(len(_asked(text))))
    first = _answers(text, order)
    assert _answers(text, order[::-1]) == first
    for seed in range(3):
        random.Random(seed).shuffle(order)
        assert _answers(text, order) == first


def test_a_question_that_leads_too_deep_does_no_harm_and_is_answered_on_a_larger_stack(
    capfd: pytest.CaptureFixture[str],
) -> None:
    calls = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(40))
    text = f"{calls}def f40(x):\n    return {{1}}\nf0(1)\n{{2}}\n"
    project = project_of({NAME: text})
    kinds, (deep, plain) = type_inference(project), [each.value for each in project.files[NAME].body[-2:]]  # type: ignore[union-attr]
    limit = sys.getrecursionlimit()
    depth = len(_frames())
    sys.setrecursionlimit(depth + 45)
    try:
        with pytest.raises(RecursionError):
            kinds.of(NAME, deep)
        found = with_deep_stack(lambda: kinds.of(NAME, deep))
        assert sys.getrecursionlimit() == depth + 45
    finally:
        sys.setrecursionlimit(limit)
    fresh = type_inference(project_of({NAME: text}))
    assert found == fresh.of(NAME, fresh.project.files[NAME].body[-2].value)  # type: ignore[union-attr]
    assert kinds.of(NAME, plain).kind == "set"
    assert kinds.solver.nesting == 0
    assert capfd.readouterr() == ("", "")


def _frames() -> list[object]:
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def test_an_attribute_of_a_class_is_not_that_of_an_object() -> None:
    text = "import enum\n\n\nclass Mode(enum.Enum):\n    FAST = 'fast'\n\n    def me(self):\n        return self.FAST\n\n\nMode.FAST\nMode.me\n"
    project = project_of({NAME: text})
    of_class = project.files[NAME].body[-2].value  # type: ignore[union-attr]
    of_object = project.files[NAME].functions[0].body[0].values[0]  # type: ignore[union-attr]
    expected = [type_inference(project_of({NAME: text})).of(NAME, each) for each in (of_class, of_object)]
    for order in ((0, 1), (1, 0)):
        kinds = type_inference(project_of({NAME: text}))
        assert {each: kinds.of(NAME, (of_class, of_object)[each]) for each in order} == dict(enumerate(expected))
    assert expected[0].kind == "instance"
    assert expected[1] != expected[0]
