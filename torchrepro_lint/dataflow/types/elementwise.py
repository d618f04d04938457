"""Operations that keep the shape of what they are given: arithmetic, activations, casts, moves between devices.

What operators give.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types.annotations import DTYPES
from torchrepro_lint.dataflow.types.lattice import (
    UNKNOWN,
    What,
    common_device,
    common_gradient,
    device_named,
    family,
    joined,
    promoted,
    tensor,
)
from torchrepro_lint.dataflow.types.reshaping import broadcast
from torchrepro_lint.dataflow.types.tensor_arguments import Given, Rule
from torchrepro_lint.syntax.nodes import Expression, Operation, Ref
from torchrepro_lint.syntax.visitor import parts

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_NUMBERS = ("int", "float", "bool")
_OPERANDS = ("tensor", "parameter", "ndarray", *_NUMBERS)


def arithmetic(op: str, left: What, right: What) -> What:
    """A binary operator with a tensor on one side."""
    one, other = (left, right) if left.is_tensor else (right, left)
    if op in ("in", "not in", "is", "is not"):
        return What("bool")
    if not other.kind:
        found = _fresh(What("tensor"), [one, other])
    elif other.kind not in _OPERANDS:
        return UNKNOWN
    elif op == "@":
        return matmul(left, right)
    else:
        found = pointwise([left, right])
    if op in _COMPARISONS:
        return found._replace(dtype="bool", family="bool", grad=False)
    return divided(found) if op == "/" else found


def pointwise(operands: list[What]) -> What:
    """What an operation gives that goes over its operands element by element."""
    dtype, kind = promoted(operands)
    shape = What("tensor", high=0, sizes=())
    for each in operands:
        shape = broadcast(shape, each if each.is_tensor else _without_shape(each))
    found = _fresh(shape, operands)._replace(dtype=dtype, family=kind)
    return found._replace(grad=False) if found.integral else found


def _without_shape(what: What) -> What:
    return What("tensor", high=0, sizes=()) if what.kind in _NUMBERS else What("tensor")


def _fresh(shape: What, operands: list[What]) -> What:
    laid = all(each.layout == "contiguous" or each.kind in _NUMBERS for each in operands)
    return shape._replace(
        layout="contiguous" if laid and operands else "",
        device=common_device(operands),
        grad=common_gradient(operands),
    )


def divided(what: What) -> What:
    """True division makes floating-point numbers of integers."""
    if not what.integral:
        return what
    return what._replace(dtype="", family="floating", grad=None if what.grad is None else False)


def matmul(left: What, right: What) -> What:
    """A product of matrices: of two vectors a number, with a vector a dimension less."""
    found = pointwise([left, right])._replace(layout="")
    a, b = left.ndim, right.ndim
    if a is None or b is None or not (left.is_tensor and right.is_tensor):
        both_high = left.low >= 2 and right.low >= 2
        low, high = (max(left.low, right.low), None) if both_high else (0, None)
        if both_high and left.high is not None and right.high is not None:
            high = max(left.high, right.high)
        return found._replace(low=low, high=high, sizes=None)
    count = max(a, b) - (a == 1) - (b == 1) if max(a, b) > 1 else 0
    return found._replace(low=count, high=count, sizes=_product_sizes(left, right, count))


def _product_sizes(left: What, right: What, count: int) -> tuple[int | None, ...] | None:
    if left.sizes is None or right.sizes is None or len(left.sizes) < 2 or len(right.sizes) != 2:
        return None
    return (*left.sizes[:-1], right.sizes[-1]) if count == len(left.sizes) else None


def same(given: Given) -> What:
    """Everything stays."""
    return given.tensor._replace(kind="tensor")


def strided(given: Given) -> What:
    """The same, laid out in a way that is not known."""
    found = same(given)
    return found._replace(layout="" if found.layout == "contiguous" else found.layout)


def floats(given: Given) -> What:
    """The same shape, integers become floating-point numbers: ``exp``."""
    found = same(given)
    return found._replace(dtype="", family="floating", grad=False) if found.integral else found


def truths(given: Given) -> What:
    """The same shape, of booleans: ``isnan``."""
    return same(given)._replace(dtype="bool", family="bool", grad=False)


def compared(given: Given) -> What:
    """``x.eq(y)``."""
    return pointwise(given.operands()[:2])._replace(dtype="bool", family="bool", grad=False)


def combined(given: Given) -> What:
    """``x.add(y)``, ``torch.maximum(x, y)``: all tensors of the call, element by element."""
    operands = given.operands()
    return pointwise(operands[:2] if len(operands) > 1 else operands)


def quotient(given: Given) -> What:
    """``x.div(y)``; with a rounding mode integers stay integers."""
    found = combined(given)
    return divided(found) if given.value(9, "rounding_mode") is None else found


def chosen(given: Given) -> What:
    """``torch.where(condition, x, y)``; with the condition alone a tuple of indices."""
    operands = given.operands()
    if len(operands) == 1:
        return What("tuple", of=tensor("integer", dtype="int64", sizes=(None,)))
    if given.receiver is not None:  # x.where(condition, y)
        operands = [operands[1], operands[0], *operands[2:]]
    if len(operands) < 3:
        return What("tensor")
    found = pointwise(operands[1:3])
    return broadcast(found, operands[0] if operands[0].is_tensor else What("tensor"))._replace(layout="")


def cast(dtype: str) -> Rule:
    """``x.long()``: the rule for one dtype."""
    exact, kind = DTYPES[dtype]

    def rule(given: Given) -> What:
        return with_dtype(same(given), exact, kind)

    return rule


def with_dtype(what: What, dtype: str, kind: str) -> What:
    """The tensor in another dtype; a gradient flows through floating-point numbers only."""
    if kind in ("integer", "bool"):
        return what._replace(dtype=dtype, family=kind, grad=False)
    return what._replace(dtype=dtype, family=kind, grad=False if what.integral else what.grad)


def moved(given: Given) -> What:
    """``x.to(...)``: to a dtype, a device, or both of another tensor."""
    found = same(given)
    operands = [given.what(at) for at in (1, 2)] + [given.what(-1, word) for word in ("dtype", "device", "other")]
    words = [_last_word(given, at) for at in (0, 1)]
    for at, each in enumerate(operands):
        if each is None or each.kind in ("bool", "none"):
            continue
        if each.kind == "dtype":
            found = with_dtype(found, each.dtype, each.family)
        elif each.kind in ("device", "str", "int") or at == 3 or (at < 2 and words[at].startswith(_DEVICES)):
            found = found._replace(device=device_named(each))
        elif each.is_tensor:
            found = with_dtype(found, each.dtype, each.family)._replace(device=each.device)
        else:
            found = found._replace(dtype="", family="", device="" if at < 2 else found.device)
    return found


_DEVICES = ("device", "dev", "rank", "local_rank", "gpu", "cuda", "cpu")


def _last_word(given: Given, at: int) -> str:
    """The last word of a positional argument's name: what is called ``device`` is one."""
    from torchrepro_lint.syntax.nodes import Ref

    args = [arg.value for arg in given.call.args if arg.keyword is None and not arg.star]
    if at < len(args) and isinstance(args[at], Ref):
        ref = args[at]
        assert isinstance(ref, Ref)
        return ref.path[-1] if ref.path else ref.roots[0].rpartition(".")[2]
    return ""


def to_device(device: str) -> Rule:
    """``x.cpu()``: the rule for one device."""
    return lambda given: same(given)._replace(device=device)


def like(given: Given) -> What:
    """``x.type_as(y)``."""
    other = given.what(1, "other") or UNKNOWN
    return with_dtype(same(given), other.dtype, other.family)._replace(device=other.device)


def typed(given: Given) -> What:
    """``x.type(torch.long)``; without an argument the name of the type."""
    dtype = given.what(1, "dtype")
    if dtype is None:
        return What("str")
    return with_dtype(same(given), dtype.dtype, family(dtype) if dtype.kind == "dtype" else dtype.family)


def detached(given: Given) -> What:
    return same(given)._replace(grad=False)


def requiring(given: Given) -> What:
    """``x.requires_grad_(flag)``."""
    flag = given.value(1, "requires_grad", default=True)
    return given.tensor._replace(grad=False if flag is False else None)


def contiguous(given: Given) -> What:
    asked = given.what(1, "memory_format")
    return same(given)._replace(layout="contiguous" if asked is None else "")


_ALL_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
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
        return arithmetic(op, left, right)
    if op in _ALL_COMPARISONS:
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
