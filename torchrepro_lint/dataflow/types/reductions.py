"""Operations that take dimensions away, or look along one: sums, maxima, sorting, norms, losses.

What leaves the world of tensors, or has a layout of its own.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.types.factories import renewed
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What, common_device, common_gradient, promoted, tensor
from torchrepro_lint.dataflow.types.reshaping import open_shape, reduced, with_sizes
from torchrepro_lint.dataflow.types.tensor_arguments import Given, Rule

_INT64 = ("int64", "integer")


def _along(given: Given, position: int = 1) -> tuple[int, ...] | bool | None:
    """The dimensions that are taken away: a tuple, None for all, False where that is not known."""
    dim = given.what(position, "dim")
    if dim is None or dim.kind == "none":
        return None
    if dim.kind == "int" and isinstance(dim.value, int):
        return (dim.value,)
    if dim.kind == "int":
        return False
    numbers = given.numbers(position, "dim") if dim.kind in ("tuple", "list") else None
    return tuple(each for each in numbers if each is not None) if numbers and None not in numbers else False


def _reduce(given: Given, position: int = 1, keep: int = 2) -> What:
    """The shape of a reduction: over all dimensions without a number, over those that are given."""
    what, dims, keepdim = (
        given.tensor._replace(kind="tensor", layout=""),
        _along(given, position),
        given.switch(keep, "keepdim"),
    )
    if isinstance(dims, bool):
        one = given.what(position, "dim")
        if one is not None and one.kind == "int" and keepdim is False:
            return reduced(what._replace(sizes=None), (0,), keepdim=False)
        return what._replace(sizes=None) if keepdim else open_shape(what)
    if keepdim is None:
        return open_shape(what)
    return reduced(what, dims, keepdim=keepdim)


def summed(given: Given) -> What:
    """``sum`` and ``prod``: of integers and booleans int64."""
    found = _with_dtype(given, _reduce(given))
    return (
        found._replace(dtype="int64", family="integer") if found.integral and given.what(-1, "dtype") is None else found
    )


def averaged(given: Given) -> What:
    """``mean``, ``std``, ``norm``: floating-point or complex, as the input."""
    return _with_dtype(given, _reduce(given))


def normed(given: Given) -> What:
    """``x.norm(p, dim)``."""
    found = _reduce(given, 2, 3)
    return found._replace(dtype="", family="floating" if found.family in ("floating", "complex") else found.family)


def extreme(given: Given) -> What:
    """``amax``: the same dtype."""
    return _reduce(given)


def decided(given: Given) -> What:
    """``any`` and ``all``."""
    return _reduce(given)._replace(dtype="bool", family="bool", grad=False)


def located(given: Given) -> What:
    """``argmax``."""
    return _reduce(given)._replace(dtype="int64", family="integer", grad=False)


def picked(given: Given) -> What:
    """``x.max(dim)`` and ``median``: values and indices; without a dimension the value, of two tensors the larger one."""
    dim = given.what(1, "dim")
    if dim is None:
        return with_sizes(given.tensor._replace(kind="tensor", layout=""), ())
    if dim.is_tensor:
        from torchrepro_lint.dataflow.types.elementwise import pointwise

        return pointwise([given.tensor, dim])
    if dim.kind not in ("int", "str"):
        return What()
    return pair(_reduce(given))


def ranked(given: Given) -> What:
    """``kthvalue(k, dim)`` and ``mode(dim)``."""
    return pair(
        _reduce(given, 2, 3)
        if given.what(2, "dim") is not None
        else reduced(given.tensor._replace(layout=""), (-1,), keepdim=False)
    )


def ordered(given: Given) -> What:
    """``sort`` and ``topk``: values and indices of as many dimensions."""
    return pair(given.tensor._replace(kind="tensor", layout="", sizes=None))


def pair(values: What) -> What:
    """Values and indices, by name or place."""
    values = values._replace(kind="tensor")
    indices = values._replace(dtype="int64", family="integer", grad=False)
    return What("tuple", items=(values, indices), name="values")


def order(given: Given) -> What:
    """``argsort``."""
    return given.tensor._replace(kind="tensor", dtype="int64", family="integer", grad=False, layout="")


def running(given: Given) -> What:
    """``cumsum``: the same shape; integers and booleans become int64."""
    found = _with_dtype(given, given.tensor._replace(kind="tensor", layout=""))
    return (
        found._replace(dtype="int64", family="integer") if found.integral and given.what(-1, "dtype") is None else found
    )


def running_extreme(given: Given) -> What:
    """``cummax``."""
    return pair(given.tensor._replace(layout=""))


def _with_dtype(given: Given, what: What) -> What:
    asked = given.what(-1, "dtype")
    if asked is None or asked.kind == "none":
        return what
    return what._replace(
        dtype=asked.dtype, family=asked.family, grad=False if asked.integral or what.integral else what.grad
    )


def loss(given: Given) -> What:
    """A loss: no dimensions, unless it is asked for each element."""
    operands = given.operands()
    dtype, kind = promoted(operands[:1])
    found = tensor(kind or "floating", dtype=dtype, device=common_device(operands), grad=common_gradient(operands[:2]))
    return (
        with_sizes(found, ())
        if given.value(-1, "reduction", default="mean") in ("mean", "sum") and len(operands) <= 3
        else found
    )


def plain(kind: str, dtype: str = "", ndim: int | None = None) -> Rule:
    """The rule for a tensor of one dtype with so many dimensions, or one that is not known."""

    def rule(given: Given) -> What:
        made = tensor(kind, dtype=dtype, device=given.tensor.device, grad=given.tensor.grad)
        return made if ndim is None else made._replace(low=ndim, high=ndim)

    return rule


def histogram(given: Given) -> What:
    """``bincount``: integers, with weights as they are."""
    weighted = given.what(1, "weights")
    kind = _INT64 if weighted is None else ("", weighted.family)
    return tensor(kind[1], dtype=kind[0], device=given.tensor.device, sizes=(None,), grad=False)


_OF_FAMILY = {"bool": "bool", "integer": "int", "floating": "float"}


def integer(given: Given) -> What:
    """``x.dim()``: a number, known where the dimensions are."""
    word = getattr(given.call.func, "path", ("",))[-1:]
    return What("int", value=given.tensor.ndim if word in (("dim",), ("ndimension",)) else None)


def truth(_: Given) -> What:
    return What("bool")


def sequence(_: Given) -> What:
    return What("tuple", of=What("int"))


def size(given: Given) -> What:
    """``x.size()``, ``x.size(dim)``."""
    from torchrepro_lint.dataflow.types.attributes import shape

    if not given.call.args:
        return shape(given.tensor)
    at, sizes = given.number(1, "dim"), given.tensor.sizes
    return What("int", value=sizes[at] if sizes and at is not None and -len(sizes) <= at < len(sizes) else None)


def array(given: Given) -> What:
    """``x.numpy()``."""
    return What("ndarray", dtype=given.tensor.dtype, family=given.tensor.family)


def number(given: Given) -> What:
    """``x.item()``."""
    return What(_OF_FAMILY.get(given.tensor.family, ""))


def listed(given: Given) -> What:
    """``x.tolist()``: a list, of a number of dimensions above zero."""
    what = given.tensor
    if what.low == 0:
        return UNKNOWN
    return What("list", of=What(_OF_FAMILY.get(what.family, "")) if what.ndim == 1 else None)


def renewed_full(given: Given) -> What:
    """``x.new_full(size, value)``."""
    found = renewed(given)
    first = given.what(1, "size") or UNKNOWN
    sizes = (
        None
        if first.items is None
        else tuple(each.value if isinstance(each.value, int) else None for each in first.items)
    )
    return (
        found._replace(low=0, high=None, sizes=None)
        if sizes is None
        else found._replace(low=len(sizes), high=len(sizes), sizes=sizes)
    )


def sparse(given: Given) -> What:
    return given.tensor._replace(kind="tensor", layout="sparse")


def sparse_new(given: Given) -> What:
    values = given.what(1, "values") or UNKNOWN
    return tensor(values.family, dtype=values.dtype, layout="sparse")


def dense(given: Given) -> What:
    return given.tensor._replace(kind="tensor", layout="")


def sparse_indices(given: Given) -> What:
    """``x.indices()`` of a sparse tensor."""
    return tensor("integer", dtype="int64", device=given.tensor.device)._replace(low=2, high=2)


def sparse_values(given: Given) -> What:
    return given.tensor._replace(kind="tensor", layout="", low=0, high=None, sizes=None)


def quantized(given: Given) -> What:
    return given.tensor._replace(kind="tensor", dtype="", family="", layout="quantized", grad=False)


def nested(_: Given) -> What:
    return tensor(layout="nested")
