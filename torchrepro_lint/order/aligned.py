"""Lists made along a set and read by each element's place in it: ``rows[i]`` for ``i, name in enumerate(names)``.

A set that does not change gives its elements in one order however often it is gone along, so what is read there belongs to the
element, wherever that stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Comprehension,
    Do,
    Expression,
    Leave,
    Loop,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.use_def import bound
from torchrepro_lint.syntax.visitor import last_word, statements

if TYPE_CHECKING:
    from torchrepro_lint.syntax.use_def import Spot, Spots
    from torchrepro_lint.value_flow import ValueFlow

_LOOKING = frozenset({"enumerate", "len", "sorted", "min", "max", "any", "all", "print"})
_ASKING = frozenset({"in", "not in", "==", "!=", "<", ">", "<=", ">=", "not"})


def is_aligned(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether an item is that of the element of a set, at whose place it stands."""
    spots = project.uses.spots(path)
    spot = spots.of(subscript)
    match subscript:
        case Subscript(value=Ref(roots=(made,), path=()), indices=(Ref(roots=(index,), path=()),)) if spot is not None:
            loop = next((b.owner for b in reversed(spot.blocks) if _binds(spots, b.owner, index)), None)
            along = _numbered(loop) if isinstance(loop, Loop) else ""
            return (
                bool(along)
                and _is_constant(project, path, spots, along)
                and _is_made_along(project, path, spots, made, along)
            )
    return False


def _binds(spots: Spots, owner: object, root: str) -> bool:
    """Whether a loop gives a variable its values, and nothing in its body does."""
    if not isinstance(owner, Loop) or owner.target is None:
        return False
    written = [ref for ref in spots.reads(root) if owner.start <= ref.start < owner.end and _is_written(spots, ref)]
    return any(ref is each for ref in written for each in bound(owner.target)) and len(written) == 1


def _is_written(spots: Spots, ref: Ref) -> bool:
    spot = spots.of(ref)
    return spot is not None and spot.written


def _numbered(loop: Loop) -> str:
    """The variable that a loop goes along with the places of its elements."""
    match loop:
        case Loop(
            target=Collection(items=(Ref(path=()), _)),
            source=Call(func=Ref(roots=("builtins.enumerate",), path=()), args=(arg,)),
        ):
            return _variable(arg.value)
    return ""


def _variable(value: Expression) -> str:
    return value.roots[0] if isinstance(value, Ref) and not value.path and len(value.roots) == 1 else ""


def _is_constant(project: ValueFlow, path: str, spots: Spots, root: str) -> bool:
    """Whether a local variable is bound once, and what it holds is only gone along or looked at."""
    given = project.origins.assignments(path).get(root, ())
    passed = project.resolver.parameter(path + root) is not None
    if "<locals>" not in root or len(given) + passed != 1:
        return False
    for ref in spots.reads(root):
        spot = spots.of(ref)
        assert spot is not None
        match spot.parent:
            case None if isinstance(spot.statement, Loop) or _is_given(spot):
                continue
            case Comprehension(clauses=clauses) if any(clause.source is ref for clause in clauses):
                continue
            case Call(func=func) if not ref.path and last_word(func) in _LOOKING:
                continue
            case Operation(op=op) if op in _ASKING:
                continue
        return False
    return True


def _is_given(spot: Spot) -> bool:
    """Whether a target is given a value, and keeps nothing of the one before."""
    return spot.written and isinstance(spot.statement, Assign) and spot.statement.op in ("=", ":")


def _is_made_along(project: ValueFlow, path: str, spots: Spots, root: str, along: str) -> bool:
    """Whether a list gets one item for each element, and is only read by places then."""
    given = [each.value for each in project.origins.assignments(path).get(root, ())]
    match given:
        case [Comprehension(kind="list", clauses=(clause,))]:
            whole = not clause.tests and _variable(clause.source) == along
            return whole and not list(_grown(spots, root, along, None))
        case [Collection(kind="list", items=()) as empty] if (spot := spots.of(empty)) is not None:
            return list(_grown(spots, root, along, spot)) == [True]
    return False


def _grown(spots: Spots, root: str, along: str, made: Spot | None) -> Iterator[bool]:
    """For each use but reading at a place whether it appends one item in each round of a loop along a variable, beside where
    the list was made.
    """
    for ref in spots.reads(root):
        spot = spots.of(ref)
        assert spot is not None
        match spot.parent:
            case None if _is_given(spot):
                continue
            case Subscript(value=value) if value is ref and not ref.path:
                continue
            case Call(func=func) if func is ref and ref.path == ("append",) and isinstance(spot.statement, Do):
                *around, block = spot.blocks
                beside = made is not None and [each.key for each in around] == [each.key for each in made.blocks]
                whole = isinstance(block.owner, Loop) and block.number == 0 and _goes_along(block.owner, along)
                yield beside and whole and spot.statement.value is spot.parent
            case _:
                yield False


def _goes_along(loop: Loop, along: str) -> bool:
    """Whether a loop goes along all of a variable."""
    if any(isinstance(each, Leave) for each in statements(loop.body)):
        return False
    return _variable(loop.source) == along or _numbered(loop) == along
