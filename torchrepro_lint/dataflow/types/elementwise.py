"""Transfer functions that keep the shape: operators, arithmetic with broadcasting, activations, casts, moves between
devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import containers
from torchrepro_lint.dataflow.types.annotations import DTYPES
from torchrepro_lint.dataflow.types.bindings import assume
from torchrepro_lint.dataflow.types.lattice import (
    UNKNOWN,
    AbstractValue,
    common_device,
    common_gradient,
    device_type,
    dtype_family,
    join_all,
    not_none,
    promoted_dtype,
    tensor,
)
from torchrepro_lint.dataflow.types.reshaping import broadcast
from torchrepro_lint.dataflow.types.tensor_arguments import TorchArguments, TransferFunction
from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, Operation, Ref
from torchrepro_lint.syntax.qualified_names import last_word
from torchrepro_lint.syntax.visitor import operands_of

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_NUMBERS = ("int", "float", "bool")
_OPERANDS = ("tensor", "parameter", "ndarray", *_NUMBERS)


def arithmetic(op: str, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The result of a binary operator with a tensor on one side."""
    one, other = (left, right) if left.is_tensor else (right, left)
    if op in ("in", "not in", "is", "is not"):
        return AbstractValue("bool")
    if not other.kind:
        found = _new_tensor(AbstractValue("tensor"), [one, other])
    elif other.kind not in _OPERANDS:
        return UNKNOWN
    elif op == "@":
        return matmul(left, right)
    else:
        found = pointwise([left, right])
    if op in _COMPARISONS:
        return found._replace(dtype="bool", family="bool", grad=False)
    return true_division(found) if op == "/" else found


def pointwise(operands: list[AbstractValue]) -> AbstractValue:
    """The result of an elementwise operation: broadcast shape, promoted dtype."""
    dtype, kind = promoted_dtype(operands)
    shape = AbstractValue("tensor", max_ndim=0, sizes=())
    for each in operands:
        shape = broadcast(shape, each if each.is_tensor else _without_shape(each))
    found = _new_tensor(shape, operands)._replace(dtype=dtype, family=kind)
    return found._replace(grad=False) if found.integral else found


def _without_shape(what: AbstractValue) -> AbstractValue:
    return AbstractValue("tensor", max_ndim=0, sizes=()) if what.kind in _NUMBERS else AbstractValue("tensor")


def _new_tensor(shape: AbstractValue, operands: list[AbstractValue]) -> AbstractValue:
    laid = all(each.layout == "contiguous" or each.kind in _NUMBERS for each in operands)
    return shape._replace(
        layout="contiguous" if laid and operands else "",
        device=common_device(operands),
        grad=common_gradient(operands),
    )


def true_division(what: AbstractValue) -> AbstractValue:
    """The result of true division: integers become floating-point."""
    if not what.integral:
        return what
    return what._replace(dtype="", family="floating", grad=None if what.grad is None else False)


