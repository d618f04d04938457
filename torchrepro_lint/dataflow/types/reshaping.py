"""Transfer functions of the shape: views, permutations, indexing, and the shape arithmetic behind them.

A size that is None is unknown.
"""

from __future__ import annotations

from math import prod

from torchrepro_lint.dataflow.types.lattice import UNKNOWN, AbstractValue, tensor
from torchrepro_lint.dataflow.types.tensor_arguments import TorchArguments


def open_shape(what: AbstractValue) -> AbstractValue:
    """The tensor with unknown shape."""
    return what._replace(min_ndim=0, max_ndim=None, sizes=None, scalar=False)


def with_ndim(what: AbstractValue, low: int, high: int | None) -> AbstractValue:
    """The tensor with a rank in this range and unknown sizes."""
    return what._replace(min_ndim=max(low, 0), max_ndim=None if high is None else max(high, 0), sizes=None)


def shifted(what: AbstractValue, change: int) -> AbstractValue:
    """The tensor with so many more dimensions."""
    return with_ndim(what, what.min_ndim + change, None if what.max_ndim is None else what.max_ndim + change)


def spatial(what: AbstractValue, count: int) -> AbstractValue:
    """The tensor with so many spatial dimensions, channels, and perhaps a batch, if that fits what is known."""
    low, high = max(what.min_ndim, count + 1), count + 2
    if what.max_ndim is not None and what.max_ndim < low:
        low, high = count + 1, count + 2
    return with_ndim(what, low, min(high, what.max_ndim or high))


# The rank that each mode of ``interpolate`` takes: spatial dimensions, batch and channels.
_MODES = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def resized(what: AbstractValue, mode: object) -> AbstractValue:
    """The tensor after ``interpolate`` in a mode."""
    count = _MODES.get(mode) if isinstance(mode, str) else None
    if count is not None:
        return with_ndim(what, count, count)
    return with_ndim(
        what, max(what.min_ndim, 3), what.max_ndim if what.max_ndim is not None and what.max_ndim >= 3 else None
    )


def with_sizes(what: AbstractValue, sizes: tuple[int | None, ...]) -> AbstractValue:
    """The tensor with these sizes; -1 becomes unknown."""
    plain = tuple(None if size is None or size < 0 else size for size in sizes)
    return what._replace(min_ndim=len(plain), max_ndim=len(plain), sizes=plain)


