"""Taint analysis of arbitrary orders: a worklist that follows a tainted value to the first sink.

This is the uppermost layer of data flow, above the types that it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from torchrepro_lint.dataflow.taint.arguments import ArgumentTaint
from torchrepro_lint.dataflow.taint.context import Sink, TaintedValue, TaintedVariable
from torchrepro_lint.dataflow.taint.loops import LoopTaint, ReturnTaint
from torchrepro_lint.dataflow.taint.methods import ORDER_KEEPING_METHODS, MethodTaint, is_sorted_anywhere
from torchrepro_lint.dataflow.taint.prefilter import NonSets
from torchrepro_lint.dataflow.taint.propagation import consequences, is_excluded_by_type_test, transfer
from torchrepro_lint.dataflow.taint.set_tables import SetTables
from torchrepro_lint.dataflow.taint.transfer import OrderTaint, nesting_depth
from torchrepro_lint.dataflow.training_steps import CallEffects
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query import limits
from torchrepro_lint.resolve.call_graph import DynamicCalls
from torchrepro_lint.syntax.nodes import Ref
from torchrepro_lint.syntax.qualified_names import class_of, in_project, is_local, split_last
from torchrepro_lint.syntax.use_def import ExpressionPosition

_STEP = frozenset({"step"})


class TaintAnalysis:
    """Taint analysis of a project: a worklist over tainted values."""

    def __init__(self, project: ValueFlow) -> None:
        self.project = project
        self.names = project.resolver
        self.uses = project.uses
        self.non_sets = NonSets(self.names)
        self.set_tables = SetTables(project)
        self.methods = MethodTaint(self)
        self.arguments = ArgumentTaint(self)
        self.loops = LoopTaint(self)
        self.returns = ReturnTaint(self)
        self.dynamic_calls = DynamicCalls(self.names.modules.files, self.names.call_graph)
        self.call_effects = CallEffects(self.names)

    def first_sink(
        self, start: Iterable[TaintedValue | Sink], accepts: Callable[[Sink], bool] | None = None
    ) -> Sink | None:
        """The first sink that one of the tainted values reaches, of those that count; None if no sink is known."""
        return next((taken for taken in self._followed(start) if accepts is None or accepts(taken)), None)

    def _followed(self, start: Iterable[TaintedValue | Sink]) -> Iterator[Sink]:
        queue: list[TaintedValue | Sink] = list(start)
        seen: set[tuple[object, ...]] = set()
        while queue:
            tainted = queue.pop(0)
            if isinstance(tainted, Sink):
                yield tainted
                continue
            call_path = tuple([(path, call) for _, path, call in tainted.call_path or ()])
            key = (tainted.path, tainted.node, tainted.taint, tainted.attributes, call_path, tainted.receiver_class)
            if (
                key in seen
                or len(seen) > limits.MAX_TAINTED_VALUES
                or nesting_depth(tainted.taint) > limits.MAX_TAINT_NESTING
            ):
                continue
            seen.add(key)
            queue += (_with_call_path(tainted, step) for step in consequences(transfer(self, tainted)))

    def has_optimizer(self, path: str) -> bool:
        """Whether a file has a step of an optimizer."""
        return self.call_effects.has_optimizer(path, (site.call for site in self.project.calls_by(path, _STEP)))

    def leading_reads(
        self, path: str, ref: Ref, taint: OrderTaint, spot: ExpressionPosition, after: int
    ) -> Iterator[TaintedValue]:
        """The ``reads`` that may propagate the taint: methods that leave a list's order as it is are skipped."""
        return self.reads(
            path, ref, taint, spot, after, ORDER_KEEPING_METHODS if taint.kind == "sequence" else frozenset()
        )

    def reads(
        self,
        path: str,
        ref: Ref,
        taint: OrderTaint,
        spot: ExpressionPosition,
        after: int,
        but: frozenset[str] = frozenset(),
    ) -> Iterator[TaintedValue]:
        """The reads that a definition of a variable or attribute before ``after`` reaches, as tainted values; reads in the same
        file that only call one of the methods ``but`` are left out.
        """
        for file, read, words in self.uses.of_variable(path, ref, spot, after, but):
            if not is_excluded_by_type_test(self.uses.spots(file), read, taint):
                yield TaintedValue(file, read, taint, words)
        for owner, word in self._attributes(path, ref):
            if self.uses.stays(path, ref, spot, after) and not is_sorted_anywhere(self, owner, word):
                for file, expression, rest in self.uses.of_attribute(owner, word):
                    other = self.uses.spots(file).of(expression)
                    if other is None or (other.written and not rest):
                        continue
                    if file != path or other.function != spot.function:
                        yield TaintedValue(file, expression, taint, rest)

    def _attributes(self, path: str, ref: Ref) -> Iterator[tuple[str, str]]:
        """The classes whose objects have the target as an attribute, each with the attribute's name."""
        if len(ref.path) == 1:
            for name in self.names.names_of(path, ref._replace(path=())):
                if in_project(name) and self.names.classes(class_of(name)):
                    yield class_of(name), ref.path[0]
        elif not ref.path:
            for root in ref.roots:
                owner, word = split_last(path + root)
                if not is_local(word) and self.names.classes(owner):
                    yield owner, word


def _with_call_path(tainted: TaintedValue, step: TaintedValue | Sink) -> TaintedValue | Sink:
    """A step with what it inherits from the value before: the path of calls, and the variables that hold the value."""
    variable = _variable(tainted)
    held = variable or tainted.held
    ordered = variable if variable is not None and _is_in_order(tainted.taint) else tainted.ordered
    if isinstance(step, Sink):
        return step._replace(value=tainted._replace(held=held, ordered=ordered))
    call_path = tainted.call_path if step.call_path is None else step.call_path
    return step._replace(
        call_path=call_path,
        receiver_class=tainted.receiver_class if step.receiver_class is None else step.receiver_class,
        held=held,
        ordered=ordered,
        sorted_by=step.sorted_by or tainted.sorted_by,
    )


def _is_in_order(taint: OrderTaint) -> bool:
    """Whether a value has an order that can be seen; that of a set is not taken yet."""
    return taint.is_unordered and taint.kind != "set"


def _variable(tainted: TaintedValue) -> TaintedVariable | None:
    """The variable or attribute that is read where a value is."""
    if not isinstance(tainted.node, Ref):
        return None
    return TaintedVariable(tainted.path, tainted.node, tainted.attributes, tainted.taint)


class TaintFlow(ValueFlow):
    """A project with taint analysis of arbitrary orders."""

    @cached_property
    def taint(self) -> TaintAnalysis:
        """The taint analysis of the project."""
        return TaintAnalysis(self)
