"""Taint: the tainted value, the sink and the propagation step, and the analysis as its own modules see it.

Tainted is an order that differs between runs: of a set, a directory listing, completed futures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchrepro_lint.dataflow.taint.transfer import OrderTaint
from torchrepro_lint.syntax.nodes import Call, Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.dataflow.taint.transfer import DynamicCalls
    from torchrepro_lint.dataflow.uses import DefUse
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.nodes import Comprehension, Ref, Statement, Subscript
    from torchrepro_lint.syntax.use_def import ExpressionPosition


class TaintedValue(NamedTuple):
    """A value of a shape at an expression; ``words`` are attributes of it that the expression reads.

    ``came`` are the calls by which it came into functions, outermost first: function, calling file, call. What such a
    function returns goes back to that call. None stands for those of the step before. ``of`` is the class of the object by
    whose methods it came: its own and its bases' go on with it, those of another heir do not.
    """

    path: str
    node: Expression
    taint: OrderTaint
    attributes: tuple[str, ...] = ()
    call_path: tuple[tuple[str, str, Call], ...] | None = None
    receiver_class: str | None = None


class Sink(NamedTuple):
    """An order that decides something: how, at which expression, of what."""

    path: str
    node: Expression
    kind: str


class OrderObservation(NamedTuple):
    """``taker`` goes along ``node``, whose order is arbitrary, and this becomes of it."""

    path: str
    observer: Expression
    node: Expression
    continuations: tuple[TaintedValue | Sink, ...]


TaintStep = TaintedValue | Sink | OrderObservation


class MethodTransfer(Protocol):
    """The transfer functions of methods, attributes and elements of a value."""

    def steps(self, tainted: TaintedValue) -> Iterator[TaintStep]:
        """What becomes of a value by the method or the attribute of it that is read."""
        ...

    def picked(self, tainted: TaintedValue, subscript: Subscript) -> Iterator[TaintStep]:
        """What becomes of an element of a value."""
        ...

    def is_single(self, tainted: TaintedValue) -> bool:
        """Whether a value holds one element."""
        ...


class ArgumentTransfer(Protocol):
    """The transfer functions of calls that a value is passed to."""

    def steps(self, tainted: TaintedValue, call: Call, spot: ExpressionPosition) -> Iterator[TaintStep]:
        """What a call does with an argument."""
        ...


class LoopTransfer(Protocol):
    """The transfer functions of loops over a value."""

    def steps(self, tainted: TaintedValue, loop: Statement, spot: ExpressionPosition) -> Iterator[TaintStep]:
        """What becomes of a value that a statement goes over."""
        ...

    def comprehended(self, tainted: TaintedValue, parent: Comprehension) -> Iterator[TaintStep]:
        """What becomes of a value that a comprehension goes over."""
        ...


class ReturnTransfer(Protocol):
    """The transfer functions of a return to the callers."""

    def steps(self, tainted: TaintedValue, function: str) -> Iterator[TaintStep]:
        """What becomes of a value that a function returns."""
        ...

    def results(self, path: str, function: str, taint: OrderTaint, tainted: TaintedValue) -> Iterator[TaintStep]:
        """The calls that give what a function returns."""
        ...


class TaintContext(Protocol):
    """What ``order.context`` answers to the modules that it is made of."""

    project: ValueFlow
    names: Names
    uses: DefUse
    dynamic_calls: DynamicCalls

    @property
    def methods(self) -> MethodTransfer:
        """Methods, attributes and elements."""
        ...

    @property
    def arguments(self) -> ArgumentTransfer:
        """Calls that a value is passed to."""
        ...

    @property
    def loops(self) -> LoopTransfer:
        """Loops over a value."""
        ...

    @property
    def returns(self) -> ReturnTransfer:
        """Returns to the callers."""
        ...

    def leading_reads(
        self, path: str, ref: Ref, taint: OrderTaint, spot: ExpressionPosition, after: int
    ) -> Iterator[TaintedValue]:
        """Those of ``reads`` from which a value may lead on."""
        ...

    def reads(
        self, path: str, ref: Ref, taint: OrderTaint, spot: ExpressionPosition, after: int, but: frozenset[str] = ...
    ) -> Iterator[TaintedValue]:
        """The reads of what is assigned to a variable, or to an attribute of an object, before ``after``."""
        ...
