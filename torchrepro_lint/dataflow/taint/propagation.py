"""Taint propagation: the transfer from a tainted value to what the expression or statement around it makes of it.

A list that is built along a set and read at the same index as the set's element is not tainted: ``rows[i]`` for
``i, name in enumerate(names)``. A set that does not change is iterated in one order, so what is read there belongs
to the element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.syntax.definitions import Rest, bound_references, unpacking_steps
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    Lambda,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.syntax.qualified_names import is_local
from torchrepro_lint.syntax.use_def import ExpressionPosition, UseDefIndex
from torchrepro_lint.syntax.visitor import is_starred, last_identifier, statements, subexpressions

_ORDER_FREE_CALLS = frozenset({"enumerate", "len", "sorted", "min", "max", "any", "all", "print"})
_TESTING_OPERATORS = frozenset({"in", "not in", "==", "!=", "<", ">", "<=", ">=", "not"})


_RANKING = frozenset({"argsort", "lexsort", "sorted"})


def is_index_aligned(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether a list built along a set is read at the index of the set's element, or a list at the places that sort it."""
    return _is_ranked(project, path, subscript) or _is_aligned(project, path, subscript)


def _is_ranked(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether the index comes from a sort of the same list: ``names[i]`` for ``i in np.argsort(names)``."""
    match subscript:
        case Subscript(value=Ref(roots=(made,), path=()), indices=(Ref(roots=(index,), path=()),)):
            return any(_sorts(project, path, each, made) for each in _index_values(project, path, index))
    return False


def _index_values(project: ValueFlow, path: str, index: str) -> Iterator[Expression]:
    """What an index stands for, or what the loop iterates whose variable it is."""
    known = project.value_sources.assignments(path)
    for each in known.get(index, ()):
        value = each.value.value if isinstance(each.value, Subscript) and not each.value.indices else each.value
        if isinstance(value, Ref) and not value.path:
            yield from (one.value for root in value.roots for one in known.get(root, ()) if one.value is not None)
        elif value is not None:
            yield value


def _sorts(project: ValueFlow, path: str, value: Expression, made: str) -> bool:
    """Whether a call gives the places of a list's elements in order."""
    if not isinstance(value, Call) or last_identifier(value.func) not in _RANKING:
        return False
    inner = [*subexpressions(value)]
    for each in subexpressions(value):
        if isinstance(each, Lambda):
            inner += (
                one
                for found in project.resolver.return_expressions(path + each.function)
                for one in subexpressions(found)
            )
    return any(isinstance(each, Ref) and made in each.roots for each in inner)


def cancels(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether the order of indices has no effect, since the same indices stand on both sides: ``out[i] = x[i]``."""
    spot = project.uses.spots(path).of(subscript)
    match spot.statement if spot is not None else None:
        case Assign(targets=(Subscript(indices=indices),), value=value) if value is not None and _same_indices(
            indices, subscript.indices
        ):
            assert spot is not None
            own = [
                one
                for each in subexpressions(value)
                if isinstance(each, Subscript) and _same_indices(each.indices, indices)
                for one in subexpressions(each)
            ]
            rounds = {
                root
                for block in spot.blocks
                if isinstance(block.owner, Loop) and block.owner.target is not None
                for ref in bound_references(block.owner.target)
                for root in ref.roots
            }
            rounds.update(root for index in indices if isinstance(index, Ref) for root in index.roots)
            left = [
                each for each in subexpressions(value) if isinstance(each, Ref) and not any(each is one for one in own)
            ]
            return bool(own) and all(rounds.isdisjoint(each.roots) for each in left)
    return False


def _same_indices(some: tuple[Expression, ...], others: tuple[Expression, ...]) -> bool:
    """Whether two subscripts have the same variables as their indices."""
    return len(some) == len(others) and all(
        isinstance(one, Ref) and isinstance(other, Ref) and _same_ref(one, other)
        for one, other in zip(some, others, strict=True)
    )


def _same_ref(one: Ref, other: Ref) -> bool:
    return (one.roots, one.path) == (other.roots, other.path)


def _is_aligned(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    spots = project.uses.spots(path)
    spot = spots.of(subscript)
    match subscript:
        case Subscript(value=Ref(roots=(made,), path=()), indices=(Ref(roots=(index,), path=()),)) if spot is not None:
            loop = next((b.owner for b in reversed(spot.blocks) if _binds(spots, b.owner, index)), None)
            along = _enumerated_variable(loop) if isinstance(loop, Loop) else ""
            return (
                bool(along)
                and _is_never_mutated(project, path, spots, along)
                and _is_made_along(project, path, spots, made, along)
            )
    return False


def _binds(spots: UseDefIndex, owner: object, root: str) -> bool:
    """Whether a loop binds a variable, and its body does not rebind it."""
    if not isinstance(owner, Loop) or owner.target is None:
        return False
    written = [ref for ref in spots.uses(root) if owner.start <= ref.start < owner.end and _is_written(spots, ref)]
    return any(ref is each for ref in written for each in bound_references(owner.target)) and len(written) == 1


def _is_written(spots: UseDefIndex, ref: Ref) -> bool:
    spot = spots.of(ref)
    return spot is not None and spot.written


def _enumerated_variable(loop: Loop) -> str:
    """The variable that a loop enumerates; empty if none."""
    match loop:
        case Loop(
            target=Collection(items=(Ref(path=()), _)),
            source=Call(func=Ref(roots=("builtins.enumerate",), path=()), args=(arg,)),
        ):
            return _variable(arg.value)
    return ""


def _variable(value: Expression) -> str:
    return value.roots[0] if isinstance(value, Ref) and not value.path and len(value.roots) == 1 else ""


def _is_never_mutated(project: ValueFlow, path: str, spots: UseDefIndex, root: str) -> bool:
    """Whether a local variable is bound once and its value never mutated, only iterated or tested."""
    given = project.value_sources.assignments(path).get(root, ())
    passed = project.resolver.parameter(path + root) is not None
    if not is_local(root) or len(given) + passed != 1:
        return False
    for ref in spots.uses(root):
        spot = spots.of(ref)
        assert spot is not None
        match spot.parent:
            case None if isinstance(spot.statement, Loop) or _is_rebound(spot):
                continue
            case Comprehension(clauses=clauses) if any(clause.source is ref for clause in clauses):
                continue
            case Call(func=func) if not ref.path and last_identifier(func) in _ORDER_FREE_CALLS:
                continue
            case Operation(op=op) if op in _TESTING_OPERATORS:
                continue
        return False
    return True


def _is_rebound(spot: ExpressionPosition) -> bool:
    """Whether a target is rebound by a plain assignment."""
    return spot.written and isinstance(spot.statement, Assign) and spot.statement.op in ("=", ":")


def _is_made_along(project: ValueFlow, path: str, spots: UseDefIndex, root: str, along: str) -> bool:
    """Whether a list gets one item for each element of a set, and is otherwise only read by index."""
    given = [each.value for each in project.value_sources.assignments(path).get(root, ())]
    match given:
        case [Comprehension(kind="list", clauses=(clause,))]:
            whole = not clause.tests and _variable(clause.source) == along
            return whole and not list(_other_uses(spots, root, along, None))
        case [Collection(kind="list", items=()) as empty] if (spot := spots.of(empty)) is not None:
            return list(_other_uses(spots, root, along, spot)) == [True]
    return False


def _other_uses(spots: UseDefIndex, root: str, along: str, made: ExpressionPosition | None) -> Iterator[bool]:
    """For each use that is no read by index: whether it appends one item in each round of a loop along the variable, in the
    block where the list was made.
    """
    for ref in spots.uses(root):
        spot = spots.of(ref)
        assert spot is not None
        match spot.parent:
            case None if _is_rebound(spot):
                continue
            case Subscript(value=value) if value is ref and not ref.path:
                continue
            case Call(func=func) if (
                func is ref and ref.path == ("append",) and isinstance(spot.statement, ExpressionStatement)
            ):
                *around, block = spot.blocks
                beside = made is not None and [each.key for each in around] == [each.key for each in made.blocks]
                whole = isinstance(block.owner, Loop) and block.number == 0 and _iterates_all_of(block.owner, along)
                yield beside and whole and spot.statement.value is spot.parent
            case _:
                yield False


def _iterates_all_of(loop: Loop, along: str) -> bool:
    """Whether a loop iterates a variable without leaving early."""
    if any(isinstance(each, SimpleStatement) for each in statements(loop.body)):
        return False
    return _variable(loop.source) == along or _enumerated_variable(loop) == along


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
