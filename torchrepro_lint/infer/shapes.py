"""How operations change the dimensions of a tensor. A dimension that is None is one that is not known."""

from __future__ import annotations

from math import prod

from torchrepro_lint.infer.what import What


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


def viewed(what: What, sizes: tuple[int | None, ...]) -> What:
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


def permuted(what: What, order: tuple[int | None, ...]) -> What:
    """With its dimensions in another order, all of them named."""
    count = len(order)
    if what.sizes is None or len(what.sizes) != count or any(at is None or not -count <= at < count for at in order):
        return with_ndim(what, count, count)
    return with_sizes(what, tuple(what.sizes[at] for at in order if at is not None))


def swapped(what: What, one: int | None, other: int | None) -> What:
    """With two dimensions exchanged."""
    if what.sizes is None or one is None or other is None:
        return what._replace(sizes=None)
    sizes = list(what.sizes)
    if not all(-len(sizes) <= at < len(sizes) for at in (one, other)):
        return what._replace(sizes=None)
    sizes[one], sizes[other] = sizes[other], sizes[one]
    return with_sizes(what, tuple(sizes))


def squeezed(what: What, dim: int | None) -> What:
    """Without one dimension of size 1, if it is one; without a number, without all of them."""
    if what.sizes is not None and None not in what.sizes and dim is None:
        return with_sizes(what, tuple(size for size in what.sizes if size != 1))
    if what.sizes is not None and dim is not None and -len(what.sizes) <= dim < len(what.sizes):
        at = dim % len(what.sizes)
        if what.sizes[at] is not None:
            return with_sizes(what, (*what.sizes[:at], *what.sizes[at + 1 :])) if what.sizes[at] == 1 else what
    return with_ndim(what, 0 if dim is None else what.low - 1, what.high)


def flattened(what: What, start: int | None, end: int | None) -> What:
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
