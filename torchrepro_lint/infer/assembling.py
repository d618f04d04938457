"""Operations on several tensors: products, concatenations, lookups, layers as functions."""

from __future__ import annotations

from torchrepro_lint.infer import elementwise, shapes
from torchrepro_lint.infer.containers import element
from torchrepro_lint.infer.dtypes import common_device, common_gradient, promoted
from torchrepro_lint.infer.given import Given, Rule
from torchrepro_lint.infer.what import UNKNOWN, What, tensor


def _listed(given: Given) -> tuple[list[What], What]:
    """The tensors of a sequence, one by one where they are known, and what all are."""
    sequence = given.what(0, "tensors") or UNKNOWN
    whole = element(sequence)
    return list(sequence.items) if sequence.items else [whole], whole


def _together(given: Given) -> What:
    every, whole = _listed(given)
    dtype, kind = promoted(every)
    known = all(each.is_tensor for each in every)
    low = min((each.low for each in every), default=0) if known else 0
    highs = [each.high for each in every]
    high = None if None in highs or not known else max(each for each in highs if each is not None)
    found = tensor(kind, dtype=dtype, device=common_device(every), layout="contiguous", grad=common_gradient(every))
    found = found._replace(low=low, high=high)
    return found._replace(layout="" if whole.layout in ("sparse", "quantized", "nested") else "contiguous")


def concatenated(given: Given) -> What:
    """``cat``: as many dimensions."""
    return _together(given)


def stacked(given: Given) -> What:
    """``stack``: a dimension more."""
    return shapes.shifted(_together(given), 1)


def stacked_flat(given: Given) -> What:
    """``hstack`` and the like."""
    found = _together(given)
    return shapes.with_ndim(found, max(found.low, 1), None if found.high is None else max(found.high, 2))


def padded(given: Given) -> What:
    """``pad_sequence``: a dimension more."""
    return shapes.shifted(_together(given)._replace(layout=""), 1)


def multiplied(given: Given) -> What:
    """``matmul`` and ``@``."""
    return elementwise.matmul(given.tensor, given.what(1, "other") or UNKNOWN)


def product(ndim: int) -> Rule:
    """``mm``, ``bmm``, ``mv``, ``dot``: the rule for so many dimensions."""

    def rule(given: Given) -> What:
        found = elementwise.pointwise([given.tensor, given.what(1) or UNKNOWN])
        return shapes.with_ndim(found._replace(layout=""), ndim, ndim)

    return rule


def summed_product(given: Given) -> What:
    """``torch.einsum("bij,bjk->bik", a, b)``: as many dimensions as letters after the arrow."""
    equation = given.value(0, "equation")
    operands = [each for each in given.operands()[1:] if not each.kind or each.is_tensor]
    dtype, kind = promoted(operands)
    found = tensor(kind, dtype=dtype, device=common_device(operands), grad=common_gradient(operands))
    if not isinstance(equation, str) or "->" not in equation or "..." in equation:
        return found
    count = len(equation.rpartition("->")[2].replace(" ", ""))
    return shapes.with_ndim(found, count, count)


def added_product(ndim: int) -> Rule:
    """``addmm`` and the like."""

    def rule(given: Given) -> What:
        return shapes.with_ndim(elementwise.pointwise(given.operands()[:3])._replace(layout=""), ndim, ndim)

    return rule


def outer(given: Given) -> What:
    return shapes.with_ndim(elementwise.pointwise(given.operands()[:2])._replace(layout=""), 2, 2)


def grids(given: Given) -> What:
    """``meshgrid``: a tuple of tensors with as many dimensions as there are."""
    operands = given.operands()
    first = operands[0] if operands else UNKNOWN
    parts = list(first.items) if first.kind in ("list", "tuple") and first.items else operands
    if given.stars or not all(each.is_tensor for each in parts):
        return What("tuple", of=tensor(device=common_device(parts), grad=common_gradient(parts)))
    each = tensor(parts[0].family, dtype=parts[0].dtype, device=parts[0].device, grad=parts[0].grad)
    return What("tuple", items=(shapes.with_ndim(each, len(parts), len(parts)),) * len(parts))


