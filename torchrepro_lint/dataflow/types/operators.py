"""Types of operators: arithmetic and comparisons of tensors, numbers, containers and sets, and conditional expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.types import containers
from torchrepro_lint.dataflow.types.bindings import assume
from torchrepro_lint.dataflow.types.lattice import NUMBERS, TEXT, UNKNOWN, AbstractValue, join_all, not_none
from torchrepro_lint.dataflow.types.tensor_functions import matmul, pointwise
from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, Operation, Ref
from torchrepro_lint.syntax.visitor import operands_of

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_MEMBERSHIP = ("in", "not in", "is", "is not")
_WITH_TENSORS = ("", "tensor", "parameter", "ndarray", *NUMBERS)
_SETS = ("set", "frozenset")


def operation_value(inference: TypeInference, operation: Operation, point: ProgramPoint) -> AbstractValue:
    """The type of an operation's result."""
    match operation.op, operation.operands:
        case "if", (test, one, other):
            sides = ((one, True), (other, False))
            return join_all(*(_where(inference, test, each, point, truth=truth) for each, truth in sides))
        case "or", (*first, last):
            found = [inference.infer(each, point) for each in first]
            return join_all(*(not_none(each) for each in found if each.kind != "none"), inference.infer(last, point))
        case "and", operands:
            return join_all(*(inference.infer(each, point) for each in operands))
        case "not", _:
            return AbstractValue("bool")
        case "f", _:
            return TEXT
        case ":=", (_, value):
            return inference.infer(value, point)
        case "*", (value,):
            return inference.infer(value, point)
        case ("-" | "+" | "~") as op, (value,):
            return _unary(op, inference.infer(value, point))
        case "&" | "-" | "|" | "^", (left, right) if any(_is_view(inference, each, point) for each in (left, right)):
            return AbstractValue("set")
        case op, (left, right):
            return binary_value(op, inference.infer(left, point), inference.infer(right, point))
    return UNKNOWN


def _is_view(inference: TypeInference, value: Expression, point: ProgramPoint) -> bool:
    """Whether an expression is the keys or items of a dictionary, or may be: their algebra gives sets."""
    match value:
        case Call(func=Ref(path=(*before, "keys" | "items")) as func, args=()):
            whole: Expression = func._replace(path=tuple(before))
        case Call(func=Attribute(value=whole, name="keys" | "items"), args=()):
            pass
        case _:
            return False
    return inference.infer(whole, point).kind in ("dict", "loaded", "")


def _where(
    inference: TypeInference, test: Expression, value: Expression, point: ProgramPoint, *, truth: bool
) -> AbstractValue:
    """The type of a value where a test holds, or fails: ``x if x is not None else y``."""
    if isinstance(value, Ref):  # other values are cached by their environment
        point = point._replace(env=assume(test, point.env, truth=truth))
    return inference.infer(value, point)


def augmented_value(op: str, before: AbstractValue, value: AbstractValue) -> AbstractValue:
    """The type of a variable after ``before op= value``."""
    if before.kind == "list" and op in ("+", "*"):
        joined = join_all(before.contents, value.element) if before.contents and op == "+" else before.contents
        return AbstractValue("list", contents=joined)
    return binary_value(op, before, value)


def binary_value(op: str, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The type of a binary operation or comparison."""
    if "nothing" in (left.kind, right.kind):
        return left if left.kind == "nothing" else right
    if left.is_tensor or right.is_tensor:
        return _of_tensors(op, left, right)
    if op in _MEMBERSHIP:
        return AbstractValue("bool")
    if op in _COMPARISONS:
        mixed = any(each.kind in ("", "ndarray", "series", "dataframe", "instance") for each in (left, right))
        return AbstractValue(family="bool", grad=False) if mixed else AbstractValue("bool")
    if "ndarray" in (left.kind, right.kind):
        return AbstractValue("ndarray") if {left.kind, right.kind} <= {"ndarray", *NUMBERS} else UNKNOWN
    if left.kind in NUMBERS and right.kind in NUMBERS:
        return _number(op, left, right)
    if left.kind in _SETS and op in ("&", "-", "|", "^"):
        joined = join_all(left.contents, right.contents) if left.contents and right.contents else None
        return AbstractValue(left.kind, contents=left.contents if op in "&-" else joined)
    if left.kind == "path":
        return AbstractValue("path") if op == "/" else UNKNOWN
    if left.kind == right.kind and op == "+" and left.kind in ("list", "tuple", "str", "bytes"):
        return _appended(left, right)
    if op == "*" and {left.kind, right.kind} in ({"list", "int"}, {"tuple", "int"}, {"str", "int"}):
        return _repeated(left, right)
    if op == "|" and {left.kind, right.kind} <= {"dict", "loaded"}:
        return containers.mapping((left, right))
    return TEXT if op == "%" and left.kind == "str" else UNKNOWN


def _of_tensors(op: str, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The result of a binary operator with a tensor on one side."""
    if op in _MEMBERSHIP:
        return AbstractValue("bool")
    if left.kind not in _WITH_TENSORS or right.kind not in _WITH_TENSORS:
        return UNKNOWN
    found = matmul(left, right) if op == "@" else pointwise((left, right))
    if op in _COMPARISONS:
        return found._replace(dtype="bool", family="bool", grad=False)
    return found._replace(dtype="", family="floating") if op == "/" and found.integral else found


def _unary(op: str, what: AbstractValue) -> AbstractValue:
    if what.is_tensor:
        return what._replace(kind="tensor", constructor_call=None, value=None)
    if what.kind in NUMBERS:
        kind = "int" if what.kind == "bool" else what.kind
        value = -what.value if op == "-" and isinstance(what.value, int | float) else None
        return AbstractValue(kind, value=value)
    return what if what.kind in ("ndarray", "nothing") else UNKNOWN


def _number(op: str, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    kind = "float" if "float" in (left.kind, right.kind) or op == "/" else "int"
    a, b = left.value, right.value
    if op == "**" and not (isinstance(b, int) and b >= 0):
        return AbstractValue(kind) if kind == "float" else UNKNOWN
    if kind == "int" and type(a) is int and type(b) is int and op in _INTEGERS:
        return AbstractValue("int", value=_INTEGERS[op](a, b) if op not in ("//", "%") or b else None)
    return AbstractValue(kind)


_INTEGERS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def _appended(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    items = left.items + right.items if left.items is not None and right.items is not None else None
    contents = join_all(left.contents, right.contents) if left.contents and right.contents else None
    return AbstractValue(left.kind, contents=contents, items=items)


def _repeated(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    what, count = (left, right.value) if right.kind == "int" else (right, left.value)
    items = (
        what.items * count if what.items and isinstance(count, int) and 0 <= count < limits.MAX_REPEATED_ITEMS else None
    )
    return AbstractValue(what.kind, contents=what.contents, items=items)


def references(expression: Expression) -> Iterator[Ref]:
    """The references in an expression, callees included."""
    if isinstance(expression, Ref):
        yield expression
        return
    for part in operands_of(expression):
        yield from references(part)
