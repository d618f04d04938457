"""Taint propagation: the transfer from a tainted value to what the expression or statement around it makes of it.

A type test such as ``x if isinstance(x, list) else [x]`` keeps a listing or a set from where a variable is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from torchrepro_lint.dataflow.taint.alignment import cancels, is_index_aligned
from torchrepro_lint.dataflow.taint.context import OrderObservation, Sink, TaintContext, TaintedValue, TaintStep
from torchrepro_lint.dataflow.taint.transfer import (
    SCALAR,
    SET,
    OrderTaint,
    container_of,
    is_membership_name,
    mapping_to,
)
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.syntax.definitions import Rest, unpacking_steps
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition, UseDefIndex
from torchrepro_lint.syntax.visitor import is_starred, last_identifier


def transfer(analysis: TaintContext, tainted: TaintedValue) -> Iterator[TaintStep]:
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


def _in_statement(analysis: TaintContext, tainted: TaintedValue, spot: ExpressionPosition) -> Iterator[TaintStep]:
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
                if value is tainted.node and entered is not None:
                    yield from assign_target(analysis, tainted, entered, spot, entered.end)
        case SimpleStatement(kind="return"):
            yield from analysis.returns.steps(tainted, spot.function)


def assign_target(
    analysis: TaintContext, tainted: TaintedValue, target: Expression, spot: ExpressionPosition, after: int
) -> Iterator[TaintStep]:
    """The reads of an assignment target; a destructuring target gets the parts of the value."""
    match target:
        case Ref():
            yield from analysis.reads(tainted.path, target, tainted.taint, spot, after)
        case Subscript(value=Ref() as whole, indices=(Operation(op=":"),)):
            yield from analysis.reads(tainted.path, whole, tainted.taint, spot, after)
        case Subscript(value=Ref() as whole, indices=indices):
            named = len(indices) == 1 and isinstance(indices[0], Constant) and isinstance(indices[0].value, str)
            taint = mapping_to(tainted.taint) if named else container_of(tainted.taint)
            yield from analysis.reads(tainted.path, whole, taint, spot, after)
        case Collection():
            yield from _unpack(analysis, tainted, target, spot, after)


def _unpack(
    analysis: TaintContext, tainted: TaintedValue, target: Collection, spot: ExpressionPosition, after: int
) -> Iterator[TaintStep]:
    """Destructuring an arbitrary order decides which target gets which element, unless there is only one."""
    single = len(target.items) == 1 and not is_starred(target.items[0])
    count = _items_unpacked(tainted.node, target, spot.statement)
    continuations: list[TaintStep] = []
    for step, item in unpacking_steps(target):
        inner: OrderTaint | None
        if isinstance(step, Rest):
            inner = tainted.taint.between(step.before, None if count is None else count - step.after)
        elif tainted.taint.kind == "table":
            inner = None  # the keys
        elif tainted.taint.kind == "plain":
            inner = tainted.taint.item(step if step >= 0 else None if count is None else count + step)
        elif tainted.taint.kind == "scalar":
            inner = SCALAR
        else:
            inner = tainted.taint.item(None) or (None if single else SCALAR)
        if inner is not None:
            continuations += assign_target(analysis, tainted._replace(taint=inner), item, spot, after)
    yield from observe_order(tainted, tainted.node, continuations)


def _items_unpacked(node: Expression, target: Collection, statement: Statement) -> int | None:
    """The number of items of a display that an assignment destructures; None where it is not known."""
    whole = isinstance(statement, Assign) and any(target is each for each in statement.targets)
    known = whole and isinstance(node, Collection) and node.kind != "dict" and not any(map(is_starred, node.items))
    return len(node.items) if known and isinstance(node, Collection) else None


def observe_order(
    tainted: TaintedValue, observer: Expression, continuations: Iterable[TaintStep]
) -> Iterator[TaintStep]:
    """The steps after iterating a value: an observation if its order is arbitrary."""
    if tainted.taint.is_unordered:
        yield OrderObservation(tainted.path, observer, tainted.node, tuple(consequences(continuations)))
    else:
        yield from continuations


def consequences(steps: Iterable[TaintStep]) -> Iterator[TaintedValue | Sink]:
    """The steps behind observations, for an order that was observed before."""
    for step in steps:
        if isinstance(step, OrderObservation):
            yield from step.continuations
        else:
            yield step


def _augment(
    analysis: TaintContext, tainted: TaintedValue, target: Expression, op: str, spot: ExpressionPosition
) -> Iterator[TaintStep]:
    """``x += listing`` makes x a listing; other augmented assignments are set operations."""
    if op != "+=" or not isinstance(target, Ref):
        return
    continuations = analysis.reads(
        tainted.path,
        target,
        tainted.taint.as_sequence() if tainted.taint.kind != "scalar" else SCALAR,
        spot,
        spot.statement.end,
    )
    yield from observe_order(tainted, tainted.node, continuations) if tainted.taint.kind != "scalar" else continuations


def _in_expression(
    analysis: TaintContext, tainted: TaintedValue, spot: ExpressionPosition, parent: Expression
) -> Iterator[TaintStep]:
    path, node, taint = tainted.path, tainted.node, tainted.taint
    match parent:
        case Call():
            yield from (
                _run_in_order(analysis, tainted, parent)
                if parent.func is node
                else analysis.arguments.steps(tainted, parent, spot)
            )
        case Subscript(value=value) if value is node:
            yield from analysis.methods.picked(tainted, parent)
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


def _run_in_order(analysis: TaintContext, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
    """The result of a module that is called and runs modules one after the other."""
    if (
        tainted.taint.kind == "sequence"
        and type_inference(analysis.project).of(tainted.path, tainted.node).kind == "module"
    ):
        yield TaintedValue(tainted.path, call, SCALAR)


def _is_stored(analysis: TaintContext, path: str, subscript: Subscript) -> bool:
    spot = analysis.uses.spots(path).of(subscript)
    return spot is not None and spot.written


def _in_display(tainted: TaintedValue, parent: Collection) -> Iterator[TaintStep]:
    if parent.kind == "set":
        return
    places = [index for index, item in enumerate(parent.items) if item is tainted.node]
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
    analysis: TaintContext, tainted: TaintedValue, parent: Operation, spot: ExpressionPosition
) -> Iterator[TaintStep]:
    path, taint = tainted.path, tainted.taint
    match parent.op:
        case "*" if len(parent.operands) == 1:
            outer = analysis.uses.spots(path).of(parent)
            if outer is not None and isinstance(outer.parent, Collection) and outer.parent.kind in ("list", "tuple"):
                yield from observe_order(tainted, outer.parent, [TaintedValue(path, outer.parent, taint.as_sequence())])
        case "if":
            if parent.operands[0] is not tainted.node:
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


def first_constant(indices: tuple[Expression, ...]) -> int | None:
    """The literal index of a subscript."""
    match indices:
        case (Constant(value=int(index)),):
            return index
    return None


_LISTS = frozenset({"list", "tuple", "Sequence", "MutableSequence"})
_SETS = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet"})
_ANY = frozenset({"Iterable", "Collection", "Sized", "Container", "object"})
_NEITHER = frozenset(
    {"str", "bytes", "int", "float", "bool", "dict", "Mapping", "Path", "PurePath", "PosixPath", "PathLike", "Number"}
    | {"Tensor", "ndarray", "Module", "Dataset", "DataFrame", "Series"}
)


def is_excluded_by_type_test(spots: UseDefIndex, read: Ref, taint: OrderTaint) -> bool:
    """Whether a type test keeps such a value from where a variable is read; False if the value may have any type."""
    here = spots.of(read)
    if here is None or read.path or taint.kind not in ("sequence", "set"):
        return False
    if _in_other_operand(spots, read, taint):
        return True
    return any(_is_diverted(tested, around, here, read, taint) for tested, around in _tests(spots, read))


def _tests(spots: UseDefIndex, read: Ref) -> list[tuple[If, ExpressionPosition]]:
    """The ``if`` statements of the function that test the type of the variable."""
    found: list[tuple[If, ExpressionPosition]] = []
    for root in read.roots:
        for each in spots.uses_matching(root, "tested", partial(_is_tested, spots)):
            spot = spots.of(each)
            if spot is not None and isinstance(spot.statement, If):
                found.append((spot.statement, spot))
    return found


def _is_tested(spots: UseDefIndex, read: Ref) -> bool:
    spot = spots.of(read)
    return spot is not None and isinstance(spot.statement, If) and _is_isinstance(spot.parent, read)


def _is_diverted(
    tested: If, around: ExpressionPosition, here: ExpressionPosition, read: Ref, taint: OrderTaint
) -> bool:
    """Whether such a value takes another branch than that of the read, or one that does not reach it."""
    answer = _evaluate_type_test(tested.test, read, taint)
    if answer is None or around.function != here.function:
        return False
    if any(block.owner is tested and block.number == int(answer) for block in here.blocks):
        return True
    behind = read.start > tested.end and {each.key for each in around.blocks} <= {each.key for each in here.blocks}
    return behind and _leaves(tested.body if answer else tested.orelse)


def _in_other_operand(spots: UseDefIndex, read: Ref, taint: OrderTaint) -> bool:
    for node, around in spots.enclosing(read):
        match around:
            case Operation(op="if", operands=(test, one, other)):
                answer = _evaluate_type_test(test, read, taint)
                if (answer is True and node is other) or (answer is False and node is one):
                    return True
    return False


def _evaluate_type_test(test: Expression, read: Ref, taint: OrderTaint) -> bool | None:
    """The truth value of a type test for such a value; None if unknown."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = _evaluate_type_test(inner, read, taint)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            answers = [_evaluate_type_test(each, read, taint) for each in operands]
            decisive = op == "or"
            return decisive if decisive in answers else None if None in answers else not decisive
        case Call(args=(first, second)) if _is_isinstance(test, first.value) and _same(first.value, read):
            return _is_instance(second.value, taint)
    return None


def _is_instance(types: Expression, taint: OrderTaint) -> bool | None:
    items = [each for each in types.items if each] if isinstance(types, Collection) else [types]
    words = {last_identifier(each) for each in items}
    own, other = (_SETS, _LISTS) if taint.kind == "set" else (_LISTS, _SETS)
    if words & (own | _ANY):
        return True
    return False if words <= other | _NEITHER else None


def _is_isinstance(call: Expression | None, value: Expression) -> bool:
    return (
        isinstance(call, Call)
        and isinstance(call.func, Ref)
        and call.func.roots == ("builtins.isinstance",)
        and len(call.args) == 2
        and call.args[0].value is value
    )


def _same(one: Expression, other: Ref) -> bool:
    return isinstance(one, Ref) and one.path == other.path and not set(one.roots).isdisjoint(other.roots)


def _leaves(body: tuple[Statement, ...]) -> bool:
    return (
        bool(body)
        and isinstance(body[-1], SimpleStatement)
        and body[-1].kind in ("raise", "return", "continue", "break")
    )
