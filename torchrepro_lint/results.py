"""What becomes of the result of a call: which part of a pair of values and indices is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Assign, Attribute, Collection, Constant, Do, Loop, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import expressions, parts, statements

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.syntax.nodes import Expression, Facts, Statement

_PARTS = ("values", "indices")


def uses_part(facts: Facts, site: Site, part: str | None) -> bool:
    """Whether a part (``values`` or ``indices``) of what a call returns is used; None asks for any of it.

    Handed on as a whole, to a caller or a function, all of it counts as used.
    """
    chain = _above(site.statement, site.call)
    if chain:
        return _takes(chain[-1], part)
    statement = site.statement
    if isinstance(statement, Do):
        return False
    if not isinstance(statement, Assign) or statement.op not in ("=", ":"):
        return True
    return any(_is_read(facts, target, part) for target in statement.targets)


def _is_read(facts: Facts, target: Expression, part: str | None) -> bool:
    """Whether a part of what is assigned to a target is read anywhere in the file."""
    match target:
        case Collection(items=items) if part is not None:
            index = _PARTS.index(part)
            picked = items[index] if len(items) == len(_PARTS) else None
            return True if picked is None else _is_read(facts, picked, None)
        case Ref(roots=roots, path=()):
            return any(_takes(above, part) if above is not None else True for above in _reads(facts, frozenset(roots)))
    return True


def _reads(facts: Facts, roots: frozenset[str]) -> Iterator[Expression | None]:
    """What each reading of a variable stands in; None where it stands alone."""
    for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
        for statement in statements(body):
            bound = _bound(statement)
            for expression in expressions(statement):
                if not any(expression is target for target in bound):
                    yield from _found(expression, roots, None)


def _bound(statement: Statement) -> tuple[Expression | None, ...]:
    """The targets of a statement, which are written and not read."""
    if isinstance(statement, Assign) and statement.op in ("=", ":"):
        return statement.targets
    return (statement.target,) if isinstance(statement, Loop) else ()


def _found(expression: Expression, roots: frozenset[str], above: Expression | None) -> Iterator[Expression | None]:
    if isinstance(expression, Ref):
        if roots.intersection(expression.roots):
            yield expression if expression.path else above
        return
    for each in parts(expression):
        yield from _found(each, roots, expression)


def _takes(above: Expression, part: str | None) -> bool:
    """Whether an expression takes a part out of a pair that is its operand."""
    if part is None:
        return True
    match above:
        case Attribute(name=word) | Ref(path=(word, *_)):
            return word == part or word not in _PARTS
        case Subscript(indices=(Constant(value=int(index)),)):
            return index % 2 == _PARTS.index(part)
        case Subscript(indices=(Operation(op="-", operands=(Constant(value=int(index)),)),)):
            return -index % 2 == _PARTS.index(part)
    return True


def _above(statement: Statement, wanted: Expression) -> list[Expression]:
    """The expressions around one in a statement, outermost first."""
    for expression in expressions(statement):
        if (chain := _chain(expression, wanted)) is not None:
            return chain
    return []


def _chain(expression: Expression, wanted: Expression) -> list[Expression] | None:
    if expression is wanted:
        return []
    for each in parts(expression):
        if (chain := _chain(each, wanted)) is not None:
            return [expression, *chain]
    return None
