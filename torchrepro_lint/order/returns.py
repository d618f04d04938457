"""A value of arbitrary order that leaves its function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call
from torchrepro_lint.order.shapes import Shape, held
from torchrepro_lint.order.steps import Here, Step, Taken
from torchrepro_lint.walk import last_word

if TYPE_CHECKING:
    from torchrepro_lint.order.context import Orders


class Returns:
    """Steps from a function to its callers."""

    def __init__(self, orders: Orders) -> None:
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
        callers = [Here(file, call, shape, (), ()) for file, call in self._orders.uses.of_result(name)]
        if self._orders.names.is_property(name):
            owner = self._orders.names.owner(name)
            callers += [Here(*read[:2], shape, read[2], ()) for read in self._orders.uses.of_attribute(owner, word)]
        yield from callers
        if not callers and shape.is_decided:
            yield Taken(path, here.node, "returned")

    def _from_lambda(self, path: str, function: str, shape: Shape) -> Iterator[Step]:
        """``map(lambda d: os.listdir(d), folders)`` holds what the lambda returns; of others nothing is known."""
        spots = self._orders.uses.spots(path)
        expression = spots.lambdas.get(function)
        spot = spots.of(expression) if expression is not None else None
        if (
            spot is not None
            and isinstance(spot.parent, Call)
            and last_word(spot.parent.func) in ("map", "imap", "submit")
        ):
            yield Here(path, spot.parent, held(shape))
