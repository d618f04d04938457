"""Going along a value of arbitrary order: ``for`` statements and comprehensions.

A value of arbitrary order that leaves its function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.context import Here, Step, Taken
from torchrepro_lint.dataflow.taint.effects import effects
from torchrepro_lint.dataflow.taint.propagation import bind, ordered
from torchrepro_lint.dataflow.taint.transfer import LISTING, MAPPING, SCALAR, Shape, held, valued
from torchrepro_lint.syntax.nodes import Assign, Call, Comprehension, Loop, Ref, Statement
from torchrepro_lint.syntax.use_def import Block, bound
from torchrepro_lint.syntax.visitor import expressions, last_word, within

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.context import TaintContext
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


class Returns:
    """Steps from a function to its callers."""

    def __init__(self, orders: TaintContext) -> None:
        self._orders = orders

    def steps(self, here: Here, function: str) -> Iterator[Step]:
        """What callers do with a value that is returned; where none is seen, anyone may go along it."""
        yield from self.results(here.path, function, here.shape, here)

    def results(self, path: str, function: str, shape: Shape, here: Here) -> Iterator[Step]:
        """The calls of a function whose result has a shape, from now on."""
        if function == ":":
            return
        if "<lambda>" in function.rpartition(".")[2] or function.startswith(":<lambda>"):
            yield from self._from_lambda(path, function, shape)
            return
        name = path + function
        word = function.rpartition(".")[2].lstrip(":")
        if here.came and here.came[-1][0] == name:
            _, file, call = here.came[-1]
            yield Here(file, call, shape, (), here.came[:-1])
            return
        of = self._class_of(name, here.of or "")
        callers = [
            Here(file, call, shape, (), (), of)
            for file, call in self._orders.uses.of_result(name)
            if self._is_of(of, file, call)
        ]
        if self._orders.names.is_property(name):
            callers += [Here(*read[:2], shape, read[2], (), of) for read in self._orders.uses.of_attribute(of, word)]
        if owner := self._orders.names.owner(name):
            callers += [Here(file, call, shape, (), (), owner) for file, call in self._orders.spelled.calls(word)]
        yield from callers
        if ".<locals>." in function and not self._is_named(path, function):
            return
        if not callers and shape.is_decided:
            yield Taken(path, here.node, "returned")

    def _is_named(self, path: str, function: str) -> bool:
        """Whether a function inside another is named there, or decorated: else nothing can call it."""
        definitions = self._orders.names.functions(path + function)
        return bool(self._orders.uses.spots(path).reads(function)) or any(each.decorators for each in definitions)

    def _class_of(self, method: str, known: str) -> str:
        """The class of the object whose method returns, as far as it is known; empty for a function."""
        names = self._orders.names
        owner = names.owner(method)
        return known if owner and owner in names.ancestry(known) else owner

    def _is_of(self, of: str, path: str, call: Call) -> bool:
        """Whether a method may be called of an object of that class."""
        names = self._orders.names
        owners = [each.removesuffix("()") for each in names.receiver(path, call.func) if names.classes(each[:-2])]
        if not of or not owners:
            return True
        return any(each in names.ancestry(of) or of in names.ancestry(each) for each in owners)

    def _from_lambda(self, path: str, function: str, shape: Shape) -> Iterator[Step]:
        """``map(lambda d: os.listdir(d), folders)`` holds what the lambda returns, and so do the calls of a variable that it is
        assigned to; of others nothing is known.
        """
        spots = self._orders.uses.spots(path)
        expression = spots.lambdas.get(function)
        spot = spots.of(expression) if expression is not None else None
        if spot is None:
            return
        if isinstance(spot.parent, Call) and last_word(spot.parent.func) in ("map", "imap", "submit"):
            yield Here(path, spot.parent, held(shape))
        elif isinstance(spot.statement, Assign) and spot.statement.value is expression:
            for target in spot.statement.targets:
                if isinstance(target, Ref) and not target.path:
                    yield from self._called(path, target, spot, shape)

    def _called(self, path: str, variable: Ref, spot: Spot, shape: Shape) -> Iterator[Step]:
        """The calls of what a variable is assigned."""
        for file, read, words in self._orders.uses.of_variable(path, variable, spot, spot.statement.end):
            there = self._orders.uses.spots(file).of(read)
            if not words and there is not None and isinstance(there.parent, Call) and there.parent.func is read:
                yield Here(file, there.parent, shape)