def crossed(given: Given) -> What:
    """``cartesian_prod``: a row for each pair, of one tensor itself."""
    operands = given.operands()
    if given.stars or not all(each.is_tensor for each in operands):
        return tensor(device=common_device(operands), grad=common_gradient(operands))
    return _rows(operands, 1 if len(operands) == 1 else 2)


def combined(given: Given) -> What:
    """``combinations``: a row for each."""
    return _rows([given.tensor], 2)


def _rows(operands: list[What], ndim: int) -> What:
    dtype, kind = promoted(operands)
    found = tensor(kind, dtype=dtype, device=common_device(operands), grad=common_gradient(operands))
    return shapes.with_ndim(found, ndim, ndim)


def linear(given: Given) -> What:
    """``F.linear``: as many dimensions."""
    weight = given.what(1, "weight") or UNKNOWN
    found = given.tensor._replace(kind="tensor", layout="", sizes=None)
    return found._replace(grad=False if found.grad is False and weight.grad is False else None)


def convolved(count: int) -> Rule:
    """A convolution over so many dimensions: as many as before, and a gradient where the weight has one."""
    return lambda given: shapes.spatial(linear(given), count)


def looked_up(given: Given) -> What:
    """``F.embedding``: a dimension more, of what the weight holds."""
    weight = given.what(1, "weight") or UNKNOWN
    found = shapes.shifted(tensor(weight.family or "floating", dtype=weight.dtype, device=weight.device), 0)
    index = given.tensor
    return shapes.with_ndim(found, index.low + 1, None if index.high is None else index.high + 1)._replace(
        grad=weight.grad
    )


def resized(given: Given) -> What:
    """Padding, shuffling pixels: as many dimensions."""
    return given.tensor._replace(kind="tensor", layout="", sizes=None)


def pooled(count: int) -> Rule:
    """Pooling over so many dimensions."""
    return lambda given: shapes.spatial(resized(given), count)


def interpolated(given: Given) -> What:
    """``F.interpolate``: the mode says how many dimensions there are."""
    return shapes.resized(resized(given), given.value(3, "mode", default="nearest"))


def interpolated_as(mode: str) -> Rule:
    """``F.upsample_bilinear``."""
    return lambda given: shapes.resized(resized(given), mode)


def pooled_with_indices(count: int) -> Rule:
    """Max pooling, with indices where they are asked for."""

    def rule(given: Given) -> What:
        found = shapes.spatial(resized(given), count)
        asked = given.value(-1, "return_indices", default=False)
        if asked is False and len(given.operands()) <= 6:
            return found
        places = found._replace(dtype="int64", family="integer", grad=False)
        return What("tuple", items=(found, places)) if asked is True else UNKNOWN

    return rule


def sampled(given: Given) -> What:
    """``F.grid_sample``: as many dimensions, a gradient of the grid's too."""
    grid = given.what(1, "grid") or UNKNOWN
    found = resized(given)
    return found._replace(grad=False if found.grad is False and grad_free(grid) else None)


def grad_free(what: What) -> bool:
    return what.grad is False


def written(given: Given) -> What:
    """``scatter``, ``index_add``, ``index_put``: the input's shape, a gradient of what is written too; indices have none."""
    found = given.tensor._replace(kind="tensor")
    word = getattr(given.call.func, "path", ("",))[-1:] or ("",)
    at = 2 if word[0].startswith(("index_put", "masked", "put")) else 3
    source = given.what(at, "src") if at == 3 else given.what(at, "source")
    named = [each for key in ("src", "source", "values", "value") if (each := given.what(-1, key)) is not None]
    operands = [given.tensor, *([] if source is None else [source]), *named]
    return found._replace(
        grad=common_gradient(operands), layout="contiguous" if found.layout == "contiguous" else found.layout
    )


def attended(given: Given) -> What:
    """``scaled_dot_product_attention``: as many dimensions as the query."""
    found = given.tensor._replace(kind="tensor", layout="", sizes=None)
    return found._replace(grad=common_gradient(given.operands()[:3]))
