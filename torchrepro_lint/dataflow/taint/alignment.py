"""Alignment: indices that undo an arbitrary order.

A list that is built along a set and read at the same index as the set's element is not tainted: ``rows[i]`` for
``i, name in enumerate(names)``. A set that does not change is iterated in one order, so what is read there belongs
to the element.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.syntax.definitions import bound_references
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Arg,
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Lambda,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import is_local
from torchrepro_lint.syntax.use_def import ExpressionPosition, UseDefIndex
from torchrepro_lint.syntax.visitor import (
    is_same_reference,
    last_identifier,
    receiver_of,
    shown_values,
    statements,
    subexpressions,
)

_ORDER_FREE_CALLS = frozenset({"enumerate", "len", "sorted", "min", "max", "any", "all", "print"})
_TESTING_OPERATORS = frozenset({"in", "not in", "==", "!=", "<", ">", "<=", ">=", "not"})


_TELLING = frozenset({"print", "info", "debug", "warning", "log", "set_description", "set_postfix", "flush"})
_RANKING = frozenset({"argsort", "lexsort", "sorted"})
# Keys that several files share, or that differ between machines.
_SHARED = frozenset({"len", "getmtime", "getctime", "getatime", "getsize", "stat"})
# Calls that give the same elements, or element, in another form.
_CONVERTING = frozenset({"array", "asarray", "list", "tuple", "tensor", "as_tensor", "int", "tolist", "item", "numpy"})


def is_index_aligned(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether a list built along a set is read at the index of the set's element, or a list at the places that sort it."""
    return _is_ranked(project, path, subscript) or _is_aligned(project, path, subscript)


def loop_along(project: ValueFlow, path: str, subscript: Subscript) -> Loop | None:
    """The loop that goes along a list by its numbers, each of which it uses only to read the item: ``for i in range(len(names))``."""
    spots = project.uses.spots(path)
    spot = spots.of(subscript)
    match subscript:
        case Subscript(value=Ref() as whole, indices=(Ref(roots=(index,), path=()),)) if spot is not None:
            loop = next((b.owner for b in reversed(spot.blocks) if _binds(spots, b.owner, index)), None)
            if isinstance(loop, Loop) and _numbers(loop) == whole.access_path:
                inside = [each for root in (index, *whole.roots) for each in spots.uses(root)]
                inside = [each for each in inside if loop.source.end <= each.start < loop.end]
                return loop if all(_reads_item(spots, each, subscript) for each in inside) else None
    return None


def _only_tells(statement: Statement) -> bool:
    """Whether a statement only prints or logs, or tests whether it does."""
    match statement:
        case ExpressionStatement(value=Call(func=func)):
            return last_identifier(func) in _TELLING
        case If(body=body, orelse=()):
            return all(map(_only_tells, body))
    return False


def _numbers(loop: Loop) -> AccessPath | None:
    """The list whose numbers a loop goes along: of ``range(len(names))``, also in ``tqdm(...)``."""
    match loop.target, next(shown_values(loop.source), loop.source):
        case Ref(path=()), Call(
            func=Ref(roots=("builtins.range",), path=()),
            args=(Arg(value=Call(func=Ref(roots=("builtins.len",), path=()), args=(Arg(value=Ref() as whole),))),),
        ):
            return whole.access_path
    return None


def _reads_item(spots: UseDefIndex, ref: Ref, item: Subscript) -> bool:
    """Whether a use of a list or of a number is in a read of the item under the number, or of another attribute of the object; or of a
    number only for what people read: ``if i % 100 == 0: print(i)``.
    """
    assert isinstance(item.value, Ref)
    if ref.roots == item.value.roots and ref.path[: len(item.value.path)] != item.value.path:
        return True
    spot = spots.of(ref)
    if spot is not None and _only_tells(spot.statement):
        return True
    parent = spot.parent if spot is not None else None
    outer = spots.of(parent) if isinstance(parent, Subscript) else None
    return (
        isinstance(parent, Subscript)
        and is_same_reference(parent.value, item.value)
        and _same_indices(parent.indices, item.indices)
        and outer is not None
        and not outer.written
    )


