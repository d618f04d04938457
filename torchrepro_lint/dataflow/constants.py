"""Expressions as short text for messages, and the one constant that an expression can be.

Whether a test holds when nothing is given on the command line.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": lambda one, other: one is other,
    "is not": lambda one, other: one is not other,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Default(NamedTuple):
    """A value that an option has by default, and the option as the program reads it (empty for a plain literal)."""

    value: object
    option: str


def by_default(names: Names, path: str, test: Expression, command: str | None) -> Default | None:
    """What an expression of a file is when no option is given; None where that is not known.

    ``command`` is the function that a command line calls, whose parameters are options.
    """
    match test:
        case Operation(op="not", operands=(operand,)):
            inner = by_default(names, path, operand, command)
            return inner and inner._replace(value=not inner.value)
        case Operation(op="and" | "or" as op, operands=operands):
            return _joined(op, [by_default(names, path, each, command) for each in operands])
        case Operation(op=op, operands=(left, right)) if op in _COMPARISONS:
            return _compared(op, by_default(names, path, left, command), by_default(names, path, right, command))
    found = {_leaf(names, file, value, command) for file, value in names.values(path, test)}
    return found.pop() if len(found) == 1 else None


def _joined(op: str, parts: list[Default | None]) -> Default | None:
    """One part may decide alone; else all must be known."""
    for part in parts:
        if part is not None and bool(part.value) is (op == "or"):
            return part
    known = [part for part in parts if part is not None]
    return known[-1] if known and len(known) == len(parts) else None


def _compared(op: str, left: Default | None, right: Default | None) -> Default | None:
    if left is None or right is None:
        return None
    try:
        return Default(_COMPARISONS[op](left.value, right.value), left.option or right.option)
    except TypeError:
        return None


def _leaf(names: Names, path: str, value: Expression, command: str | None) -> Default | None:
    if isinstance(value, Constant):
        return Default(value.value, "")
    options = names.options.of(path, value)
    if options:
        default = options[0].default
        return Default(default.value, _text(value)) if default is not None and len(options) == 1 else None
    if (
        command
        and isinstance(value, Ref)
        and any(f"{path}{root}".startswith(f"{command}.<locals>.") for root in value.roots)
    ):
        default_of = names.default(path, value)
        return Default(default_of.value, _text(value)) if isinstance(default_of, Constant) else None
    return None


def _text(value: Expression) -> str:
    """``args.seed`` as the program writes it."""
    if isinstance(value, Ref):
        return ".".join((value.roots[0].rpartition(".")[2].lstrip(":?"), *value.path))
    return "the option"
