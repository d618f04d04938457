"""Constant propagation: the one constant that an expression can be, and its value when no option is given.

Expressions are also written as short text here, for messages.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE, LiteralValue, literal_value
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Constant, Expression, Operation, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names


def propagated_constant(names: Names, path: str, expression: Expression | None) -> LiteralValue:
    """The one constant that an expression of a file can be; ``OPEN`` if there are several, or any."""
    if expression is None:
        return UNKNOWN_VALUE
    found = [literal_value(value) for _, value in names.values(path, expression)]
    first = found[0] if found else UNKNOWN_VALUE
    return first if all(type(each) is type(first) and each == first for each in found) else UNKNOWN_VALUE


def describe(expression: Expression | None) -> str:
    """An expression as short text: ``args.fast``, ``not debug``, ``get_flag(...)``; ``...`` for longer ones."""
    match expression:
        case Constant(value=value):
            return f'"{value}"' if isinstance(value, str) else repr(value)
        case Ref(roots=roots, path=path):
            return ".".join((_word(roots[0]), *path)) if roots else "..."
        case Attribute(value=value, name=name):
            return f"{describe(value)}.{name}"
        case Call(func=func, args=args):
            return f"{describe(func)}({'...' if args else ''})"
        case Subscript(value=value, indices=(index,)):
            return f"{describe(value)}[{describe(index)}]"
        case Operation(op="not", operands=(operand,)):
            return f"not {describe(operand)}"
        case Operation(op=op, operands=(left, right)) if op in _BINARY:
            return f"{describe(left)} {op} {describe(right)}"
        case Operation(op="if", operands=(test, one, other)):
            return f"{describe(one)} if {describe(test)} else {describe(other)}"
        case Collection(kind="list", items=()):
            return "[]"
    return "..."


_BINARY = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "and", "or", "+", "-", "*", "%"})


def _word(root: str) -> str:
    """A root as it is written: ``args`` for ``:main.<locals>.args``, ``torch.cuda`` unchanged."""
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


class DefaultValue(NamedTuple):
    """A value that an option has by default, and the option as the program reads it (empty for a plain literal)."""

    value: object
    option: str


def value_by_default(names: Names, path: str, test: Expression, command: str | None) -> DefaultValue | None:
    """The value of an expression if no option is given on the command line; None if unknown.

    ``command`` is the function that the command line calls: its parameters are options.
    """
    match test:
        case Operation(op="not", operands=(operand,)):
            inner = value_by_default(names, path, operand, command)
            return inner and inner._replace(value=not inner.value)
        case Operation(op="and" | "or" as op, operands=operands):
            return _default_of_boolean(op, [value_by_default(names, path, each, command) for each in operands])
        case Operation(op=op, operands=(left, right)) if op in _COMPARISONS:
            return _default_of_comparison(
                op, value_by_default(names, path, left, command), value_by_default(names, path, right, command)
            )
    found = {_default_of_leaf(names, file, value, command) for file, value in names.values(path, test)}
    return found.pop() if len(found) == 1 else None


def _default_of_boolean(op: str, parts: list[DefaultValue | None]) -> DefaultValue | None:
    """Short circuit: one operand may decide alone, otherwise all must be known."""
    for part in parts:
        if part is not None and bool(part.value) is (op == "or"):
            return part
    known = [part for part in parts if part is not None]
    return known[-1] if known and len(known) == len(parts) else None


def _default_of_comparison(op: str, left: DefaultValue | None, right: DefaultValue | None) -> DefaultValue | None:
    if left is None or right is None:
        return None
    try:
        return DefaultValue(_COMPARISONS[op](left.value, right.value), left.option or right.option)
    except TypeError:
        return None


def _default_of_leaf(names: Names, path: str, value: Expression, command: str | None) -> DefaultValue | None:
    if isinstance(value, Constant):
        return DefaultValue(value.value, "")
    options = names.options.of(path, value)
    if options:
        default = options[0].default
        return DefaultValue(default.value, _option_text(value)) if default is not None and len(options) == 1 else None
    if (
        command
        and isinstance(value, Ref)
        and any(f"{path}{root}".startswith(f"{command}.<locals>.") for root in value.roots)
    ):
        default_of = names.default(path, value)
        return DefaultValue(default_of.value, _option_text(value)) if isinstance(default_of, Constant) else None
    return None


def _option_text(value: Expression) -> str:
    """``args.seed`` as the program writes it."""
    if isinstance(value, Ref):
        return ".".join((value.roots[0].rpartition(".")[2].lstrip(":?"), *value.path))
    return "the option"