def matmul(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """A matrix product: of two vectors a number, with one vector a dimension less."""
    found = pointwise([left, right])._replace(layout="")
    a, b = left.ndim, right.ndim
    if a is None or b is None or not (left.is_tensor and right.is_tensor):
        both_high = left.min_ndim >= 2 and right.min_ndim >= 2
        low, high = (max(left.min_ndim, right.min_ndim), None) if both_high else (0, None)
        if both_high and left.max_ndim is not None and right.max_ndim is not None:
            high = max(left.max_ndim, right.max_ndim)
        return found._replace(min_ndim=low, max_ndim=high, sizes=None)
    count = max(a, b) - (a == 1) - (b == 1) if max(a, b) > 1 else 0
    return found._replace(min_ndim=count, max_ndim=count, sizes=_product_sizes(left, right, count))


def _product_sizes(left: AbstractValue, right: AbstractValue, count: int) -> tuple[int | None, ...] | None:
    if left.sizes is None or right.sizes is None or len(left.sizes) < 2 or len(right.sizes) != 2:
        return None
    return (*left.sizes[:-1], right.sizes[-1]) if count == len(left.sizes) else None


def keep(arguments: TorchArguments) -> AbstractValue:
    """The tensor unchanged."""
    return arguments.tensor._replace(kind="tensor")


def keep_shape(arguments: TorchArguments) -> AbstractValue:
    """The tensor with unknown strides."""
    found = keep(arguments)
    return found._replace(layout="" if found.layout == "contiguous" else found.layout)


def to_floating(arguments: TorchArguments) -> AbstractValue:
    """The same shape, integers become floating-point: ``exp``."""
    found = keep(arguments)
    return found._replace(dtype="", family="floating", grad=False) if found.integral else found


def to_boolean(arguments: TorchArguments) -> AbstractValue:
    """The same shape, boolean: ``isnan``."""
    return keep(arguments)._replace(dtype="bool", family="bool", grad=False)


def comparison(arguments: TorchArguments) -> AbstractValue:
    """``x.eq(y)``."""
    return pointwise(arguments.operands()[:2])._replace(dtype="bool", family="bool", grad=False)


def arithmetic_call(arguments: TorchArguments) -> AbstractValue:
    """``x.add(y)``, ``torch.maximum(x, y)``: elementwise over the arguments."""
    operands = arguments.operands()
    return pointwise(operands[:2] if len(operands) > 1 else operands)


def quotient(arguments: TorchArguments) -> AbstractValue:
    """``x.div(y)``; with a rounding mode integers stay integers."""
    found = arithmetic_call(arguments)
    return true_division(found) if arguments.constant(9, "rounding_mode") is None else found


def where(arguments: TorchArguments) -> AbstractValue:
    """``torch.where(condition, x, y)``; with only the condition, a tuple of indices."""
    operands = arguments.operands()
    if len(operands) == 1:
        return AbstractValue("tuple", contents=tensor("integer", dtype="int64", sizes=(None,)))
    if arguments.receiver is not None:  # x.where(condition, y)
        operands = [operands[1], operands[0], *operands[2:]]
    if len(operands) < 3:
        return AbstractValue("tensor")
    found = pointwise(operands[1:3])
    return broadcast(found, operands[0] if operands[0].is_tensor else AbstractValue("tensor"))._replace(layout="")


def cast(dtype: str) -> TransferFunction:
    """The transfer function of a cast to one dtype: ``x.long()``."""
    exact, kind = DTYPES[dtype]

    def rule(arguments: TorchArguments) -> AbstractValue:
        return with_dtype(keep(arguments), exact, kind)

    return rule


def with_dtype(what: AbstractValue, dtype: str, kind: str) -> AbstractValue:
    """The tensor in another dtype; gradients flow only through floating-point numbers."""
    if kind in ("integer", "bool"):
        return what._replace(dtype=dtype, family=kind, grad=False)
    return what._replace(dtype=dtype, family=kind, grad=False if what.integral else what.grad)


def to(arguments: TorchArguments) -> AbstractValue:
    """``x.to(...)``: to a dtype, a device, or the dtype and device of another tensor."""
    found = keep(arguments)
    operands = [arguments.value_of(at) for at in (1, 2)] + [
        arguments.value_of(-1, word) for word in ("dtype", "device", "other")
    ]
    words = [_last_word(arguments, at) for at in (0, 1)]
    for at, each in enumerate(operands):
        if each is None or each.kind in ("bool", "none"):
            continue
        if each.kind == "dtype":
            found = with_dtype(found, each.dtype, each.family)
        elif each.kind in ("device", "str", "int") or at == 3 or (at < 2 and words[at].startswith(_DEVICES)):
            found = found._replace(device=device_type(each))
        elif each.is_tensor:
            found = with_dtype(found, each.dtype, each.family)._replace(device=each.device)
        else:
            found = found._replace(dtype="", family="", device="" if at < 2 else found.device)
    return found


_DEVICES = ("device", "dev", "rank", "local_rank", "gpu", "cuda", "cpu")


def _last_word(arguments: TorchArguments, at: int) -> str:
    """The last word of a positional argument's name: an argument named ``device`` is taken for a device."""
    args = [arg.value for arg in arguments.call.args if arg.keyword is None and not arg.star]
    if at < len(args) and isinstance(args[at], Ref):
        ref = args[at]
        assert isinstance(ref, Ref)
        return ref.path[-1] if ref.path else last_word(ref.roots[0])
    return ""


def to_device(device: str) -> TransferFunction:
    """The transfer function of a move to one device: ``x.cpu()``."""
    return lambda arguments: keep(arguments)._replace(device=device)


def like(arguments: TorchArguments) -> AbstractValue:
    """``x.type_as(y)``."""
    other = arguments.value_of(1, "other") or UNKNOWN
    return with_dtype(keep(arguments), other.dtype, other.family)._replace(device=other.device)


def type_(arguments: TorchArguments) -> AbstractValue:
    """``x.type(torch.long)``; without argument, the name of the type."""
    dtype = arguments.value_of(1, "dtype")
    if dtype is None:
        return AbstractValue("str")
    return with_dtype(keep(arguments), dtype.dtype, dtype_family(dtype) if dtype.kind == "dtype" else dtype.family)


def detached(arguments: TorchArguments) -> AbstractValue:
    return keep(arguments)._replace(grad=False)


def requires_grad_(arguments: TorchArguments) -> AbstractValue:
    """``x.requires_grad_(flag)``."""
    flag = arguments.constant(1, "requires_grad", default=True)
    return arguments.tensor._replace(grad=False if flag is False else None)


def contiguous(arguments: TorchArguments) -> AbstractValue:
    asked = arguments.value_of(1, "memory_format")
    return keep(arguments)._replace(layout="contiguous" if asked is None else "")


_ALL_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
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
            return AbstractValue("str", contents=AbstractValue("str"))
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
        return AbstractValue(
            "list",
            contents=join_all(before.contents, value.element) if before.contents and op == "+" else before.contents,
        )
    return binary_value(op, before, value)


def binary_value(op: str, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The type of a binary operation or comparison."""
    if "nothing" in (left.kind, right.kind):
        return left if left.kind == "nothing" else right
    if left.is_tensor or right.is_tensor:
        return arithmetic(op, left, right)
    if op in _ALL_COMPARISONS:
        mixed = any(each.kind in ("", "ndarray", "series", "dataframe", "instance") for each in (left, right))
        return (
            AbstractValue("bool")
            if op in ("in", "not in", "is", "is not") or not mixed
            else AbstractValue(family="bool", grad=False)
        )
    if "ndarray" in (left.kind, right.kind):
        return AbstractValue("ndarray") if {left.kind, right.kind} <= {"ndarray", *_NUMBERS} else UNKNOWN
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        return _number(op, left, right)
    if left.kind in _SETS and op in ("&", "-", "|", "^"):
        return AbstractValue(
            left.kind,
            contents=left.contents
            if op in "&-"
            else join_all(left.contents, right.contents)
            if left.contents and right.contents
            else None,
        )
    if left.kind == "path" and op == "/":
        return AbstractValue("path")
    if left.kind == right.kind and op == "+" and left.kind in ("list", "tuple", "str", "bytes"):
        return _appended(left, right)
    if op == "%" and left.kind == "str":
        return AbstractValue("str", contents=AbstractValue("str"))
    if op == "*" and {left.kind, right.kind} in ({"list", "int"}, {"tuple", "int"}, {"str", "int"}):
        return _repeated(left, right)
    if op == "|" and {left.kind, right.kind} <= {"dict", "loaded"}:
        return containers.mapping((left, right))
    return UNKNOWN


def _unary(op: str, what: AbstractValue) -> AbstractValue:
    if what.is_tensor:
        return what._replace(kind="tensor", constructor_call=None, value=None)
    if what.kind in _NUMBERS:
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
    return AbstractValue(
        left.kind,
        contents=join_all(left.contents, right.contents) if left.contents and right.contents else None,
        items=items,
    )


def _repeated(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    what, count = (left, right.value) if right.kind == "int" else (right, left.value)
    items = what.items * count if what.items and isinstance(count, int) and 0 <= count < 100 else None
    return AbstractValue(what.kind, contents=what.contents, items=items)


def references(expression: Expression) -> Iterator[Ref]:
    """The references in an expression, callees included."""
    if isinstance(expression, Ref):
        yield expression
        return
    for part in operands_of(expression):
        yield from references(part)
