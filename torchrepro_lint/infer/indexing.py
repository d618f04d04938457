"""What indexing gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Constant, Expression, Operation
from torchrepro_lint.infer.what import UNKNOWN, What

if TYPE_CHECKING:
    from torchrepro_lint.infer.kinds import Kinds
    from torchrepro_lint.infer.spot import Spot

_SEQUENCES = ("list", "tuple", "iterator")


def picked(kinds: Kinds, what: What, indices: tuple[Expression, ...], spot: Spot) -> What:
    """What ``value[indices]`` is."""
    if what.kind == "nothing":
        return what
    if what.is_tensor or what.kind == "ndarray":
        return _of_tensor(kinds, what, indices, spot)
    if len(indices) != 1:
        return UNKNOWN
    index = indices[0]
    if isinstance(index, Operation) and index.op == ":":
        return _sliced(what, index)
    if what.kind in _SEQUENCES:
        place = kinds.what(index, spot).value
        return item(what, place) if isinstance(place, int) else what.element
    if what.kind == "dict":
        return what.element
    return What("str", of=What("str")) if what.kind == "str" else UNKNOWN


def item(what: What, place: int) -> What:
    """An element by its number, as unpacking takes it."""
    if what.kind == "nothing":
        return what
    if what.items is not None:
        return what.items[place] if -len(what.items) <= place < len(what.items) else UNKNOWN
    if what.is_tensor or what.kind == "ndarray":
        return row(what)
    return what.element if what.kind in _SEQUENCES or what.kind == "str" else UNKNOWN


def row(what: What) -> What:
    """What one index takes out of a tensor."""
    if what.kind == "ndarray":
        return UNKNOWN
    low = max(what.low - 1, 0)
    high = None if what.high is None else max(what.high - 1, 0)
    sizes = what.sizes[1:] if what.sizes else None
    return what._replace(kind="tensor", low=low, high=high, sizes=sizes)


def _sliced(what: What, index: Operation) -> What:
    if what.kind in ("str", "bytes"):
        return what._replace(value=None)
    if what.kind not in ("list", "tuple"):
        return UNKNOWN
    bounds = [each.value if isinstance(each, Constant) else ... for each in index.operands]
    if what.items is not None and ... not in bounds:
        items = what.items[slice(*bounds)]  # type: ignore[arg-type]
        return what._replace(items=items)
    return what._replace(items=None)


def _of_tensor(kinds: Kinds, what: What, indices: tuple[Expression, ...], spot: Spot) -> What:
    """Numbers drop a dimension, slices keep it, ``None`` adds one; an index that is not known leaves the number open."""
    if what.kind == "ndarray":
        return What("ndarray", family=what.family) if any(_keeps(each) for each in indices) else UNKNOWN
    change = 0
    for index in indices:
        if _keeps(index):
            continue
        if isinstance(index, Constant) and index.value is None:
            change += 1
        elif kinds.what(index, spot).kind == "int":
            change -= 1
        else:
            return what._replace(kind="tensor", low=0, high=None, sizes=None, layout=_unlaid(what.layout))
    low, high = max(what.low + change, 0), None if what.high is None else max(what.high + change, 0)
    if len(indices) == 1 and change == -1:
        return row(what)
    return what._replace(kind="tensor", low=low, high=high, sizes=None, layout=_unlaid(what.layout))


def _keeps(index: Expression) -> bool:
    return isinstance(index, Operation) and index.op in (":", "...")


def _unlaid(layout: str) -> str:
    return "" if layout == "contiguous" else layout
