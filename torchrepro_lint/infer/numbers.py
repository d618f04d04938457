"""What leaves the world of tensors, or has a layout of its own."""

from __future__ import annotations

from torchrepro_lint.infer.factories import renewed
from torchrepro_lint.infer.given import Given
from torchrepro_lint.infer.what import UNKNOWN, What, tensor

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
    from torchrepro_lint.infer.fields import shape

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
