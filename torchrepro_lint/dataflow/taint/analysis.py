"""Taint analysis of arbitrary orders: a worklist that follows a tainted value to the first sink, by the transfer from a value to what
the expression or statement around it makes of it.

This is the uppermost layer of data flow, above the types that it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from torchrepro_lint import limits
from torchrepro_lint.dataflow.taint.alignment import cancels, is_index_aligned, loop_along
from torchrepro_lint.dataflow.taint.arguments import ArgumentTaint
from torchrepro_lint.dataflow.taint.context import Sink, TaintContext, TaintedValue, TaintedVariable, TaintStep
from torchrepro_lint.dataflow.taint.loops import LoopTaint
from torchrepro_lint.dataflow.taint.methods import MethodTaint
from torchrepro_lint.dataflow.taint.prefilter import NonSets
from torchrepro_lint.dataflow.taint.propagation import ReturnTaint, assign_target, consequences, observe_order
from torchrepro_lint.dataflow.taint.set_tables import SetTables
from torchrepro_lint.dataflow.taint.transfer import (
    SCALAR,
    SET,
    OrderTaint,
    container_of,
    is_membership_name,
    mapping_to,
    nesting_depth,
)
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
    With,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import is_starred


class TaintAnalysis(TaintContext):
    """Taint analysis of a project: a worklist over tainted values."""

    def __init__(self, project: ValueFlow) -> None:
        super().__init__(project)
        self.non_sets = NonSets(self.names)
        self.set_tables = SetTables(project)
        self.methods = MethodTaint(self)
        self.arguments = ArgumentTaint(self)
        self.loops = LoopTaint(self)
        self.returns = ReturnTaint(self)

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


def transfer(analysis: TaintAnalysis, tainted: TaintedValue) -> Iterator[TaintStep]:
    """Taint transfer: the steps of a value at an expression."""
    if tainted.attributes:
        yield from analysis.methods.steps(tainted)
        return
    spot = analysis.uses.spots(tainted.path).of(tainted.node)
    if spot is None:
        return
    if spot.parent is None:
        yield from _in_statement(analysis, tainted, spot)
    else:
        yield from _in_expression(analysis, tainted, spot, spot.parent)


def _in_statement(analysis: TaintAnalysis, tainted: TaintedValue, spot: ExpressionPosition) -> Iterator[TaintStep]:
    match spot.statement:
        case Assign(op="=" | ":", targets=targets) if not spot.written:
            for target in targets:
                yield from assign_target(analysis, tainted, target, spot, spot.statement.end)
        case Assign(op=op, targets=(target,)) if not spot.written:
            yield from _augment(analysis, tainted, target, op, spot)
        case Loop(target=target) if target is not None and not spot.written:
            yield from analysis.loops.steps(tainted, spot.statement, spot)
        case With(items=items) if not spot.written:
            for value, entered in items:
                if value == tainted.node and entered is not None:
                    yield from assign_target(analysis, tainted, entered, spot, entered.end)
        case SimpleStatement(kind="return"):
            yield from analysis.returns.steps(tainted, spot.function)


def _augment(
    analysis: TaintAnalysis, tainted: TaintedValue, target: Expression, op: str, spot: ExpressionPosition
) -> Iterator[TaintStep]:
    """``x += listing`` makes x a listing, and ``rows["train"] += listing`` an element of it; other augmented assignments are set operations."""
    is_scalar = tainted.taint.kind == "scalar"
    if op != "+=" or not isinstance(target, Ref | Subscript) or (is_scalar and isinstance(target, Subscript)):
        return
    given = tainted if is_scalar else tainted._replace(taint=tainted.taint.as_sequence())
    continuations = assign_target(analysis, given, target, spot, spot.statement.end)
    yield from continuations if is_scalar else observe_order(tainted, tainted.node, continuations)


def _in_expression(
    analysis: TaintAnalysis, tainted: TaintedValue, spot: ExpressionPosition, parent: Expression
) -> Iterator[TaintStep]:
    path, node, taint = tainted.path, tainted.node, tainted.taint
    match parent:
        case Call():
            yield from (
                _run_in_order(analysis, tainted, parent)
                if parent.func == node
                else analysis.arguments.steps(tainted, parent, spot)
            )
        case Subscript(value=value) if value == node:
            loop = loop_along(analysis.project, path, parent) if taint.kind in ("sequence", "ranked") else None
            picked = analysis.methods.picked(tainted, parent)
            yield from picked if loop is None else analysis.loops.numbered(tainted, parent, loop)
        case Subscript() if not cancels(analysis.project, path, parent):
            if spot.written or _is_stored(analysis, path, parent):
                if taint.kind == "scalar":
                    yield Sink(path, parent, "stored")
            elif not is_index_aligned(analysis.project, path, parent):
                yield TaintedValue(path, parent, taint.as_sequence() if taint.is_unordered else taint)
        case Collection():
            yield from _in_display(tainted, parent)
        case Operation():
            yield from _in_operation(analysis, tainted, parent, spot)
        case Comprehension():
            yield from analysis.loops.comprehended(tainted, parent)
        case Attribute(name=word):
            yield TaintedValue(path, parent, taint, (word,))


def _run_in_order(analysis: TaintAnalysis, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
    """The result of a module that is called and runs modules one after the other."""
    if (
        tainted.taint.kind == "sequence"
        and type_inference(analysis.project).of(tainted.path, tainted.node).kind == "module"
    ):
        yield TaintedValue(tainted.path, call, SCALAR)


def _is_stored(analysis: TaintAnalysis, path: str, subscript: Subscript) -> bool:
    spot = analysis.uses.spots(path).of(subscript)
    return spot is not None and spot.written


def _in_display(tainted: TaintedValue, parent: Collection) -> Iterator[TaintStep]:
    if parent.kind == "set":
        return
    places = [index for index, item in enumerate(parent.items) if item == tainted.node]
    if parent.kind == "dict":
        if tainted.taint.kind == "scalar" or (places[0] % 2 and not _is_asked(parent.items[places[0] - 1])):
            yield TaintedValue(
                tainted.path, parent, mapping_to(tainted.taint) if places[0] % 2 else container_of(tainted.taint)
            )
    else:
        starred = any(map(is_starred, parent.items))
        yield TaintedValue(tainted.path, parent, container_of(tainted.taint, None if starred else places[0]))


def _is_asked(key: Expression | None) -> bool:
    return isinstance(key, Constant) and isinstance(key.value, str) and is_membership_name(key.value)


def _in_operation(  # noqa: C901  a line or two per operator
    analysis: TaintAnalysis, tainted: TaintedValue, parent: Operation, spot: ExpressionPosition
) -> Iterator[TaintStep]:
    path, taint = tainted.path, tainted.taint
    match parent.op:
        case "*" if len(parent.operands) == 1:
            outer = analysis.uses.spots(path).of(parent)
            if outer is not None and isinstance(outer.parent, Collection) and outer.parent.kind in ("list", "tuple"):
                yield from observe_order(tainted, outer.parent, [TaintedValue(path, outer.parent, taint.as_sequence())])
        case "if":
            if parent.operands[0] != tainted.node:
                yield TaintedValue(path, parent, taint)
        case "+" | "or" | "and" | "await":
            yield TaintedValue(path, parent, taint)
        case "-" | "|" | "&" | "^" if taint.kind == "set":
            yield TaintedValue(path, parent, SET)
        case "*" | "|" if taint.is_unordered or taint.kind in ("plain", "table"):
            yield TaintedValue(path, parent, taint)
        case "f" | "%":
            continuations = [TaintedValue(path, parent, SCALAR)]
            yield from observe_order(tainted, parent, continuations)
        case "yield":
            yield from analysis.returns.steps(tainted._replace(taint=container_of(taint)), spot.function)
        case "yield from":
            yield from observe_order(
                tainted, parent, analysis.returns.steps(tainted._replace(taint=taint.as_sequence()), spot.function)
            )
        case ":=":
            yield from assign_target(analysis, tainted, parent.operands[0], spot, parent.end)
            yield TaintedValue(path, parent, taint)
        case "-" | "*" | "/" | "//" | "**" | "<<" | ">>" | "@" | "&" | "|" | "^" | "~" if taint.kind == "scalar":
            yield TaintedValue(path, parent, SCALAR)


class TaintFlow(ValueFlow):
    """A project with taint analysis of arbitrary orders."""

    @cached_property
    def taint(self) -> TaintAnalysis:
        """The taint analysis of the project."""
        return TaintAnalysis(self)
