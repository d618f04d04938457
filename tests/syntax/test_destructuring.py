"""Destructuring assignments, compared with what Python assigns."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchrepro_lint.syntax.definitions import Rest, Step, assignments, instance_assignments, stored_places, unpack
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, Operation, Subscript
from torchrepro_lint.syntax.parse import parse_module

# A target and a value that fits it are made from one shape: a list of shapes, of which one may be starred.
_Shape = Any
_SHAPES: st.SearchStrategy[_Shape] = st.recursive(
    st.just(None),
    lambda inner: st.tuples(st.lists(inner, min_size=1, max_size=3), st.none() | st.tuples(st.integers(0, 3), inner)),
    max_leaves=6,
)


class _Texts:
    """The texts of a target and of a value of a shape; a hidden part of the value is what a call returns."""

    def __init__(self, data: st.DataObject) -> None:
        self._data, self.places, self._constants = data, list[str](), 0

    def target(self, shape: _Shape) -> str:
        if shape is None:
            number = len(self.places)
            self.places.append(self._data.draw(st.sampled_from([f"n{number}", f"o.n{number}", f"d[{number}]"])))
            return self.places[-1]
        plain, star = shape
        items = [self.target(each) for each in plain]
        if star is not None:
            items.insert(star[0], f"*{self.target(star[1])}")
        opened, closed = self._data.draw(st.sampled_from(["()", "[]"]))
        return f"{opened}{', '.join(items)}{',' if opened == '(' else ''}{closed}"

    def value(self, shape: _Shape) -> str:
        if shape is None:
            self._constants += 1
            return str(self._constants)
        plain, star = shape
        items = [self.value(each) for each in plain]
        if star is not None:
            items[star[0] : star[0]] = self._rest(star[1])
        wrapped = self._data.draw(st.sampled_from(["({},)", "[{}]", "hidden(({},))", "(*hidden(({},)),)"]))
        return wrapped.format(", ".join(items)) if items else "()"

    def _rest(self, shape: _Shape) -> list[str]:
        """The items for a starred target; where that is a tuple of targets itself, as many as it takes."""
        if shape is None:
            return [self.value(None) for _ in range(self._data.draw(st.integers(0, 3)))]
        plain, star = shape
        items = [self.value(each) for each in plain]
        if star is not None:
            items[star[0] : star[0]] = self._rest(star[1])
        return items


def _taken(value: Any, step: Step) -> Any:
    items = list(value)
    return items[step.before : len(items) - step.after] if isinstance(step, Rest) else items[step]


@given(st.data())
def test_targets_get_what_python_assigns(data: st.DataObject) -> None:
    shape = data.draw(_SHAPES)
    texts = _Texts(data)
    target, value = texts.target(shape), texts.value(shape)
    text = f"{target} = {value}\n"
    space: dict[str, Any] = {"hidden": lambda given: given, "o": type("O", (), {})(), "d": {}}
    exec(text, space)
    tree = parse_module(text)
    (statement,) = tree.body
    assert isinstance(statement, Assign)
    assert statement.value is not None
    found = {}
    for place, part, steps in unpack(statement.targets[0], statement.value):
        found[text[place.start : place.end]] = reduce(_taken, steps, _evaluated(part, text, space))
    assert found == {place: eval(place, space) for place in texts.places}
    defined = {name[1:]: _evaluated(values[-1].value, text, space) for name, values in assignments(tree).items()}
    assert defined == {place: space[place] for place in texts.places if place in space}


def _evaluated(value: Expression, text: str, space: dict[str, Any]) -> Any:
    """What a definition stands for: a part of the text, or an element of another definition."""
    match value:
        case Subscript(start=start, value=inner, indices=(Constant(value=int(index)),)) if start == inner.start:
            return list(_evaluated(inner, text, space))[index]
        case Subscript(start=start, value=inner, indices=(Operation(operands=(first, last, _)),)) if (
            start == inner.start
        ):
            assert isinstance(first, Constant)
            assert isinstance(last, Constant)
            return list(_evaluated(inner, text, space))[first.value : last.value]  # type: ignore[misc]
    return eval(f"({text[value.start : value.end]})", space)  # the span of a tuple is without its parentheses


@pytest.mark.parametrize(
    ("text", "lowered"),
    [
        ("a, b = f(), g()", {"a": ("=", "f()"), "b": ("=", "g()")}),
        ("a, b = f()", {"a": ("[]", "f()"), "b": ("[]", "f()")}),
        ("(a, b), c = f(), g()", {"a": ("[]", "f()"), "b": ("[]", "f()"), "c": ("=", "g()")}),
        ("a, *b = f(), g()", {"a": ("=", "f()"), "b": ("[]", "f(), g()")}),
        ("*a, b = f(), g(), h()", {"a": ("[]", "f(), g(), h()"), "b": ("=", "h()")}),
        ("a, b = *f(), g()", {"a": ("[]", "*f(), g()"), "b": ("[]", "*f(), g()")}),
        ("a, b = {1: 2}", {"a": ("[]", "{1: 2}"), "b": ("[]", "{1: 2}")}),
        ("for a, b in [f(), g()]: pass", {"a": ("[]", "[f(), g()]"), "b": ("[]", "[f(), g()]")}),
    ],
)
def test_lowering_records_the_part_or_the_whole(text: str, lowered: dict[str, tuple[str, str]]) -> None:
    source = text + "\n"
    found = {name[1:]: values for name, values in parse_module(source).assigned.items()}
    shown = {name: [(how, source[each.start : each.end]) for how, each in values] for name, values in found.items()}
    assert shown == {name: [value] for name, value in lowered.items()}


def test_attributes_and_elements_behind_a_star_are_stored() -> None:
    text = "def f(self, o):\n    self.a, *self.b, o.c, self.d[0] = 1, 2, 3, 4, 5\n"
    (function,) = parse_module(text).functions
    (statement,) = function.body
    assert isinstance(statement, Assign)
    assert statement.value is not None
    attributes = [(word, how, text[each.start : each.end]) for word, how, each in instance_assignments(function)]
    assert attributes == [("a", "=", "1"), ("b", "[]", "1, 2, 3, 4, 5")]
    stored = stored_places(statement.targets[0], statement.value)
    assert [(text[place.start : place.end], each and text[each.start : each.end]) for place, each in stored] == [
        ("o.c", "4"),
        ("self.d[0]", "5"),
    ]
