"""What a test around an event says of a value: that it is not None, or that it is not true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Expression, Operation, Ref
from torchrepro_lint.syntax.visitor import is_none

if TYPE_CHECKING:
    from torchrepro_lint.syntax.events import Guard


def is_given(guard: Guard, value: Expression | None) -> bool:
    """Whether a test around rules out that a value is None: ``if seed is not None``, ``if seed``."""
    match guard.kind, guard.value:
        case "if", Operation(op="and", operands=operands):
            return any(is_given(guard._replace(value=each), value) for each in operands)
        case ("if", Operation(op="is not" | "!=", operands=(tested, other))) | (
            "else",
            Operation(op="is" | "==", operands=(tested, other)),
        ):
            return is_none(other) and _is_same(tested, value)
        case "else", Operation(op="not", operands=(tested,)):
            return _is_same(tested, value)
        case "if", tested:
            return _is_same(tested, value)
    return False


def is_off(guard: Guard, value: Expression | None) -> bool:
    """Whether a test around lets come only what is not true: ``if not shuffle``, and the ``else`` of ``if shuffle``."""
    match guard.kind, guard.value:
        case "if", Operation(op="not", operands=(tested,)):
            return _is_same(tested, value)
        case "if", Operation(op="and", operands=operands):
            return any(is_off(guard._replace(value=each), value) for each in operands)
        case "else", tested:
            return _is_same(tested, value)
    return False


def _is_same(one: Expression, other: Expression | None) -> bool:
    return isinstance(one, Ref) and isinstance(other, Ref) and (one.roots, one.path) == (other.roots, other.path)
