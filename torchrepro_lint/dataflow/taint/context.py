"""Taint: the tainted value, the sink and the propagation step, and the analysis as its own modules see it.

Tainted is an order that differs between runs: of a set, a directory listing, completed futures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from torchrepro_lint.dataflow.taint.transfer import OrderTaint
from torchrepro_lint.dataflow.training_steps import CallEffects
from torchrepro_lint.dataflow.uses import DefUse
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.resolve.call_graph import DynamicCalls
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.nodes import Call, Comprehension, Expression, Record, Ref, Statement, Subscript
from torchrepro_lint.syntax.use_def import ExpressionPosition


class TaintedVariable(Record, frozen=True):
    """A variable or attribute that holds a tainted value, where it is read; of ``node``, ``attributes`` are read from it."""

    path: str
    node: Ref
    attributes: tuple[str, ...]
    taint: OrderTaint


class TaintedValue(Record, frozen=True):
    """A tainted value at an expression; ``attributes`` are those that the expression reads of it.

    ``call_path`` has the calls through which it entered functions, outermost first: function, calling file, call. A
    function returns to the last of them. None stands for the path of the previous step. ``receiver_class`` is the class
    of the object whose methods it went through: methods of that class and its bases apply, those of siblings do not.
    ``held`` is the last variable on the way that held it, ``ordered`` the last one that held it in an arbitrary order.
    ``sorted_by`` is the key of a sort on the way that left the order arbitrary (``sort_key``).
    """

    path: str
    node: Expression
    taint: OrderTaint
    attributes: tuple[str, ...] = ()
    call_path: tuple[tuple[str, str, Call], ...] | None = None
    receiver_class: str | None = None
    held: TaintedVariable | None = None
    ordered: TaintedVariable | None = None
    sorted_by: str = ""


class Sink(Record, frozen=True):
    """A sink: an expression whose result depends on the order, and in which way.

    ``value`` is the tainted value that it takes, unless the iteration itself leads to it, with the variables that held it.
    """

    path: str
    node: Expression
    kind: str
    value: TaintedValue | None = None


class OrderObservation(Record, frozen=True):
    """``observer`` iterates ``node``, whose order is arbitrary; the continuations are tainted by it."""

    path: str
    observer: Expression
    node: Expression
    continuations: tuple[TaintedValue | Sink, ...]


TaintStep = TaintedValue | Sink | OrderObservation


class MethodTransfer(Protocol):
    """The transfer functions of methods, attributes and elements of a value."""

    def steps(self, tainted: TaintedValue) -> Iterator[TaintStep]:
        """The steps of a value whose method or attribute is read."""
        ...

    def picked(self, tainted: TaintedValue, subscript: Subscript) -> Iterator[TaintStep]:
        """The steps of a value that is subscripted."""
        ...

    def is_single(self, tainted: TaintedValue) -> bool:
        """Whether the program ensures that a value holds one element."""
        ...


class ArgumentTransfer(Protocol):
    """The transfer functions of call arguments."""

    def steps(self, tainted: TaintedValue, call: Call, spot: ExpressionPosition) -> Iterator[TaintStep]:
        """The steps of a value that is an argument of a call."""
        ...


class LoopTransfer(Protocol):
    """The transfer functions of iteration."""

    def steps(self, tainted: TaintedValue, loop: Statement, spot: ExpressionPosition) -> Iterator[TaintStep]:
        """The steps of a value that a loop iterates."""
        ...

    def comprehended(self, tainted: TaintedValue, parent: Comprehension) -> Iterator[TaintStep]:
        """The steps of a value in a comprehension."""
        ...


class ReturnTransfer(Protocol):
    """The transfer functions of returns."""

    def steps(self, tainted: TaintedValue, function: str) -> Iterator[TaintStep]:
        """The steps of a value that a function returns."""
        ...

    def results(self, path: str, function: str, taint: OrderTaint, tainted: TaintedValue) -> Iterator[TaintStep]:
        """The calls whose result is what a function returns."""
        ...


class TaintContext(Protocol):
    """The protocol of taint analysis, for the modules that implement it."""

    project: ValueFlow
    names: Names
    uses: DefUse
    dynamic_calls: DynamicCalls
    call_effects: CallEffects

    def has_optimizer(self, path: str) -> bool:
        """Whether a file has a step of an optimizer."""
        ...

    @property
    def methods(self) -> MethodTransfer:
        """Methods, attributes and elements."""
        ...

    @property
    def arguments(self) -> ArgumentTransfer:
        """Call arguments."""
        ...

    @property
    def loops(self) -> LoopTransfer:
        """Loops and comprehensions."""
        ...

    @property
    def returns(self) -> ReturnTransfer:
        """Returns to the callers."""
        ...

    def leading_reads(
        self, path: str, ref: Ref, taint: OrderTaint, spot: ExpressionPosition, after: int
    ) -> Iterator[TaintedValue]:
        """The ``reads`` that may propagate the taint."""
        ...

    def reads(
        self, path: str, ref: Ref, taint: OrderTaint, spot: ExpressionPosition, after: int, but: frozenset[str] = ...
    ) -> Iterator[TaintedValue]:
        """The reads that a definition of a variable or attribute before ``after`` reaches."""
        ...
