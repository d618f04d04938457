"""Expressions as short text for messages, and the one constant that an expression can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN, Literal, literal
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Constant, Expression, Operation, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names


def constant(names: Names, path: str, expression: Expression | None) -> Literal:
    """The constant that an expression of a file always is; ``OPEN`` where it may be several, or anything."""
    if expression is None:
        return OPEN
    found = [literal(value) for _, value in names.values(path, expression)]
    first = found[0] if found else OPEN
    return first if all(type(each) is type(first) and each == first for each in found) else OPEN


def spoken(expression: Expression | None) -> str:
    """An expression in a few words: ``args.fast``, ``not debug``, ``get_flag(...)``; ``...`` for what takes more."""
    match expression:
        case Constant(value=value):
            return f'"{value}"' if isinstance(value, str) else repr(value)
        case Ref(roots=roots, path=path):
            return ".".join((_word(roots[0]), *path)) if roots else "..."
        case Attribute(value=value, name=name):
            return f"{spoken(value)}.{name}"
        case Call(func=func, args=args):
            return f"{spoken(func)}({'...' if args else ''})"
        case Subscript(value=value, indices=(index,)):
            return f"{spoken(value)}[{spoken(index)}]"
        case Operation(op="not", operands=(operand,)):
            return f"not {spoken(operand)}"
        case Operation(op=op, operands=(left, right)) if op in _BETWEEN:
            return f"{spoken(left)} {op} {spoken(right)}"
        case Operation(op="if", operands=(test, one, other)):
            return f"{spoken(one)} if {spoken(test)} else {spoken(other)}"
        case Collection(kind="list", items=()):
            return "[]"
    return "..."


_BETWEEN = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "and", "or", "+", "-", "*", "%"}
)


def _word(root: str) -> str:
    """The word that a root is written as: ``args`` of ``:main.<locals>.args``, ``torch.cuda`` as it is."""
    if root.startswith((":", "?")):
        return root.rpartition(".")[2].lstrip(":?")
    return root.removeprefix("builtins.")
