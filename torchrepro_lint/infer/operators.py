"""What operators give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.infer.what import UNKNOWN, What, joined
from torchrepro_lint.syntax.nodes import Expression, Operation, Ref
from torchrepro_lint.syntax.visitor import parts

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
_NUMBERS = ("int", "float", "bool")
_SETS = ("set", "frozenset")


def result(kinds: TypeInference, operation: Operation, spot: Spot) -> What:
    """What an operation gives."""
    match operation.op, operation.operands:
        case "if", (_, one, other):
            return joined(kinds.what(one, spot), kinds.what(other, spot))
        case "or" | "and", operands:
            found = [kinds.what(each, spot) for each in operands]
            return joined(*found)
        case "not", _:
            return What("bool")
        case "f", _:
            return What("str", of=What("str"))
        case ":=", (_, value):
            return kinds.what(value, spot)
        case "*", (value,):
            return kinds.what(value, spot)
        case ("-" | "+" | "~") as op, (value,):
            return _unary(op, kinds.what(value, spot))
        case op, (left, right):
            return binary(op, kinds.what(left, spot), kinds.what(right, spot))
    return UNKNOWN


def augmented(op: str, before: What, value: What) -> What:
    """What ``before op= value`` leaves."""
    if before.kind == "list" and op in ("+", "*"):
        return What("list", of=joined(before.of, value.element) if before.of and op == "+" else before.of)
    return binary(op, before, value)


def binary(op: str, left: What, right: What) -> What:
    """What a binary operation or comparison gives."""
    if "nothing" in (left.kind, right.kind):
        return left if left.kind == "nothing" else right
    if left.is_tensor or right.is_tensor:
        from torchrepro_lint.infer.elementwise import arithmetic

        return arithmetic(op, left, right)
    if op in _COMPARISONS:
        mixed = any(each.kind in ("", "ndarray", "series", "dataframe", "instance") for each in (left, right))
        return What("bool") if op in ("in", "not in", "is", "is not") or not mixed else What(family="bool", grad=False)
    if "ndarray" in (left.kind, right.kind):
        return What("ndarray") if {left.kind, right.kind} <= {"ndarray", *_NUMBERS} else UNKNOWN
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        return _number(op, left, right)
    if left.kind in _SETS and op in ("&", "-", "|", "^"):
        return What(
            left.kind, of=left.of if op in "&-" else joined(left.of, right.of) if left.of and right.of else None
        )
    if left.kind == "path" and op == "/":
        return What("path")
    if left.kind == right.kind and op == "+" and left.kind in ("list", "tuple", "str", "bytes"):
        return _appended(left, right)
    if op == "%" and left.kind == "str":
        return What("str", of=What("str"))
    if op == "*" and {left.kind, right.kind} in ({"list", "int"}, {"tuple", "int"}, {"str", "int"}):
        return _repeated(left, right)
    return left if left.kind == "dict" and op == "|" and right.kind == "dict" and left == right else UNKNOWN


def _unary(op: str, what: What) -> What:
    if what.is_tensor:
        return what._replace(kind="tensor", made=None, value=None)
    if what.kind in _NUMBERS:
        kind = "int" if what.kind == "bool" else what.kind
        value = -what.value if op == "-" and isinstance(what.value, int | float) else None
        return What(kind, value=value)
    return what if what.kind in ("ndarray", "nothing") else UNKNOWN


def _number(op: str, left: What, right: What) -> What:
    kind = "float" if "float" in (left.kind, right.kind) or op == "/" else "int"
    a, b = left.value, right.value
    if op == "**" and not (isinstance(b, int) and b >= 0):
        return What(kind) if kind == "float" else UNKNOWN
    if kind == "int" and type(a) is int and type(b) is int and op in _INTEGERS:
        return What("int", value=_INTEGERS[op](a, b) if op not in ("//", "%") or b else None)
    return What(kind)


_INTEGERS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def _appended(left: What, right: What) -> What:
    items = left.items + right.items if left.items is not None and right.items is not None else None
    return What(left.kind, of=joined(left.of, right.of) if left.of and right.of else None, items=items)


def _repeated(left: What, right: What) -> What:
    what, count = (left, right.value) if right.kind == "int" else (right, left.value)
    items = what.items * count if what.items and isinstance(count, int) and 0 <= count < 100 else None
    return What(what.kind, of=what.of, items=items)


def references(expression: Expression) -> Iterator[Ref]:
    """The names in an expression, those of calls' functions included."""
    if isinstance(expression, Ref):
        yield expression
        return
    for part in parts(expression):
        yield from references(part)
