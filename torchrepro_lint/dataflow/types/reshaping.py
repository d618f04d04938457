"""How operations change the dimensions of a tensor. A dimension that is None is one that is not known.

Operations that give the same elements another shape, or select among them.
"""

from __future__ import annotations

from math import prod

from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What, tensor
from torchrepro_lint.dataflow.types.tensor_arguments import Given


def open_shape(what: What) -> What:
    """The tensor with nothing known of its dimensions."""
    return what._replace(low=0, high=None, sizes=None, scalar=False)


def with_ndim(what: What, low: int, high: int | None) -> What:
    """The tensor with so many dimensions, of sizes that are not known."""
    return what._replace(low=max(low, 0), high=None if high is None else max(high, 0), sizes=None)


def shifted(what: What, change: int) -> What:
    """The tensor with so many dimensions more."""
    return with_ndim(what, what.low + change, None if what.high is None else what.high + change)


def spatial(what: What, count: int) -> What:
    """The tensor with so many spatial dimensions, the channels, and a batch or none, as far as that fits what is known."""
    low, high = max(what.low, count + 1), count + 2
    if what.high is not None and what.high < low:
        low, high = count + 1, count + 2
    return with_ndim(what, low, min(high, what.high or high))


# What each mode of ``interpolate`` takes: so many spatial dimensions, behind a batch and channels.
_MODES = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def resized(what: What, mode: object) -> What:
    """The tensor after ``interpolate`` in a mode."""
    count = _MODES.get(mode) if isinstance(mode, str) else None
    if count is not None:
        return with_ndim(what, count, count)
    return with_ndim(what, max(what.low, 3), what.high if what.high is not None and what.high >= 3 else None)


def with_sizes(what: What, sizes: tuple[int | None, ...]) -> What:
    """The tensor with these sizes; -1 is one that follows from the others."""
    plain = tuple(None if size is None or size < 0 else size for size in sizes)
    return what._replace(low=len(plain), high=len(plain), sizes=plain)


