"""Whether a function views what a call gives: then the layout of the result matters, not only its values."""

from __future__ import annotations

from typing import TypeAlias

from torchrepro_lint.syntax.nodes import Assign, Attribute, Call, Expression, Operation, Ref, Statement, Subscript
from torchrepro_lint.syntax.visitor import expressions, last_word, statements, within

_VIEWS = frozenset({"view", "view_as"})
# What they give is laid out afresh, or is no tensor.
_FRESH = frozenset(
    {"contiguous", "reshape", "flatten", "matmul", "mm", "bmm", "size", "dim", "tolist", "item", "numel"}
)

_Variable: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class Views:
    """The views of a body, which is walked once."""

    def __init__(self, body: tuple[Statement, ...]) -> None:
        every = list(statements(body))
        self._views = [
            each for statement in every for part in expressions(statement) for each in within(part) if _may_view(each)
        ]
        self._assigned = [each for each in every if isinstance(each, Assign)] if self._views else []

    def of(self, call: Call) -> bool:
        """Whether ``view`` or ``view_as`` is called on what a call of the body gives, through variables or not."""
        carriers: set[_Variable] = set()
        while fresh := {each for one in self._assigned for each in _assigned(one, call, carriers)} - carriers:
            carriers |= fresh
        return any(_is_view(each, call, carriers) for each in self._views)


def _may_view(expression: Expression) -> bool:
    return isinstance(expression, Call) and last_word(expression.func) in _VIEWS


def _assigned(statement: Assign, call: Call, carriers: set[_Variable]) -> list[_Variable]:
    """The variables that a statement makes carry the result."""
    if statement.value is None or not _carries(statement.value, call, carriers):
        return []
    return [(target.roots, target.path) for target in statement.targets if isinstance(target, Ref)]


def _is_view(expression: Expression, call: Call, carriers: set[_Variable]) -> bool:
    match expression:
        case Call(func=Ref(roots=roots, path=(*before, word))):
            return word in _VIEWS and _is_carrier(roots, tuple(before), carriers)
        case Call(func=Attribute(value=value, name=word)):
            return word in _VIEWS and _carries(value, call, carriers)
    return False


def _carries(expression: Expression, call: Call, carriers: set[_Variable]) -> bool:
    """Whether an expression gives the result of the call, or something laid out as that is."""
    match expression:
        case Call(start=start, end=end) if (start, end) == (call.start, call.end):
            return True
        case Call(func=Attribute(value=value, name=word)):
            return word not in _FRESH and _carries(value, call, carriers)
        case Call(func=Ref(roots=roots, path=(*before, word))):
            return word not in _FRESH and _is_carrier(roots, tuple(before), carriers)
        case Ref(roots=roots, path=path):
            return _is_carrier(roots, path, carriers)
        case Attribute(value=value) | Subscript(value=value):
            return _carries(value, call, carriers)
        case Operation(operands=operands):
            return any(_carries(operand, call, carriers) for operand in operands)
    return False


def _is_carrier(roots: tuple[str, ...], path: tuple[str, ...], carriers: set[_Variable]) -> bool:
    """Whether a variable, or what it is an attribute of, carries the result."""
    return any((roots, path[:count]) in carriers for count in range(len(path) + 1))
