"""Transfer functions that reduce: sums, maxima, sorting, norms, losses; and those that leave tensors or the dense
layout.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.types.factories import new_zeros
from torchrepro_lint.dataflow.types.lattice import (
    UNKNOWN,
    AbstractValue,
    common_device,
    common_gradient,
    promoted_dtype,
    tensor,
)
from torchrepro_lint.dataflow.types.reshaping import open_shape, reduced, with_sizes
from torchrepro_lint.dataflow.types.tensor_arguments import TorchArguments, TransferFunction

_INT64 = ("int64", "integer")


def _reduced_dims(arguments: TorchArguments, position: int = 1) -> tuple[int, ...] | bool | None:
    """The dimensions that are reduced: a tuple, None for all, False if unknown."""
    dim = arguments.value_of(position, "dim")
    if dim is None or dim.kind == "none":
        return None
    if dim.kind == "int" and isinstance(dim.value, int):
        return (dim.value,)
    if dim.kind == "int":
        return False
    numbers = arguments.integers(position, "dim") if dim.kind in ("tuple", "list") else None
    return tuple(each for each in numbers if each is not None) if numbers and None not in numbers else False


def _reduce(arguments: TorchArguments, position: int = 1, keep: int = 2) -> AbstractValue:
    """The shape after a reduction: over all dimensions, or over those that are given."""
    what, dims, keepdim = (
        arguments.tensor._replace(kind="tensor", layout=""),
        _reduced_dims(arguments, position),
        arguments.flag(keep, "keepdim"),
    )
    if isinstance(dims, bool):
        one = arguments.value_of(position, "dim")
        if one is not None and one.kind == "int" and keepdim is False:
            return reduced(what._replace(sizes=None), (0,), keepdim=False)
        return what._replace(sizes=None) if keepdim else open_shape(what)
    if keepdim is None:
        return open_shape(what)
    return reduced(what, dims, keepdim=keepdim)


def sum_or_prod(arguments: TorchArguments) -> AbstractValue:
    """``sum`` and ``prod``: integers and booleans give int64."""
    found = _with_dtype(arguments, _reduce(arguments))
    return (
        found._replace(dtype="int64", family="integer")
        if found.integral and arguments.value_of(-1, "dtype") is None
        else found
    )


def mean(arguments: TorchArguments) -> AbstractValue:
    """``mean``, ``std``, ``norm``: floating-point or complex, as the input."""
    return _with_dtype(arguments, _reduce(arguments))


def norm(arguments: TorchArguments) -> AbstractValue:
    """``x.norm(p, dim)``."""
    found = _reduce(arguments, 2, 3)
    return found._replace(dtype="", family="floating" if found.family in ("floating", "complex") else found.family)


def amax(arguments: TorchArguments) -> AbstractValue:
    """``amax``: the same dtype."""
    return _reduce(arguments)


def any_or_all(arguments: TorchArguments) -> AbstractValue:
    """``any`` and ``all``."""
    return _reduce(arguments)._replace(dtype="bool", family="bool", grad=False)


def argmax(arguments: TorchArguments) -> AbstractValue:
    """``argmax``."""
    return _reduce(arguments)._replace(dtype="int64", family="integer", grad=False)


def max_or_min(arguments: TorchArguments) -> AbstractValue:
    """``x.max(dim)`` and ``median``: values and indices; without a dimension the value, of two tensors elementwise."""
    dim = arguments.value_of(1, "dim")
    if dim is None:
        return with_sizes(arguments.tensor._replace(kind="tensor", layout=""), ())
    if dim.is_tensor:
        from torchrepro_lint.dataflow.types.elementwise import pointwise

        return pointwise([arguments.tensor, dim])
    if dim.kind not in ("int", "str"):
        return AbstractValue()
    return values_and_indices(_reduce(arguments))


def kthvalue(arguments: TorchArguments) -> AbstractValue:
    """``kthvalue(k, dim)`` and ``mode(dim)``."""
    return values_and_indices(
        _reduce(arguments, 2, 3)
        if arguments.value_of(2, "dim") is not None
        else reduced(arguments.tensor._replace(layout=""), (-1,), keepdim=False)
    )


def sorted_values(arguments: TorchArguments) -> AbstractValue:
    """``sort`` and ``topk``: values and indices of the same rank."""
    return values_and_indices(arguments.tensor._replace(kind="tensor", layout="", sizes=None))


def values_and_indices(values: AbstractValue) -> AbstractValue:
    """A named tuple of values and indices."""
    values = values._replace(kind="tensor")
    indices = values._replace(dtype="int64", family="integer", grad=False)
    return AbstractValue("tuple", items=(values, indices), name="values")


def argsort(arguments: TorchArguments) -> AbstractValue:
    """``argsort``."""
    return arguments.tensor._replace(kind="tensor", dtype="int64", family="integer", grad=False, layout="")


def cumsum(arguments: TorchArguments) -> AbstractValue:
    """``cumsum``: the same shape; integers and booleans become int64."""
    found = _with_dtype(arguments, arguments.tensor._replace(kind="tensor", layout=""))
    return (
        found._replace(dtype="int64", family="integer")
        if found.integral and arguments.value_of(-1, "dtype") is None
        else found
    )


def cummax(arguments: TorchArguments) -> AbstractValue:
    """``cummax``."""
    return values_and_indices(arguments.tensor._replace(layout=""))


def _with_dtype(arguments: TorchArguments, what: AbstractValue) -> AbstractValue:
    asked = arguments.value_of(-1, "dtype")
    if asked is None or asked.kind == "none":
        return what
    return what._replace(
        dtype=asked.dtype, family=asked.family, grad=False if asked.integral or what.integral else what.grad
    )


def loss(arguments: TorchArguments) -> AbstractValue:
    """A loss: rank 0, unless ``reduction`` keeps each element."""
    operands = arguments.operands()
    dtype, kind = promoted_dtype(operands[:1])
    found = tensor(kind or "floating", dtype=dtype, device=common_device(operands), grad=common_gradient(operands[:2]))
    return (
        with_sizes(found, ())
        if arguments.constant(-1, "reduction", default="mean") in ("mean", "sum") and len(operands) <= 3
        else found
    )


def tensor_of_dtype(kind: str, dtype: str = "", ndim: int | None = None) -> TransferFunction:
    """The transfer function for a result of this dtype, and of this rank if known."""

    def rule(arguments: TorchArguments) -> AbstractValue:
        made = tensor(kind, dtype=dtype, device=arguments.tensor.device, grad=arguments.tensor.grad)
        return made if ndim is None else made._replace(min_ndim=ndim, max_ndim=ndim)

    return rule


def histogram(arguments: TorchArguments) -> AbstractValue:
    """``bincount``: integers; with weights, their dtype."""
    weighted = arguments.value_of(1, "weights")
    kind = _INT64 if weighted is None else ("", weighted.family)
    return tensor(kind[1], dtype=kind[0], device=arguments.tensor.device, sizes=(None,), grad=False)


_OF_FAMILY = {"bool": "bool", "integer": "int", "floating": "float"}


def integer(arguments: TorchArguments) -> AbstractValue:
    """``x.dim()`` and the like: an integer, known if the rank is."""
    word = getattr(arguments.call.func, "path", ("",))[-1:]
    return AbstractValue("int", value=arguments.tensor.ndim if word in (("dim",), ("ndimension",)) else None)


def boolean(_: TorchArguments) -> AbstractValue:
    return AbstractValue("bool")


def sequence(_: TorchArguments) -> AbstractValue:
    return AbstractValue("tuple", contents=AbstractValue("int"))


def size(arguments: TorchArguments) -> AbstractValue:
    """``x.size()``, ``x.size(dim)``."""
    from torchrepro_lint.dataflow.types.attributes import shape

    if not arguments.call.args:
        return shape(arguments.tensor)
    at, sizes = arguments.integer(1, "dim"), arguments.tensor.sizes
    return AbstractValue(
        "int", value=sizes[at] if sizes and at is not None and -len(sizes) <= at < len(sizes) else None
    )


def array(arguments: TorchArguments) -> AbstractValue:
    """``x.numpy()``."""
    return AbstractValue("ndarray", dtype=arguments.tensor.dtype, family=arguments.tensor.family)


def number(arguments: TorchArguments) -> AbstractValue:
    """``x.item()``."""
    return AbstractValue(_OF_FAMILY.get(arguments.tensor.family, ""))


def listed(arguments: TorchArguments) -> AbstractValue:
    """``x.tolist()``: a list if the rank is positive."""
    what = arguments.tensor
    if what.min_ndim == 0:
        return UNKNOWN
    return AbstractValue("list", contents=AbstractValue(_OF_FAMILY.get(what.family, "")) if what.ndim == 1 else None)


def new_full(arguments: TorchArguments) -> AbstractValue:
    """``x.new_full(size, value)``."""
    found = new_zeros(arguments)
    first = arguments.value_of(1, "size") or UNKNOWN
    sizes = (
        None
        if first.items is None
        else tuple(each.value if isinstance(each.value, int) else None for each in first.items)
    )
    return (
        found._replace(min_ndim=0, max_ndim=None, sizes=None)
        if sizes is None
        else found._replace(min_ndim=len(sizes), max_ndim=len(sizes), sizes=sizes)
    )


def sparse(arguments: TorchArguments) -> AbstractValue:
    return arguments.tensor._replace(kind="tensor", layout="sparse")


def sparse_new(arguments: TorchArguments) -> AbstractValue:
    values = arguments.value_of(1, "values") or UNKNOWN
    return tensor(values.family, dtype=values.dtype, layout="sparse")


def dense(arguments: TorchArguments) -> AbstractValue:
    return arguments.tensor._replace(kind="tensor", layout="")


def sparse_indices(arguments: TorchArguments) -> AbstractValue:
    """``x.indices()`` of a sparse tensor."""
    return tensor("integer", dtype="int64", device=arguments.tensor.device)._replace(min_ndim=2, max_ndim=2)


def sparse_values(arguments: TorchArguments) -> AbstractValue:
    return arguments.tensor._replace(kind="tensor", layout="", min_ndim=0, max_ndim=None, sizes=None)


def quantized(arguments: TorchArguments) -> AbstractValue:
    return arguments.tensor._replace(kind="tensor", dtype="", family="", layout="quantized", grad=False)


def nested(_: TorchArguments) -> AbstractValue:
    return tensor(layout="nested")
