"""Arguments of a call by the names of its parameters, and the constants among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Operation, Ref

if TYPE_CHECKING:
    from torchrepro_lint.entries import Spelling

Argument: TypeAlias = Callable[[str], Expression | None]


class _Open:
    """What is not known."""

    def __repr__(self) -> str:
        return "OPEN"


OPEN = _Open()
Literal: TypeAlias = str | bytes | int | float | complex | bool | tuple["Literal", ...] | _Open | None
_LITERALS = (str, bytes, int, float, complex, type(None))
# An expression of which nothing is known.
HIDDEN = Ref(0, 0, (), (), 0)


def arguments(spelling: Spelling, call: Call) -> Argument:
    """How to read a call: the expression given for a parameter, None where it is left out.

    Where ``*`` or ``**`` may give it, the expression is a name that nothing is known of.
    """
    given = {arg.keyword: arg.value for arg in call.args if arg.keyword is not None}
    positional = [arg for arg in call.args if arg.keyword is None and arg.star != "**"]
    stars = [index for index, arg in enumerate(positional) if arg.star]
    plain = positional[: stars[0]] if stars else positional
    given.update(zip(spelling.parameters, (arg.value for arg in plain), strict=False))
    hidden = set(spelling.parameters[len(plain) :]) if stars else set()
    if any(arg.star == "**" for arg in call.args):
        hidden |= {*spelling.parameters[len(plain) :], *spelling.keywords}
    return lambda name: given.get(name, HIDDEN if name in hidden else None)


def is_hidden(value: Expression | None) -> bool:
    """Whether a parameter is only known to be passed by a star, if at all."""
    return value is HIDDEN


def literal(value: Expression) -> Literal:
    """The constant that an expression is; ``OPEN`` for anything else, also inside a tuple or list."""
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, _LITERALS) else OPEN  # `...` is a constant too
    if isinstance(value, Collection) and value.kind in ("tuple", "list"):
        return tuple(OPEN if item is None else literal(item) for item in value.items) if _plain(value) else OPEN
    if isinstance(value, Operation):
        return _computed(value.op, [literal(operand) for operand in value.operands])
    return OPEN


def _computed(op: str, operands: list[Literal]) -> Literal:
    """Negative numbers, and repeated sequences: ``(1,) * 4``."""
    match op, operands:
        case "-", [int() | float() as number]:
            return -number
        case ("*", [tuple() as items, int() as count]) | ("*", [int() as count, tuple() as items]) if 0 <= count < 100:
            return items * count
    return OPEN


def _plain(value: Collection) -> bool:
    """Whether every item is one element (no ``*rest``)."""
    return not any(isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1 for item in value.items)