def with_view(what: What, sizes: tuple[int | None, ...]) -> What:
    """As ``with_sizes``, the size -1 worked out where all is known."""
    if -1 in sizes and what.sizes is not None and None not in what.sizes:
        rest = prod(size for size in sizes if size is not None and size != -1)
        if None not in sizes and rest:
            total = prod(size for size in what.sizes if size is not None)
            sizes = tuple(total // rest if size == -1 else size for size in sizes)
    return with_sizes(what, sizes)


def reduced(what: What, dims: tuple[int, ...] | None, *, keepdim: bool) -> What:
    """Without the dimensions ``dims`` (None: without any), or with the size 1 in their place."""
    if dims is None:
        return with_sizes(what, ()) if not keepdim else what._replace(sizes=None)
    if what.sizes is None or any(not -len(what.sizes) <= dim < len(what.sizes) for dim in dims):
        return what._replace(sizes=None) if keepdim else shifted(what, -len(dims))
    gone = {dim % len(what.sizes) for dim in dims}
    if keepdim:
        return with_sizes(what, tuple(1 if at in gone else size for at, size in enumerate(what.sizes)))
    return with_sizes(what, tuple(size for at, size in enumerate(what.sizes) if at not in gone))


def inserted(what: What, dim: int | None, size: int | None = 1) -> What:
    """With one more dimension at ``dim``."""
    if what.sizes is None or dim is None or not -len(what.sizes) - 1 <= dim <= len(what.sizes):
        return shifted(what, 1)
    at = dim if dim >= 0 else dim + len(what.sizes) + 1
    return with_sizes(what, (*what.sizes[:at], size, *what.sizes[at:]))


def with_permutation(what: What, order: tuple[int | None, ...]) -> What:
    """With its dimensions in another order, all of them named."""
    count = len(order)
    if what.sizes is None or len(what.sizes) != count or any(at is None or not -count <= at < count for at in order):
        return with_ndim(what, count, count)
    return with_sizes(what, tuple(what.sizes[at] for at in order if at is not None))


def with_swap(what: What, one: int | None, other: int | None) -> What:
    """With two dimensions exchanged."""
    if what.sizes is None or one is None or other is None:
        return what._replace(sizes=None)
    sizes = list(what.sizes)
    if not all(-len(sizes) <= at < len(sizes) for at in (one, other)):
        return what._replace(sizes=None)
    sizes[one], sizes[other] = sizes[other], sizes[one]
    return with_sizes(what, tuple(sizes))


def with_squeezing(what: What, dim: int | None) -> What:
    """Without one dimension of size 1, if it is one; without a number, without all of them."""
    if what.sizes is not None and None not in what.sizes and dim is None:
        return with_sizes(what, tuple(size for size in what.sizes if size != 1))
    if what.sizes is not None and dim is not None and -len(what.sizes) <= dim < len(what.sizes):
        at = dim % len(what.sizes)
        if what.sizes[at] is not None:
            return with_sizes(what, (*what.sizes[:at], *what.sizes[at + 1 :])) if what.sizes[at] == 1 else what
    return with_ndim(what, 0 if dim is None else what.low - 1, what.high)


def with_flattening(what: What, start: int | None, end: int | None) -> What:
    """With the dimensions from ``start`` to ``end`` made one."""
    if what.ndim is None or start is None or end is None:
        if start == 0 and end == -1:
            return with_ndim(what, 1, 1)
        if start is not None and start > 0 and end == -1:
            return with_ndim(what, start + 1, start + 1)
        return with_ndim(what, min(what.low, 1), what.high)
    count = max(what.ndim, 1)
    if not (-count <= start < count and -count <= end < count):
        return open_shape(what)
    first, last = start % count, end % count
    if what.ndim == 0 or what.sizes is None:
        return with_ndim(what, count - (last - first), count - (last - first))
    merged = what.sizes[first : last + 1]
    size = None if None in merged else prod(each for each in merged if each is not None)
    return with_sizes(what, (*what.sizes[:first], size, *what.sizes[last + 1 :]))


def broadcast(one: What, other: What) -> What:
    """The first, with the dimensions that both together have; a number has none."""
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    if one.sizes is None or other.sizes is None:
        return with_ndim(one, max(one.low, other.low), high)
    count = max(len(one.sizes), len(other.sizes))
    first = (1,) * (count - len(one.sizes)) + one.sizes
    second = (1,) * (count - len(other.sizes)) + other.sizes
    return with_sizes(one, tuple(_wider(a, b) for a, b in zip(first, second, strict=True)))


def _wider(one: int | None, other: int | None) -> int | None:
    if one == 1:
        return other
    return other if one is None and other != 1 else one


def _plain(given: Given) -> What:
    """The tensor, its layout open unless it is of a special kind."""
    found = given.tensor._replace(kind="tensor")
    return found._replace(layout="" if found.layout in ("contiguous", "strided") else found.layout)


def viewed(given: Given) -> What:
    """``view`` and ``reshape``: what was contiguous stays so; ``view`` also takes a dtype."""
    first = given.what(1, "dtype")
    if first is not None and first.kind == "dtype":
        return given.tensor._replace(kind="tensor", dtype=first.dtype, family=first.family, sizes=None)
    sizes = given.numbers(1, "shape")
    found = given.tensor._replace(kind="tensor")
    return open_shape(found) if not sizes and given.operands()[1:] else with_view(found, sizes or ())


def shaped_like(given: Given) -> What:
    """``view_as`` and ``expand_as``."""
    other = given.what(1, "other") or UNKNOWN
    found = _plain(given)
    return found._replace(low=other.low, high=other.high, sizes=other.sizes) if other.is_tensor else open_shape(found)


def expanded(given: Given) -> What:
    """``expand`` and ``broadcast_to``: -1 keeps a size."""
    sizes = given.numbers(1, "size")
    if not sizes:
        return open_shape(_plain(given))
    old = given.tensor.sizes or ()
    kept = (*(None,) * (len(sizes) - len(old)), *old)[-len(sizes) :] if len(old) <= len(sizes) else sizes
    return with_sizes(_plain(given), tuple(k if s == -1 else s for s, k in zip(sizes, kept, strict=True)))


def repeated(given: Given) -> What:
    """``repeat`` and ``tile``: as many dimensions as factors, or more."""
    counts, found = given.numbers(1, "repeats"), _plain(given)
    if not counts:
        return open_shape(found)
    return with_ndim(found, max(len(counts), found.low), None if found.high is None else max(len(counts), found.high))


def flattened(given: Given) -> What:
    start = given.number(1, "start_dim", 0)
    return with_flattening(given.tensor._replace(kind="tensor"), start, given.number(2, "end_dim", -1))


def raveled(given: Given) -> What:
    return with_flattening(given.tensor._replace(kind="tensor"), 0, -1)


def unflattened(given: Given) -> What:
    sizes = given.numbers(2, "sizes")
    found = _plain(given)
    return open_shape(found) if sizes is None or not sizes else shifted(found, len(sizes) - 1)


def squeezed(given: Given) -> What:
    dim = given.what(1, "dim")
    if dim is None:
        return with_squeezing(given.tensor._replace(kind="tensor"), None)
    found = with_squeezing(given.tensor._replace(kind="tensor"), given.number(1, "dim"))
    return found if dim.kind == "int" else with_ndim(found, 0, given.tensor.high)


def unsqueezed(given: Given) -> What:
    return inserted(given.tensor._replace(kind="tensor"), given.number(1, "dim"))


def permuted(given: Given) -> What:
    dims = given.numbers(1, "dims")
    found = _plain(given)
    return with_permutation(found, dims)._replace(layout=_strided(given)) if dims else found._replace(sizes=None)


def swapped(given: Given) -> What:
    dims = given.number(1, "dim0"), given.number(2, "dim1")
    found = with_swap(_plain(given), *dims)._replace(layout=_strided(given))
    # There are as many dimensions at least as the two that are named ask for.
    least = max((-dim if dim < 0 else dim + 1 for dim in dims if dim is not None), default=0)
    return found._replace(low=least) if found.low < least and (found.high is None or found.high >= least) else found


def transposed(given: Given) -> What:
    """``x.t()``, of at most two dimensions."""
    found = with_swap(_plain(given), 0, 1) if given.tensor.ndim == 2 else _plain(given)._replace(sizes=None)
    return found._replace(high=2 if found.high is None else min(found.high, 2), layout=_strided(given))


def _strided(given: Given) -> str:
    return "strided" if given.tensor.layout in ("contiguous", "strided") else given.tensor.layout


def kept(given: Given) -> What:
    """As many dimensions, of other sizes: ``flip``, ``narrow``, ``moveaxis``."""
    return _plain(given)._replace(sizes=None)


def parted(given: Given) -> What:
    """``chunk`` and ``split``: a tuple of tensors with as many dimensions."""
    return What("tuple", of=_plain(given)._replace(sizes=None))


def unbound(given: Given) -> What:
    return What("tuple", of=with_ndim(_plain(given), given.tensor.low - 1, _less(given.tensor.high)))


def _less(high: int | None) -> int | None:
    return None if high is None else max(high - 1, 0)


def selected(given: Given) -> What:
    """``select``, ``diagonal``, ``trace``-like: a dimension less."""
    return shifted(_plain(given), -1)


def windowed(given: Given) -> What:
    """``x.unfold(dim, size, step)``: a dimension more; ``F.unfold`` gives three."""
    return shifted(_plain(given), 1)


def columns(given: Given) -> What:
    return with_ndim(_plain(given), 2, 3)


def diagonal(given: Given) -> What:
    """``diag``: a matrix of a vector, a vector of a matrix."""
    found = _plain(given)
    if found.ndim in (1, 2):
        return with_ndim(found, 3 - found.ndim, 3 - found.ndim)
    return with_ndim(found, 1, 2)


def embedded_diagonal(given: Given) -> What:
    return shifted(_plain(given), 1)


def gathered(given: Given) -> What:
    """``gather`` and ``take_along_dim``: the shape of the index."""
    index = given.what(2, "index") or UNKNOWN
    return _plain(given)._replace(low=index.low, high=index.high, sizes=index.sizes if index.is_tensor else None)


def taken(given: Given) -> What:
    """``torch.take``: the shape of the index."""
    index = given.what(1, "index") or UNKNOWN
    return _plain(given)._replace(low=index.low, high=index.high, sizes=index.sizes if index.is_tensor else None)


def indexed(given: Given) -> What:
    """``index_select``: as many dimensions; of none, none."""
    return _plain(given)._replace(sizes=None)


def masked(given: Given) -> What:
    """``masked_select``: one dimension."""
    return with_ndim(_plain(given), 1, 1)


def found_at(given: Given) -> What:
    """``nonzero``: rows of indices, or a tuple of them."""
    switch = given.switch(1, "as_tuple")
    rows = tensor("integer", dtype="int64", device=given.tensor.device)
    if switch is False:
        return rows._replace(low=2, high=2)
    return What("tuple", of=rows._replace(low=1, high=1)) if switch else UNKNOWN


def unique(given: Given) -> What:
    """``unique``: the values, or a tuple with what else is asked for; with ``dim`` as many dimensions."""
    extra = [given.value(-1, word, default=False) for word in ("return_inverse", "return_counts")]
    dim = given.what(-1, "dim")
    found = _plain(given)
    values = found._replace(sizes=None) if dim is not None else with_ndim(found, 1, 1)
    if extra == [False, False]:
        return values if len(given.operands()) < 3 else UNKNOWN
    more = tensor("integer", dtype="int64", device=found.device)
    return What("tuple", items=(values, *(more for each in extra if each is True))) if ... not in extra else UNKNOWN


def interleaved(given: Given) -> What:
    """``repeat_interleave``: without ``dim`` one dimension."""
    if given.what(1, "repeats") is None:
        return tensor("integer", dtype="int64", device=given.tensor.device)._replace(low=1, high=1)
    found = _plain(given)._replace(sizes=None)
    return found if given.what(2, "dim") is not None else with_ndim(found, 1, 1)


def hot(given: Given) -> What:
    """``F.one_hot``: a dimension more, of int64."""
    found = inserted(_plain(given), -1, given.number(1, "num_classes", -1))
    return found._replace(dtype="int64", family="integer", grad=False)
