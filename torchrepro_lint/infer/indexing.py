"""What indexing gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer.shapes import open_shape, shifted
from torchrepro_lint.infer.what import NONE, UNKNOWN, What
from torchrepro_lint.syntax.nodes import Constant, Expression, Operation

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

_SEQUENCES = ("list", "tuple", "iterator")


def picked(kinds: TypeInference, what: What, indices: tuple[Expression, ...], spot: Spot) -> What:
    """What ``value[indices]`` is."""
    if what.kind in ("nothing", "loaded"):
        return what
    if not what.kind:
        return What(grad=what.grad, family=what.family)
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
    if what.kind in ("nothing", "loaded"):
        return what
    if what.items is not None:
        return what.items[place] if -len(what.items) <= place < len(what.items) else UNKNOWN
    if what.is_tensor or what.kind == "ndarray":
        return row(what)
    if not what.kind:
        return What(grad=what.grad)
    return what.element if what.kind in _SEQUENCES or what.kind == "str" else UNKNOWN


def row(what: What) -> What:
    """What one index takes out of a tensor."""
    if what.kind == "ndarray":
        return UNKNOWN
    low = max(what.low - 1, 0)
    high = None if what.high is None else max(what.high - 1, 0)
    sizes = what.sizes[1:] if what.sizes else None
    return what._replace(kind="tensor", low=low, high=high, sizes=sizes, scalar=False)


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


def _of_tensor(kinds: TypeInference, what: What, indices: tuple[Expression, ...], spot: Spot) -> What:
    """Numbers drop a dimension, slices keep it, ``None`` adds one; an index that is not known leaves the number open."""
    if what.kind == "ndarray":
        return What("ndarray", dtype=what.dtype, family=what.family) if any(map(_keeps, indices)) else UNKNOWN
    if len(indices) == 1 and not _keeps(indices[0]) and kinds.what(indices[0], spot).kind == "int":
        return row(what)
    change, tensors = 0, []
    for index in indices:
        found = UNKNOWN if _keeps(index) else NONE if _adds(index) else kinds.what(index, spot)
        if found is NONE or found.kind == "int":
            change += 1 if found is NONE else -1
        elif found.is_tensor or found.kind == "list":
            tensors.append(found)
        elif not _keeps(index):
            return open_shape(what._replace(kind="tensor", layout=_unlaid(what.layout)))
    found = shifted(what._replace(kind="tensor", layout=_unlaid(what.layout)), change)
    return _by_tensors(found, tensors) if tensors else found


def _by_tensors(what: What, indices: list[What]) -> What:
    """Masks and tensors of indices: what they have of dimensions goes, what they have together comes."""
    gone, come, masks = 0, 0, False
    for index in indices:
        count = 1 if index.kind == "list" else index.ndim
        if count is None or (index.is_tensor and not index.integral):
            return open_shape(what)
        mask = index.family == "bool"
        masks = masks or mask
        gone += count if mask else 1
        come = max(come, 1 if mask else count)
    return shifted(what, come - gone)


def _adds(index: Expression) -> bool:
    return isinstance(index, Constant) and index.value is None


def _keeps(index: Expression) -> bool:
    return isinstance(index, Operation) and index.op in (":", "...")


def _unlaid(layout: str) -> str:
    return "" if layout == "contiguous" else layout
