"""Going along a value of arbitrary order: ``for`` statements and comprehensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.order.effects import effects
from torchrepro_lint.order.shapes import LISTING, MAPPING, SCALAR, Shape, held, valued
from torchrepro_lint.order.steps import bind, ordered
from torchrepro_lint.order.taint import Here, Step
from torchrepro_lint.syntax.nodes import Call, Comprehension, Loop, Ref, Statement
from torchrepro_lint.syntax.use_def import Block, bound
from torchrepro_lint.syntax.visitor import expressions, last_word, within

if TYPE_CHECKING:
    from torchrepro_lint.order.taint import TaintContext
    from torchrepro_lint.syntax.use_def import Spot


class Loops:
    """Steps into loops."""

    def __init__(self, orders: TaintContext) -> None:
        self._orders = orders

    def steps(self, here: Here, loop: Statement, spot: Spot) -> Iterator[Step]:
        """The loop's variables, and what its body does in the order in which it runs."""
        assert isinstance(loop, Loop)
        assert loop.target is not None
        inside = spot._replace(blocks=(*spot.blocks, Block(loop, 0, loop.end, "")))
        then: list[Step] = []
        if element := _element(here.shape):
            then += bind(self._orders, here._replace(shape=element), loop.target, inside, loop.source.end + 1)
        if here.shape.kind == "walk" and self._sorts_folders(here.path, loop):
            yield from then
            return
        if here.shape.is_arbitrary:
            then += effects(self._orders, here, loop, inside)
        yield from ordered(here, here.node, then)

    def _sorts_folders(self, path: str, loop: Loop) -> bool:
        """``dirs.sort()`` or ``dirs[:] = sorted(dirs)`` in the body: then the walk itself is in order."""
        parts = [each for each in getattr(loop.target, "items", ()) if isinstance(each, Ref)]
        if len(parts) < 3:
            return not any(self._orders.uses.spots(path).reads(root) for ref in parts[1:2] for root in ref.roots)
        spots = self._orders.uses.spots(path)
        return any(
            loop.start <= each.at < loop.end and "sort" in _words(each.statement)
            for root in parts[1].roots
            for each in spots.resets(root, ())
        )

    def comprehended(self, here: Here, parent: Comprehension) -> Iterator[Step]:
        """A comprehension along a value, or one whose elements hold it."""
        clause = next((each for each in parent.clauses if each.source is here.node), None)
        if clause is None:
            yield from _contained(here, parent)
            return
        then: list[Step] = []
        if element := _element(here.shape):
            spot = self._orders.uses.spots(here.path).of(clause.target)
            if spot is not None:
                then += bind(self._orders, here._replace(shape=element), clause.target, spot, parent.start)
        names = {root for ref in bound(clause.target) for root in ref.roots}
        if here.shape.is_arbitrary and _mentions(parent, names):
            then += _gathered(here, parent)
        yield from ordered(here, here.node, then)


def _gathered(here: Here, parent: Comprehension) -> Iterator[Step]:
    if parent.kind in ("list", "generator"):
        yield Here(here.path, parent, LISTING)
    elif parent.kind == "dict" and here.shape.kind in ("set", "mapping"):
        yield Here(here.path, parent, MAPPING)


def _contained(here: Here, parent: Comprehension) -> Iterator[Step]:
    places = [index for index, element in enumerate(parent.elements) if element is here.node]
    if not places or parent.kind == "set":
        return  # in a test, or its order is lost
    if parent.kind == "dict" and places == [0] and here.shape.kind != "scalar":
        return
    yield Here(here.path, parent, valued(here.shape) if parent.kind == "dict" and places == [1] else held(here.shape))


def _element(shape: Shape) -> Shape | None:
    return SCALAR if shape.kind == "scalar" else shape.element()


def _mentions(parent: Comprehension, names: set[str]) -> bool:
    """Whether what is gathered has to do with the variable: ``[0 for _ in x]`` has not."""
    inner = [clause.source for clause in parent.clauses[1:]]
    return any(
        isinstance(each, Ref) and not names.isdisjoint(each.roots)
        for element in (*parent.elements, *inner)
        for each in within(element)
    )


def _words(statement: Statement) -> str:
    """The words that a statement calls, for a look at whether one of them sorts."""
    calls = (each for one in expressions(statement) for each in within(one) if isinstance(each, Call))
    return " ".join(last_word(each.func) for each in calls)