def takes_latest(spots: UseDefIndex, added: Call, loop: Loop, read: Expression) -> bool:
    """Whether a read is of what the same round has just added to a list: ``files[-1]`` behind ``files.append(file)``."""
    spot, before = spots.of(read), spots.of(added)
    if spot is None or before is None or not added.end <= read.start < loop.end:
        return False
    match spot.parent:
        case Subscript(indices=(Constant(value=-1),)):
            return spot.blocks[: len(before.blocks)] == before.blocks
    return False


def _is_ranked(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether the index comes from a sort of the same list: ``names[i]`` for ``i in np.argsort(names)``."""
    made = _plain(subscript.value)
    if len(subscript.indices) != 1 or not (isinstance(made, Ref) and len(made.roots) == 1 and not made.path):
        return False
    return any(
        _sorts(project, path, each, made.roots[0])
        for each in _origins(project, path, subscript.indices[0], limits.MAX_INDEX_ORIGINS)
    )


def _plain(value: Expression) -> Expression:
    """A list or array as it was before it was converted: ``np.array(names)``."""
    while isinstance(value, Call) and last_identifier(value.func) in _CONVERTING:
        inner = value.args[0].value if value.args else receiver_of(value.func)
        if inner is None:
            return value
        value = inner
    return value


def _origins(project: ValueFlow, path: str, index: Expression, depth: int) -> Iterator[Expression]:
    """The calls that give an index, or the list of which it is an element."""
    value = _plain(index)
    if depth == 0:
        return
    match value:
        case Call():
            yield value
        case Subscript(value=whole):
            yield from _origins(project, path, whole, depth)
        case Ref(roots=roots, path=()):
            known = project.value_sources.assignments(path)
            for root in roots:
                for each in known.get(root, ()):
                    if each.value is not None and each.value != value:
                        yield from _origins(project, path, each.value, depth - 1)


def _sorts(project: ValueFlow, path: str, value: Expression, made: str) -> bool:
    """Whether a call gives the places of a list's elements in order, or those of what is computed from each of them."""
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
    roots = {root for each in inner if isinstance(each, Ref) for root in each.roots}
    return made in roots or any(_follows(project, path, root, made) for root in roots)


def _follows(project: ValueFlow, path: str, keys: str, made: str) -> bool:
    """Whether a list has one element for each of another: ``keys = [number(name) for name in names]``."""
    known = project.value_sources.assignments(path).get(keys, ())
    return bool(known) and all(
        isinstance(each.value, Comprehension)
        and each.value.kind == "list"
        and len(each.value.clauses) == 1
        and not each.value.clauses[0].tests
        and isinstance(source := each.value.clauses[0].source, Ref)
        and source.access_path == ((made,), ())
        and not any(
            isinstance(one, Call) and last_identifier(one.func) in _SHARED for one in subexpressions(each.value)
        )
        for each in known
    )


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
                each for each in subexpressions(value) if isinstance(each, Ref) and not any(each == one for one in own)
            ]
            return bool(own) and all(rounds.isdisjoint(each.roots) for each in left)
    return False


def _same_indices(some: tuple[Expression, ...], others: tuple[Expression, ...]) -> bool:
    """Whether two subscripts have the same variables as their indices."""
    return len(some) == len(others) and all(map(is_same_reference, some, others))


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
    return any(ref == each for ref in written for each in bound_references(owner.target)) and len(written) == 1


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
            case Comprehension(clauses=clauses) if any(clause.source == ref for clause in clauses):
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
            case Subscript(value=value) if value == ref and not ref.path:
                continue
            case Call(func=func) if (
                func == ref and ref.path == ("append",) and isinstance(spot.statement, ExpressionStatement)
            ):
                *around, block = spot.blocks
                beside = made is not None and [each.key for each in around] == [each.key for each in made.blocks]
                whole = isinstance(block.owner, Loop) and block.number == 0 and _iterates_all_of(block.owner, along)
                yield beside and whole and spot.statement.value == spot.parent
            case _:
                yield False


def _iterates_all_of(loop: Loop, along: str) -> bool:
    """Whether a loop iterates a variable without leaving early."""
    if any(isinstance(each, SimpleStatement) for each in statements(loop.body)):
        return False
    return _variable(loop.source) == along or _enumerated_variable(loop) == along
