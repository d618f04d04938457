"""Taint of arbitrary orders: a tainted value at an expression, its sinks, and the analysis as its own modules see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchrepro_lint.dataflow.taint.transfer import Shape
from torchrepro_lint.syntax.nodes import Call, Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.dataflow.taint.transfer import Spelled
    from torchrepro_lint.dataflow.uses import Uses
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.nodes import Comprehension, Ref, Statement, Subscript
    from torchrepro_lint.syntax.use_def import Spot


class Here(NamedTuple):
    """A value of a shape at an expression; ``words`` are attributes of it that the expression reads.

    ``came`` are the calls by which it came into functions, outermost first: function, calling file, call. What such a
    function returns goes back to that call. None stands for those of the step before. ``of`` is the class of the object by
    whose methods it came: its own and its bases' go on with it, those of another heir do not.
    """

    path: str
    node: Expression
    shape: Shape
    words: tuple[str, ...] = ()
    came: tuple[tuple[str, str, Call], ...] | None = None
    of: str | None = None


class Taken(NamedTuple):
    """An order that decides something: how, at which expression, of what."""

    path: str
    node: Expression
    how: str


class Order(NamedTuple):
    """``taker`` goes along ``node``, whose order is arbitrary, and this becomes of it."""

    path: str
    taker: Expression
    node: Expression
    then: tuple[Here | Taken, ...]


Step = Here | Taken | Order


class MethodSteps(Protocol):
    """The transfer functions of methods, attributes and elements of a value."""

    def steps(self, here: Here) -> Iterator[Step]:
        """What becomes of a value by the method or the attribute of it that is read."""
        ...

    def picked(self, here: Here, subscript: Subscript) -> Iterator[Step]:
        """What becomes of an element of a value."""
        ...

    def is_single(self, here: Here) -> bool:
        """Whether a value holds one element."""
        ...


class ArgumentSteps(Protocol):
    """The transfer functions of calls that a value is passed to."""

    def steps(self, here: Here, call: Call, spot: Spot) -> Iterator[Step]:
        """What a call does with an argument."""
        ...


class LoopSteps(Protocol):
    """The transfer functions of loops over a value."""

    def steps(self, here: Here, loop: Statement, spot: Spot) -> Iterator[Step]:
        """What becomes of a value that a statement goes over."""
        ...

    def comprehended(self, here: Here, parent: Comprehension) -> Iterator[Step]:
        """What becomes of a value that a comprehension goes over."""
        ...


class ReturnSteps(Protocol):
    """The transfer functions of a return to the callers."""

    def steps(self, here: Here, function: str) -> Iterator[Step]:
        """What becomes of a value that a function returns."""
        ...

    def results(self, path: str, function: str, shape: Shape, here: Here) -> Iterator[Step]:
        """The calls that give what a function returns."""
        ...


class TaintContext(Protocol):
    """What ``order.context`` answers to the modules that it is made of."""

    project: ValueFlow
    names: Names
    uses: Uses
    spelled: Spelled

    @property
    def methods(self) -> MethodSteps:
        """Methods, attributes and elements."""
        ...

    @property
    def arguments(self) -> ArgumentSteps:
        """Calls that a value is passed to."""
        ...

    @property
    def loops(self) -> LoopSteps:
        """Loops over a value."""
        ...

    @property
    def returns(self) -> ReturnSteps:
        """Returns to the callers."""
        ...

    def leading(self, path: str, ref: Ref, shape: Shape, spot: Spot, after: int) -> Iterator[Here]:
        """Those of ``reads`` from which a value may lead on."""
        ...

    def reads(
        self, path: str, ref: Ref, shape: Shape, spot: Spot, after: int, but: frozenset[str] = ...
    ) -> Iterator[Here]:
        """The reads of what is assigned to a variable, or to an attribute of an object, before ``after``."""
        ...
