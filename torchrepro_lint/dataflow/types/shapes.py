"""Shape functions: the rank and the sizes of an operation's result, from those of its operands and its arguments.

The first half are the functions that the table of tensor operations names; each gets the value whose shape it changes and
the arguments of the call. The second half is the arithmetic behind them. A size that is None is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from torchrepro_lint.dataflow.types.context import TorchArguments
from torchrepro_lint.dataflow.types.lattice import NUMBERS, UNKNOWN, AbstractValue, nested_data


def same(what: AbstractValue, _: TorchArguments) -> AbstractValue:
    """The shape of the operand."""
    return what


def same_rank(what: AbstractValue, _: TorchArguments) -> AbstractValue:
    """The rank of the operand: ``narrow``."""
    return what._replace(sizes=None)


def open_shape(what: AbstractValue, _: TorchArguments | None = None) -> AbstractValue:
    """Any shape."""
    return what._replace(min_ndim=0, max_ndim=None, sizes=None, scalar=False)


def rank(what: AbstractValue, _: TorchArguments, ndim: int = 0, low: int = 0, high: int = 0) -> AbstractValue:
    """The rank ``ndim``, or one between ``low`` and ``high``."""
    found = with_ndim(what, low or ndim, high or ndim)
    return found if found.max_ndim else with_sizes(what, ())


def shift(what: AbstractValue, _: TorchArguments, by: int) -> AbstractValue:
    """So many more dimensions."""
    return shifted(what, by)


def reduce(
    what: AbstractValue, arguments: TorchArguments, dim: int = 1, keepdim: int = 2, default: int | None = None
) -> AbstractValue:
    """A reduction over all dimensions, or over those of the argument at ``dim``."""
    given, kept = arguments.value_of(dim, "dim"), arguments.flag(keepdim, "keepdim")
    if kept is None:
        return open_shape(what)
    if given is None or given.kind == "none":
        return _reduced(what, None if default is None else (default,), keepdim=kept)
    dims = (given.value,) if given.kind == "int" else arguments.integers(dim, "dim")
    known = [each for each in dims or () if isinstance(each, int)]
    if known and len(known) == len(dims or ()):
        return _reduced(what, tuple(known), keepdim=kept)
    if kept:
        return what._replace(sizes=None)
    return shifted(what, -1) if given.kind == "int" else open_shape(what)


def broadcast(what: AbstractValue, arguments: TorchArguments, first: int | None = None) -> AbstractValue:
    """The broadcast shape of the ``first`` operands, or of all."""
    return with_shape_of(what, broadcast_shape(arguments.operands[:first]))


def matmul(what: AbstractValue, arguments: TorchArguments, ndim: int | None = None) -> AbstractValue:
    """A matrix product, of the rank ``ndim`` if that of the operands is unknown."""
    found = matmul_shape(what, *arguments.operands[:2]) if len(arguments.operands) > 1 else open_shape(what)
    return with_ndim(found, ndim, ndim) if ndim is not None and found.ndim is None else found


def like(what: AbstractValue, arguments: TorchArguments, at: int, word: str) -> AbstractValue:
    """The shape of another argument: ``gather``."""
    other = arguments.value_of(at, word) or UNKNOWN
    return open_shape(what) if other.kind and not other.is_tensor else with_shape_of(what, other)


def view(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``view`` and ``reshape``: -1 is computed if all other sizes are known; ``view`` also takes a dtype."""
    first = arguments.value_of(1, "dtype")
    if first is not None and first.kind == "dtype":
        return what._replace(dtype=first.dtype, family=first.family, sizes=None)
    sizes = arguments.integers(1, "shape")
    if sizes is None:
        return open_shape(what)
    if -1 in sizes and None not in sizes and what.sizes is not None and None not in what.sizes:
        rest = prod(size for size in sizes if size is not None and size != -1)
        total = prod(size for size in what.sizes if size is not None)
        sizes = tuple(total // rest if size == -1 and rest else size for size in sizes)
    return with_sizes(what, sizes)


def expand(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``expand`` and ``broadcast_to``: -1 keeps a size."""
    sizes = arguments.integers(1, "size")
    if not sizes:
        return open_shape(what)
    old = (*(None,) * len(sizes), *(what.sizes or ()))[-len(sizes) :]
    return with_sizes(what, tuple(before if size == -1 else size for size, before in zip(sizes, old, strict=True)))


def repeat(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``repeat`` and ``tile``: the rank is at least the number of factors."""
    counts = arguments.integers(1, "repeats") or arguments.integers(-1, "dims")
    if not counts:
        return open_shape(what)
    return with_ndim(what, max(len(counts), what.min_ndim), _most(what.max_ndim, len(counts)))


def flatten(what: AbstractValue, arguments: TorchArguments, start: int = 0) -> AbstractValue:
    """The dimensions from ``start_dim`` to ``end_dim`` merged."""
    first, last = arguments.integer(1, "start_dim", start), arguments.integer(2, "end_dim", -1)
    if what.ndim is None or first is None or last is None:
        if last == -1 and first is not None and first >= 0:
            return with_ndim(what, first + 1, first + 1)
        return with_ndim(what, min(what.min_ndim, 1), what.max_ndim)
    count = max(what.ndim, 1)
    if not (-count <= first < count and -count <= last < count):
        return open_shape(what)
    first, last = first % count, last % count
    if what.sizes is None:
        return with_ndim(what, count - (last - first), count - (last - first))
    merged = what.sizes[first : last + 1]
    size = None if None in merged else prod(each for each in merged if each is not None)
    return with_sizes(what, (*what.sizes[:first], size, *what.sizes[last + 1 :]))


def unflatten(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """One dimension split into several."""
    sizes = arguments.integers(2, "sizes")
    return shifted(what, len(sizes) - 1) if sizes else open_shape(what)


def squeeze(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """The tensor without a dimension of size 1; without argument, without all of them."""
    given, dim = arguments.value_of(1, "dim"), arguments.integer(1, "dim")
    if given is not None and given.kind != "int":
        return with_ndim(what, 0, what.max_ndim)
    if what.sizes is not None and given is None and None not in what.sizes:
        return with_sizes(what, tuple(size for size in what.sizes if size != 1))
    if what.sizes is not None and dim is not None and -len(what.sizes) <= dim < len(what.sizes):
        at = dim % len(what.sizes)
        if what.sizes[at] is not None:
            return with_sizes(what, (*what.sizes[:at], *what.sizes[at + 1 :])) if what.sizes[at] == 1 else what
    return with_ndim(what, 0 if given is None else what.min_ndim - 1, what.max_ndim)


def unsqueeze(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """One more dimension, of size 1, at ``dim``."""
    return _with_dimension(what, arguments.integer(1, "dim"), 1)


def one_hot(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """One more dimension, for the classes."""
    return _with_dimension(what, -1, arguments.integer(1, "num_classes", -1))


def permute(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """The dimensions in another order."""
    order = arguments.integers(1, "dims")
    if not order or what.sizes is None or len(order) != len(what.sizes):
        return with_ndim(what, len(order), len(order)) if order else what._replace(sizes=None)
    known = tuple(
        None if at is None else what.sizes[at] for at in order if at is None or -len(order) <= at < len(order)
    )
    return with_sizes(what, known) if len(known) == len(order) else open_shape(what)


def swap(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """Two dimensions exchanged; the rank is at least what they require."""
    dims = [arguments.integer(1, "dim0"), arguments.integer(2, "dim1")]
    known = [dim for dim in dims if dim is not None]
    found = _with_swap(what, *known) if len(known) > 1 else what._replace(sizes=None)
    least = max((-dim if dim < 0 else dim + 1 for dim in known), default=0)
    fits = found.min_ndim < least != 1 and (found.max_ndim is None or found.max_ndim >= least)
    return found._replace(min_ndim=least) if fits else found


def matrix_transpose(what: AbstractValue, _: TorchArguments) -> AbstractValue:
    """``x.t()``: at most rank 2."""
    found = _with_swap(what, 0, 1) if what.ndim == 2 else what
    return found._replace(max_ndim=2 if found.max_ndim is None else min(found.max_ndim, 2))


def diagonal(what: AbstractValue, _: TorchArguments) -> AbstractValue:
    """``diag``: a matrix of a vector, a vector of a matrix."""
    return with_ndim(what, 3 - what.ndim, 3 - what.ndim) if what.ndim in (1, 2) else with_ndim(what, 1, 2)


def concatenate(what: AbstractValue, arguments: TorchArguments, by: int = 0, least: int = 0) -> AbstractValue:
    """``cat``: the rank of the operands; ``by`` dimensions more, and at least ``least``."""
    every = arguments.operands
    if not all(each.is_tensor for each in every):
        return with_ndim(what, by or least, None)
    high = _most(*(each.max_ndim for each in every))
    low = min(each.min_ndim for each in every)
    return with_ndim(what, max(low + by, least), None if high is None else max(high + by, least))


def product_rows(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``cartesian_prod``: a row for each combination; of one tensor, the tensor."""
    if not all(each.is_tensor for each in arguments.operands):
        return open_shape(what)
    return with_ndim(what, *((1, 1) if len(arguments.operands) == 1 else (2, 2)))


def einsum(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """The rank is the number of letters after the arrow: ``bij,bjk->bik``."""
    equation = arguments.constant(0, "equation")
    if not isinstance(equation, str) or "->" not in equation or "..." in equation:
        return open_shape(what)
    count = len(equation.rpartition("->")[2].replace(" ", ""))
    return with_ndim(what, count, count) if count else with_sizes(what, ())


def loss(what: AbstractValue, arguments: TorchArguments, most: int = 3) -> AbstractValue:
    """Rank 0, unless ``reduction``, or an argument behind the first ``most``, keeps each element."""
    plain = sum(arg.keyword is None for arg in arguments.call.args) + (arguments.receiver is not None)
    reduced = arguments.constant(-1, "reduction", default="mean") in ("mean", "sum", "batchmean")
    whole = reduced and plain <= most and arguments.constant(-1, "reduce") in (None, True)
    return with_sizes(what, ()) if whole else open_shape(what)


def spatial(what: AbstractValue, _: TorchArguments, n: int) -> AbstractValue:
    """So many spatial dimensions, channels, and perhaps a batch, if that fits what is known."""
    low, high = max(what.min_ndim, n + 1), n + 2
    if what.max_ndim is not None and what.max_ndim < low:
        low, high = n + 1, n + 2
    return with_ndim(what, low, min(high, what.max_ndim or high))


# The rank that each mode of ``interpolate`` takes: spatial dimensions, batch and channels.
_MODES = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def resize(what: AbstractValue, arguments: TorchArguments, mode: str = "") -> AbstractValue:
    """``interpolate``: the mode implies the rank."""
    asked = mode or arguments.constant(3, "mode", default="nearest")
    if isinstance(asked, str) and asked in _MODES:
        return with_ndim(what, _MODES[asked], _MODES[asked])
    fits = what.max_ndim is not None and what.max_ndim >= 3
    return with_ndim(what, max(what.min_ndim, 3), what.max_ndim if fits else None)


def embedding(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``F.embedding``: one more dimension than the index."""
    return shifted(with_shape_of(what, arguments.tensor), 1)


def linear(what: AbstractValue, arguments: TorchArguments, at: int) -> AbstractValue:
    """``nn.Linear``: another last size."""
    if what.sizes:
        return with_sizes(what, (*what.sizes[:-1], arguments.integer(at, "out_features")))
    return what._replace(sizes=None, min_ndim=max(what.min_ndim, 1))


def sizes(what: AbstractValue, arguments: TorchArguments, at: int = 0) -> AbstractValue:
    """The sizes that the call names: ``torch.zeros(3, 4)``; the value to fill with is none of them."""
    numbers = arguments.integers(at, "size")
    return open_shape(what) if numbers is None else with_sizes(what, numbers)


def random_sizes(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``torch.randint(low, high, size)``, with or without ``low``."""
    at = 2 if arguments.value_of(2) or (arguments.value_of(-1, "high") and arguments.value_of(1)) else 1
    numbers = arguments.integers(-1 if arguments.value_of(-1, "size") else at, "size")
    return with_sizes(what, numbers) if numbers else open_shape(what)


def length(what: AbstractValue, arguments: TorchArguments, at: int, word: str) -> AbstractValue:
    """A vector as long as an argument says."""
    return with_sizes(what, (arguments.integer(at, word),))


def counted(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``torch.arange(end)``; with a start, the length is not computed."""
    ends = [each for each in (arguments.value_of(0), arguments.value_of(-1, "end")) if each is not None]
    others = (arguments.value_of(1), arguments.value_of(-1, "start"), arguments.value_of(-1, "step"))
    alone = len(ends) == 1 and not any(others)
    return with_sizes(what, (arguments.integer(0, "end") if alone else None,))


def square(what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """``torch.eye(n, m)``."""
    rows = arguments.integer(0, "n")
    return with_sizes(what, (rows, rows if arguments.value_of(1, "m") is None else arguments.integer(1, "m")))


def data(what: AbstractValue, arguments: TorchArguments, at: int) -> AbstractValue:
    """The shape of nested lists, or of a tensor."""
    given = arguments.value_of(at, "data") or UNKNOWN
    if given.is_tensor:
        return with_shape_of(what, given)
    numbers = nested_data(given)[1]
    return open_shape(what) if numbers is None else with_sizes(what, numbers)


SHAPES: dict[str, Callable[..., AbstractValue]] = {each.__name__: each for each in (
    same, same_rank, open_shape, rank, shift, reduce, broadcast, matmul, like, view, expand, repeat, flatten, unflatten, squeeze,
    unsqueeze, one_hot, permute, swap, matrix_transpose, diagonal, concatenate, product_rows, einsum, loss, spatial, resize,
    embedding, linear, sizes, random_sizes, length, counted, square, data,
)}  # fmt: skip


# --- arithmetic ------------------------------------------------------------------------------------------------------


def with_shape_of(what: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The tensor with the shape of another."""
    return what._replace(min_ndim=other.min_ndim, max_ndim=other.max_ndim, sizes=other.sizes, scalar=other.scalar)


def with_ndim(what: AbstractValue, low: int, high: int | None) -> AbstractValue:
    """The tensor with a rank in this range and unknown sizes."""
    return what._replace(min_ndim=max(low, 0), max_ndim=None if high is None else max(high, 0), sizes=None)


def shifted(what: AbstractValue, change: int) -> AbstractValue:
    """The tensor with so many more dimensions."""
    return with_ndim(what, what.min_ndim + change, None if what.max_ndim is None else what.max_ndim + change)


def with_sizes(what: AbstractValue, sizes: Sequence[int | None]) -> AbstractValue:
    """The tensor with these sizes; -1 becomes unknown."""
    plain = tuple(None if size is None or size < 0 else size for size in sizes)
    return what._replace(min_ndim=len(plain), max_ndim=len(plain), sizes=plain)


def broadcast_shape(operands: Sequence[AbstractValue]) -> AbstractValue:
    """A tensor with the broadcast shape of tensors and numbers."""
    found = AbstractValue("tensor", max_ndim=0, sizes=())
    for each in operands:
        if each.kind not in NUMBERS:
            found = _broadcast(found, each if each.is_tensor else AbstractValue("tensor"))
    return found


def matmul_shape(what: AbstractValue, left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The value with the shape of a matrix product: of two vectors a number, with one vector a dimension less."""
    a, b = left.ndim, right.ndim
    if a is None or b is None or not (left.is_tensor and right.is_tensor):
        if min(left.min_ndim, right.min_ndim) < 2:
            return open_shape(what)
        return with_ndim(what, max(left.min_ndim, right.min_ndim), _most(left.max_ndim, right.max_ndim))
    count = max(a, b) - (a == 1) - (b == 1) if max(a, b) > 1 else 0
    if left.sizes is None or right.sizes is None or len(left.sizes) < 2 or len(right.sizes) != 2:
        return with_ndim(what, count, count)
    return with_sizes(what, (*left.sizes[:-1], right.sizes[-1]))


def _most(*ranks: int | None) -> int | None:
    """The highest of some ranks; None, which is unknown, if one is."""
    known = [each for each in ranks if each is not None]
    return max(known) if len(known) == len(ranks) else None


def _reduced(what: AbstractValue, dims: tuple[int, ...] | None, *, keepdim: bool) -> AbstractValue:
    """The tensor reduced over ``dims`` (None: all), which are dropped or, with ``keepdim``, get the size 1."""
    if dims is None:
        return with_sizes(what, ()) if not keepdim else what._replace(sizes=None)
    if what.sizes is None or any(not -len(what.sizes) <= dim < len(what.sizes) for dim in dims):
        return what._replace(sizes=None) if keepdim else shifted(what, -len(dims))
    gone = {dim % len(what.sizes) for dim in dims}
    if keepdim:
        return with_sizes(what, tuple(1 if at in gone else size for at, size in enumerate(what.sizes)))
    return with_sizes(what, tuple(size for at, size in enumerate(what.sizes) if at not in gone))


def _with_dimension(what: AbstractValue, dim: int | None, size: int | None) -> AbstractValue:
    """The tensor with one more dimension at ``dim``."""
    if what.sizes is None or dim is None or not -len(what.sizes) - 1 <= dim <= len(what.sizes):
        return shifted(what, 1)
    at = dim if dim >= 0 else dim + len(what.sizes) + 1
    return with_sizes(what, (*what.sizes[:at], size, *what.sizes[at:]))


def _with_swap(what: AbstractValue, one: int, other: int) -> AbstractValue:
    """The tensor with two dimensions exchanged."""
    if what.sizes is None or not all(-len(what.sizes) <= at < len(what.sizes) for at in (one, other)):
        return what._replace(sizes=None)
    swapped = list(what.sizes)
    swapped[one], swapped[other] = swapped[other], swapped[one]
    return with_sizes(what, swapped)


def _broadcast(one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The first tensor with the broadcast shape of both."""
    if one.sizes is None or other.sizes is None:
        return with_ndim(one, max(one.min_ndim, other.min_ndim), _most(one.max_ndim, other.max_ndim))
    count = max(len(one.sizes), len(other.sizes))
    first = (1,) * (count - len(one.sizes)) + one.sizes
    second = (1,) * (count - len(other.sizes)) + other.sizes
    return with_sizes(one, [_wider(a, b) for a, b in zip(first, second, strict=True)])


def _wider(one: int | None, other: int | None) -> int | None:
    if one == 1:
        return other
    return other if one is None and other != 1 else one