def with_view(what: AbstractValue, sizes: tuple[int | None, ...]) -> AbstractValue:
    """As ``with_sizes``, with the size -1 computed if all others are known."""
    if -1 in sizes and what.sizes is not None and None not in what.sizes:
        rest = prod(size for size in sizes if size is not None and size != -1)
        if None not in sizes and rest:
            total = prod(size for size in what.sizes if size is not None)
            sizes = tuple(total // rest if size == -1 else size for size in sizes)
    return with_sizes(what, sizes)


def reduced(what: AbstractValue, dims: tuple[int, ...] | None, *, keepdim: bool) -> AbstractValue:
    """The tensor reduced over ``dims`` (None: all), which are dropped or, with ``keepdim``, get the size 1."""
    if dims is None:
        return with_sizes(what, ()) if not keepdim else what._replace(sizes=None)
    if what.sizes is None or any(not -len(what.sizes) <= dim < len(what.sizes) for dim in dims):
        return what._replace(sizes=None) if keepdim else shifted(what, -len(dims))
    gone = {dim % len(what.sizes) for dim in dims}
    if keepdim:
        return with_sizes(what, tuple(1 if at in gone else size for at, size in enumerate(what.sizes)))
    return with_sizes(what, tuple(size for at, size in enumerate(what.sizes) if at not in gone))


def with_dimension(what: AbstractValue, dim: int | None, size: int | None = 1) -> AbstractValue:
    """The tensor with one more dimension at ``dim``."""
    if what.sizes is None or dim is None or not -len(what.sizes) - 1 <= dim <= len(what.sizes):
        return shifted(what, 1)
    at = dim if dim >= 0 else dim + len(what.sizes) + 1
    return with_sizes(what, (*what.sizes[:at], size, *what.sizes[at:]))


def with_permutation(what: AbstractValue, order: tuple[int | None, ...]) -> AbstractValue:
    """The tensor with its dimensions permuted."""
    count = len(order)
    if what.sizes is None or len(what.sizes) != count or any(at is None or not -count <= at < count for at in order):
        return with_ndim(what, count, count)
    return with_sizes(what, tuple(what.sizes[at] for at in order if at is not None))


def with_swap(what: AbstractValue, one: int | None, other: int | None) -> AbstractValue:
    """The tensor with two dimensions exchanged."""
    if what.sizes is None or one is None or other is None:
        return what._replace(sizes=None)
    sizes = list(what.sizes)
    if not all(-len(sizes) <= at < len(sizes) for at in (one, other)):
        return what._replace(sizes=None)
    sizes[one], sizes[other] = sizes[other], sizes[one]
    return with_sizes(what, tuple(sizes))


def with_squeezing(what: AbstractValue, dim: int | None) -> AbstractValue:
    """The tensor without a dimension of size 1; with None, without all of them."""
    if what.sizes is not None and None not in what.sizes and dim is None:
        return with_sizes(what, tuple(size for size in what.sizes if size != 1))
    if what.sizes is not None and dim is not None and -len(what.sizes) <= dim < len(what.sizes):
        at = dim % len(what.sizes)
        if what.sizes[at] is not None:
            return with_sizes(what, (*what.sizes[:at], *what.sizes[at + 1 :])) if what.sizes[at] == 1 else what
    return with_ndim(what, 0 if dim is None else what.min_ndim - 1, what.max_ndim)


def with_flattening(what: AbstractValue, start: int | None, end: int | None) -> AbstractValue:
    """The tensor with the dimensions from ``start`` to ``end`` merged."""
    if what.ndim is None or start is None or end is None:
        if start == 0 and end == -1:
            return with_ndim(what, 1, 1)
        if start is not None and start > 0 and end == -1:
            return with_ndim(what, start + 1, start + 1)
        return with_ndim(what, min(what.min_ndim, 1), what.max_ndim)
    count = max(what.ndim, 1)
    if not (-count <= start < count and -count <= end < count):
        return open_shape(what)
    first, last = start % count, end % count
    if what.ndim == 0 or what.sizes is None:
        return with_ndim(what, count - (last - first), count - (last - first))
    merged = what.sizes[first : last + 1]
    size = None if None in merged else prod(each for each in merged if each is not None)
    return with_sizes(what, (*what.sizes[:first], size, *what.sizes[last + 1 :]))


def broadcast(one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The first tensor with the broadcast shape of both."""
    high = None if one.max_ndim is None or other.max_ndim is None else max(one.max_ndim, other.max_ndim)
    if one.sizes is None or other.sizes is None:
        return with_ndim(one, max(one.min_ndim, other.min_ndim), high)
    count = max(len(one.sizes), len(other.sizes))
    first = (1,) * (count - len(one.sizes)) + one.sizes
    second = (1,) * (count - len(other.sizes)) + other.sizes
    return with_sizes(one, tuple(_wider(a, b) for a, b in zip(first, second, strict=True)))


def _wider(one: int | None, other: int | None) -> int | None:
    if one == 1:
        return other
    return other if one is None and other != 1 else one


def _with_open_layout(arguments: TorchArguments) -> AbstractValue:
    """The tensor with unknown strides; a sparse, quantized or nested layout stays."""
    found = arguments.tensor._replace(kind="tensor")
    return found._replace(layout="" if found.layout in ("contiguous", "strided") else found.layout)


def viewed(arguments: TorchArguments) -> AbstractValue:
    """``view`` and ``reshape``: contiguity is kept; ``view`` also takes a dtype."""
    first = arguments.value_of(1, "dtype")
    if first is not None and first.kind == "dtype":
        return arguments.tensor._replace(kind="tensor", dtype=first.dtype, family=first.family, sizes=None)
    sizes = arguments.integers(1, "shape")
    found = arguments.tensor._replace(kind="tensor")
    return open_shape(found) if not sizes and arguments.operands()[1:] else with_view(found, sizes or ())


def shaped_like(arguments: TorchArguments) -> AbstractValue:
    """``view_as`` and ``expand_as``."""
    other = arguments.value_of(1, "other") or UNKNOWN
    found = _with_open_layout(arguments)
    return (
        found._replace(min_ndim=other.min_ndim, max_ndim=other.max_ndim, sizes=other.sizes)
        if other.is_tensor
        else open_shape(found)
    )


def expanded(arguments: TorchArguments) -> AbstractValue:
    """``expand`` and ``broadcast_to``: -1 keeps a size."""
    sizes = arguments.integers(1, "size")
    if not sizes:
        return open_shape(_with_open_layout(arguments))
    old = arguments.tensor.sizes or ()
    kept = (*(None,) * (len(sizes) - len(old)), *old)[-len(sizes) :] if len(old) <= len(sizes) else sizes
    return with_sizes(
        _with_open_layout(arguments), tuple(k if s == -1 else s for s, k in zip(sizes, kept, strict=True))
    )


def repeated(arguments: TorchArguments) -> AbstractValue:
    """``repeat`` and ``tile``: the rank is at least the number of factors."""
    counts, found = arguments.integers(1, "repeats"), _with_open_layout(arguments)
    if not counts:
        return open_shape(found)
    return with_ndim(
        found, max(len(counts), found.min_ndim), None if found.max_ndim is None else max(len(counts), found.max_ndim)
    )


def flattened(arguments: TorchArguments) -> AbstractValue:
    start = arguments.integer(1, "start_dim", 0)
    return with_flattening(arguments.tensor._replace(kind="tensor"), start, arguments.integer(2, "end_dim", -1))


def raveled(arguments: TorchArguments) -> AbstractValue:
    return with_flattening(arguments.tensor._replace(kind="tensor"), 0, -1)


def unflattened(arguments: TorchArguments) -> AbstractValue:
    sizes = arguments.integers(2, "sizes")
    found = _with_open_layout(arguments)
    return open_shape(found) if sizes is None or not sizes else shifted(found, len(sizes) - 1)


def squeezed(arguments: TorchArguments) -> AbstractValue:
    dim = arguments.value_of(1, "dim")
    if dim is None:
        return with_squeezing(arguments.tensor._replace(kind="tensor"), None)
    found = with_squeezing(arguments.tensor._replace(kind="tensor"), arguments.integer(1, "dim"))
    return found if dim.kind == "int" else with_ndim(found, 0, arguments.tensor.max_ndim)


def unsqueezed(arguments: TorchArguments) -> AbstractValue:
    return with_dimension(arguments.tensor._replace(kind="tensor"), arguments.integer(1, "dim"))


def permuted(arguments: TorchArguments) -> AbstractValue:
    dims = arguments.integers(1, "dims")
    found = _with_open_layout(arguments)
    return with_permutation(found, dims)._replace(layout=_strided(arguments)) if dims else found._replace(sizes=None)


def swapped(arguments: TorchArguments) -> AbstractValue:
    dims = arguments.integer(1, "dim0"), arguments.integer(2, "dim1")
    found = with_swap(_with_open_layout(arguments), *dims)._replace(layout=_strided(arguments))
    # The rank is at least what the two dimensions require.
    least = max((-dim if dim < 0 else dim + 1 for dim in dims if dim is not None), default=0)
    return (
        found._replace(min_ndim=least)
        if found.min_ndim < least and (found.max_ndim is None or found.max_ndim >= least)
        else found
    )


def transposed(arguments: TorchArguments) -> AbstractValue:
    """``x.t()``: at most rank 2."""
    found = (
        with_swap(_with_open_layout(arguments), 0, 1)
        if arguments.tensor.ndim == 2
        else _with_open_layout(arguments)._replace(sizes=None)
    )
    return found._replace(max_ndim=2 if found.max_ndim is None else min(found.max_ndim, 2), layout=_strided(arguments))


def _strided(arguments: TorchArguments) -> str:
    return "strided" if arguments.tensor.layout in ("contiguous", "strided") else arguments.tensor.layout


def keep_ndim(arguments: TorchArguments) -> AbstractValue:
    """The same rank, other sizes: ``narrow``, ``moveaxis``."""
    return _with_open_layout(arguments)._replace(sizes=None)


def split(arguments: TorchArguments) -> AbstractValue:
    """``chunk`` and ``split``: a tuple of tensors of the same rank."""
    return AbstractValue("tuple", contents=_with_open_layout(arguments)._replace(sizes=None))


def unbind(arguments: TorchArguments) -> AbstractValue:
    return AbstractValue(
        "tuple",
        contents=with_ndim(
            _with_open_layout(arguments), arguments.tensor.min_ndim - 1, _less(arguments.tensor.max_ndim)
        ),
    )


def _less(high: int | None) -> int | None:
    return None if high is None else max(high - 1, 0)


def selected(arguments: TorchArguments) -> AbstractValue:
    """``select``, ``diagonal``: one dimension less."""
    return shifted(_with_open_layout(arguments), -1)


def windowed(arguments: TorchArguments) -> AbstractValue:
    """``x.unfold(dim, size, step)``: one more dimension."""
    return shifted(_with_open_layout(arguments), 1)


def columns(arguments: TorchArguments) -> AbstractValue:
    return with_ndim(_with_open_layout(arguments), 2, 3)


def diagonal(arguments: TorchArguments) -> AbstractValue:
    """``diag``: a matrix of a vector, a vector of a matrix."""
    found = _with_open_layout(arguments)
    if found.ndim in (1, 2):
        return with_ndim(found, 3 - found.ndim, 3 - found.ndim)
    return with_ndim(found, 1, 2)


def embedded_diagonal(arguments: TorchArguments) -> AbstractValue:
    return shifted(_with_open_layout(arguments), 1)


def gather(arguments: TorchArguments) -> AbstractValue:
    """``gather`` and ``take_along_dim``: the shape of the index."""
    index = arguments.value_of(2, "index") or UNKNOWN
    return _with_open_layout(arguments)._replace(
        min_ndim=index.min_ndim, max_ndim=index.max_ndim, sizes=index.sizes if index.is_tensor else None
    )


def take(arguments: TorchArguments) -> AbstractValue:
    """``torch.take``: the shape of the index."""
    index = arguments.value_of(1, "index") or UNKNOWN
    return _with_open_layout(arguments)._replace(
        min_ndim=index.min_ndim, max_ndim=index.max_ndim, sizes=index.sizes if index.is_tensor else None
    )


def indexed(arguments: TorchArguments) -> AbstractValue:
    """``index_select``: the rank is kept."""
    return _with_open_layout(arguments)._replace(sizes=None)


def masked(arguments: TorchArguments) -> AbstractValue:
    """``masked_select``: one dimension."""
    return with_ndim(_with_open_layout(arguments), 1, 1)


def nonzero(arguments: TorchArguments) -> AbstractValue:
    """``nonzero``: rows of indices, or a tuple of them."""
    switch = arguments.flag(1, "as_tuple")
    rows = tensor("integer", dtype="int64", device=arguments.tensor.device)
    if switch is False:
        return rows._replace(min_ndim=2, max_ndim=2)
    return AbstractValue("tuple", contents=rows._replace(min_ndim=1, max_ndim=1)) if switch else UNKNOWN


def unique(arguments: TorchArguments) -> AbstractValue:
    """``unique``: the values, or a tuple with inverse and counts; with ``dim`` the rank is kept."""
    extra = [arguments.constant(-1, word, default=False) for word in ("return_inverse", "return_counts")]
    dim = arguments.value_of(-1, "dim")
    found = _with_open_layout(arguments)
    values = found._replace(sizes=None) if dim is not None else with_ndim(found, 1, 1)
    if extra == [False, False]:
        return values if len(arguments.operands()) < 3 else UNKNOWN
    more = tensor("integer", dtype="int64", device=found.device)
    return (
        AbstractValue("tuple", items=(values, *(more for each in extra if each is True)))
        if ... not in extra
        else UNKNOWN
    )


def interleaved(arguments: TorchArguments) -> AbstractValue:
    """``repeat_interleave``: rank 1 without ``dim``."""
    if arguments.value_of(1, "repeats") is None:
        return tensor("integer", dtype="int64", device=arguments.tensor.device)._replace(min_ndim=1, max_ndim=1)
    found = _with_open_layout(arguments)._replace(sizes=None)
    return found if arguments.value_of(2, "dim") is not None else with_ndim(found, 1, 1)


def one_hot(arguments: TorchArguments) -> AbstractValue:
    """``F.one_hot``: one more dimension, int64."""
    found = with_dimension(_with_open_layout(arguments), -1, arguments.integer(1, "num_classes", -1))
    return found._replace(dtype="int64", family="integer", grad=False)
