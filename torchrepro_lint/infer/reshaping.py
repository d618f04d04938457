"""Operations that give the same elements another shape, or select among them."""

from __future__ import annotations

from torchrepro_lint.infer import shapes
from torchrepro_lint.infer.given import Given
from torchrepro_lint.infer.what import UNKNOWN, What, tensor


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
    return shapes.open_shape(found) if not sizes and given.operands()[1:] else shapes.viewed(found, sizes or ())


def shaped_like(given: Given) -> What:
    """``view_as`` and ``expand_as``."""
    other = given.what(1, "other") or UNKNOWN
    found = _plain(given)
    return (
        found._replace(low=other.low, high=other.high, sizes=other.sizes)
        if other.is_tensor
        else shapes.open_shape(found)
    )


def expanded(given: Given) -> What:
    """``expand`` and ``broadcast_to``: -1 keeps a size."""
    sizes = given.numbers(1, "size")
    if not sizes:
        return shapes.open_shape(_plain(given))
    old = given.tensor.sizes or ()
    kept = (*(None,) * (len(sizes) - len(old)), *old)[-len(sizes) :] if len(old) <= len(sizes) else sizes
    return shapes.with_sizes(_plain(given), tuple(k if s == -1 else s for s, k in zip(sizes, kept, strict=True)))


def repeated(given: Given) -> What:
    """``repeat`` and ``tile``: as many dimensions as factors, or more."""
    counts, found = given.numbers(1, "repeats"), _plain(given)
    if not counts:
        return shapes.open_shape(found)
    return shapes.with_ndim(
        found, max(len(counts), found.low), None if found.high is None else max(len(counts), found.high)
    )


def flattened(given: Given) -> What:
    start = given.number(1, "start_dim", 0)
    return shapes.flattened(given.tensor._replace(kind="tensor"), start, given.number(2, "end_dim", -1))


def raveled(given: Given) -> What:
    return shapes.flattened(given.tensor._replace(kind="tensor"), 0, -1)


def unflattened(given: Given) -> What:
    sizes = given.numbers(2, "sizes")
    found = _plain(given)
    return shapes.open_shape(found) if sizes is None or not sizes else shapes.shifted(found, len(sizes) - 1)


def squeezed(given: Given) -> What:
    dim = given.what(1, "dim")
    if dim is None:
        return shapes.squeezed(given.tensor._replace(kind="tensor"), None)
    found = shapes.squeezed(given.tensor._replace(kind="tensor"), given.number(1, "dim"))
    return found if dim.kind == "int" else shapes.with_ndim(found, 0, given.tensor.high)


def unsqueezed(given: Given) -> What:
    return shapes.inserted(given.tensor._replace(kind="tensor"), given.number(1, "dim"))


def permuted(given: Given) -> What:
    dims = given.numbers(1, "dims")
    found = _plain(given)
    return shapes.permuted(found, dims)._replace(layout=_strided(given)) if dims else found._replace(sizes=None)


def swapped(given: Given) -> What:
    dims = given.number(1, "dim0"), given.number(2, "dim1")
    found = shapes.swapped(_plain(given), *dims)._replace(layout=_strided(given))
    # There are as many dimensions at least as the two that are named ask for.
    least = max((-dim if dim < 0 else dim + 1 for dim in dims if dim is not None), default=0)
    return found._replace(low=least) if found.low < least and (found.high is None or found.high >= least) else found


def transposed(given: Given) -> What:
    """``x.t()``, of at most two dimensions."""
    found = shapes.swapped(_plain(given), 0, 1) if given.tensor.ndim == 2 else _plain(given)._replace(sizes=None)
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
    return What("tuple", of=shapes.with_ndim(_plain(given), given.tensor.low - 1, _less(given.tensor.high)))


def _less(high: int | None) -> int | None:
    return None if high is None else max(high - 1, 0)


def selected(given: Given) -> What:
    """``select``, ``diagonal``, ``trace``-like: a dimension less."""
    return shapes.shifted(_plain(given), -1)


def windowed(given: Given) -> What:
    """``x.unfold(dim, size, step)``: a dimension more; ``F.unfold`` gives three."""
    return shapes.shifted(_plain(given), 1)


def columns(given: Given) -> What:
    return shapes.with_ndim(_plain(given), 2, 3)


def diagonal(given: Given) -> What:
    """``diag``: a matrix of a vector, a vector of a matrix."""
    found = _plain(given)
    if found.ndim in (1, 2):
        return shapes.with_ndim(found, 3 - found.ndim, 3 - found.ndim)
    return shapes.with_ndim(found, 1, 2)


def embedded_diagonal(given: Given) -> What:
    return shapes.shifted(_plain(given), 1)


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
    return shapes.with_ndim(_plain(given), 1, 1)


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
    values = found._replace(sizes=None) if dim is not None else shapes.with_ndim(found, 1, 1)
    if extra == [False, False]:
        return values if len(given.operands()) < 3 else UNKNOWN
    more = tensor("integer", dtype="int64", device=found.device)
    return What("tuple", items=(values, *(more for each in extra if each is True))) if ... not in extra else UNKNOWN


def interleaved(given: Given) -> What:
    """``repeat_interleave``: without ``dim`` one dimension."""
    if given.what(1, "repeats") is None:
        return tensor("integer", dtype="int64", device=given.tensor.device)._replace(low=1, high=1)
    found = _plain(given)._replace(sizes=None)
    return found if given.what(2, "dim") is not None else shapes.with_ndim(found, 1, 1)


def hot(given: Given) -> What:
    """``F.one_hot``: a dimension more, of int64."""
    found = shapes.inserted(_plain(given), -1, given.number(1, "num_classes", -1))
    return found._replace(dtype="int64", family="integer", grad=False)
