"""Operations on several tensors: products, concatenations, lookups, layers as functions.

What calling a layer of ``torch.nn`` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import elementwise, reshaping
from torchrepro_lint.dataflow.types.containers import element
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What, common_device, common_gradient, promoted, tensor
from torchrepro_lint.dataflow.types.tensor_arguments import Given, Rule
from torchrepro_lint.syntax.nodes import Call

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot


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
    return reshaping.shifted(_together(given), 1)


def stacked_flat(given: Given) -> What:
    """``hstack`` and the like."""
    found = _together(given)
    return reshaping.with_ndim(found, max(found.low, 1), None if found.high is None else max(found.high, 2))


def padded(given: Given) -> What:
    """``pad_sequence``: a dimension more."""
    return reshaping.shifted(_together(given)._replace(layout=""), 1)


def multiplied(given: Given) -> What:
    """``matmul`` and ``@``."""
    return elementwise.matmul(given.tensor, given.what(1, "other") or UNKNOWN)


def product(ndim: int) -> Rule:
    """``mm``, ``bmm``, ``mv``, ``dot``: the rule for so many dimensions."""

    def rule(given: Given) -> What:
        found = elementwise.pointwise([given.tensor, given.what(1) or UNKNOWN])
        return reshaping.with_ndim(found._replace(layout=""), ndim, ndim)

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
    return reshaping.with_ndim(found, count, count)


def added_product(ndim: int) -> Rule:
    """``addmm`` and the like."""

    def rule(given: Given) -> What:
        return reshaping.with_ndim(elementwise.pointwise(given.operands()[:3])._replace(layout=""), ndim, ndim)

    return rule


def outer(given: Given) -> What:
    return reshaping.with_ndim(elementwise.pointwise(given.operands()[:2])._replace(layout=""), 2, 2)


def grids(given: Given) -> What:
    """``meshgrid``: a tuple of tensors with as many dimensions as there are."""
    operands = given.operands()
    first = operands[0] if operands else UNKNOWN
    parts = list(first.items) if first.kind in ("list", "tuple") and first.items else operands
    if given.stars or not all(each.is_tensor for each in parts):
        return What("tuple", of=tensor(device=common_device(parts), grad=common_gradient(parts)))
    each = tensor(parts[0].family, dtype=parts[0].dtype, device=parts[0].device, grad=parts[0].grad)
    return What("tuple", items=(reshaping.with_ndim(each, len(parts), len(parts)),) * len(parts))


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
    return reshaping.with_ndim(found, ndim, ndim)


def linear(given: Given) -> What:
    """``F.linear``: as many dimensions."""
    weight = given.what(1, "weight") or UNKNOWN
    found = given.tensor._replace(kind="tensor", layout="", sizes=None)
    return found._replace(grad=False if found.grad is False and weight.grad is False else None)


def convolved(count: int) -> Rule:
    """A convolution over so many dimensions: as many as before, and a gradient where the weight has one."""
    return lambda given: reshaping.spatial(linear(given), count)


def looked_up(given: Given) -> What:
    """``F.embedding``: a dimension more, of what the weight holds."""
    weight = given.what(1, "weight") or UNKNOWN
    found = reshaping.shifted(tensor(weight.family or "floating", dtype=weight.dtype, device=weight.device), 0)
    index = given.tensor
    return reshaping.with_ndim(found, index.low + 1, None if index.high is None else index.high + 1)._replace(
        grad=weight.grad
    )


def resized(given: Given) -> What:
    """Padding, shuffling pixels: as many dimensions."""
    return given.tensor._replace(kind="tensor", layout="", sizes=None)


def pooled(count: int) -> Rule:
    """Pooling over so many dimensions."""
    return lambda given: reshaping.spatial(resized(given), count)


def interpolated(given: Given) -> What:
    """``F.interpolate``: the mode says how many dimensions there are."""
    return reshaping.resized(resized(given), given.value(3, "mode", default="nearest"))


def interpolated_as(mode: str) -> Rule:
    """``F.upsample_bilinear``."""
    return lambda given: reshaping.resized(resized(given), mode)


def pooled_with_indices(count: int) -> Rule:
    """Max pooling, with indices where they are asked for."""

    def rule(given: Given) -> What:
        found = reshaping.spatial(resized(given), count)
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


# Layers on so many spatial dimensions; beside them stand the channels and, mostly, the batch.
_SPATIAL = frozenset(
    {"Conv", "ConvTranspose", "MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "LPPool", "ReflectionPad"}
    | {"ReplicationPad", "ZeroPad", "ConstantPad", "CircularPad", "InstanceNorm", "FractionalMaxPool", "MaxUnpool"}
    | {"LazyConv", "LazyConvTranspose", "LazyInstanceNorm"}
)
_KEEPING = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "RReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh"}
    | {"Hardtanh", "Hardswish", "Hardsigmoid", "Softplus", "Softsign", "Softmax", "LogSoftmax", "Softmax2d", "Softmin"}
    | {"Threshold", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "Identity"}
    | {"LocalResponseNorm", "Softshrink", "Hardshrink", "Tanhshrink", "LogSigmoid", "ChannelShuffle"}
)
_LEARNING = frozenset(
    {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "PReLU"}
    | {"TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer"}
)
# By the mode in which they interpolate; empty where it is given.
_RESIZING = {
    "Upsample": "",
    "UpsamplingNearest2d": "nearest",
    "UpsamplingBilinear2d": "bilinear",
    "PixelShuffle": "nearest",
    "PixelUnshuffle": "nearest",
}


def output(kinds: TypeInference, called: What, call: Call, spot: Spot) -> What:
    """What a layer gives for the arguments of a call."""
    given = Given(kinds, call, spot, None)
    return applied(kinds, called, given.input, given)


def applied(kinds: TypeInference, layer: What, value: What, given: Given) -> What:
    """What a layer gives for a value."""
    module, _, word = layer.name.rpartition(".")
    if value.kind == "nothing" or not module.startswith("torch.nn"):
        return value if value.kind == "nothing" else UNKNOWN
    found = (value if value.is_tensor else What("tensor"))._replace(kind="tensor", layout="", dtype="", value=None)
    if word == "Sequential":
        return _in_turn(kinds, layer, value, given)
    if word in _KEEPING or word in _LEARNING:
        return found if word in _KEEPING else found._replace(grad=None)
    if word in _RESIZING:
        mode = _RESIZING[word] or _given_to(kinds, layer, 2, "mode")
        return reshaping.resized(found, mode.value if isinstance(mode, What) else mode)
    if word[:-2] in _SPATIAL and word[-2:] in ("1d", "2d", "3d"):
        return reshaping.spatial(found._replace(grad=None) if "Conv" in word else found, int(word[-2]))
    return _special(kinds, layer, word, found)


def _special(kinds: TypeInference, layer: What, word: str, found: What) -> What:
    learned = found._replace(grad=None)
    match word:
        case "Linear" | "LazyLinear":
            return _linear(layer, learned, kinds)
        case "Bilinear" | "Fold" | "Unfold" | "CosineSimilarity" | "PairwiseDistance":
            return reshaping.open_shape(learned)
        case "Embedding":
            return reshaping.shifted(
                tensor("floating", device=found.device)._replace(low=found.low, high=found.high), 1
            )
        case "EmbeddingBag":
            return tensor("floating", device=found.device)._replace(low=2, high=2)
        case "Flatten":
            start, end = _argument(kinds, layer, 0, "start_dim", 1), _argument(kinds, layer, 1, "end_dim", -1)
            return reshaping.with_flattening(found, start, end)
        case "LSTM" | "GRU" | "RNN" if found.low:
            return What("tuple", items=(reshaping.with_ndim(learned, 2, 3), UNKNOWN))
        case "MultiheadAttention":
            return What("tuple", items=(learned._replace(sizes=None), tensor()))
        case _ if word.endswith("Loss") and word != "AdaptiveLogSoftmaxWithLoss":
            return tensor(sizes=()) if _given_to(kinds, layer, 99, "reduction") is None else tensor()
    return UNKNOWN


def _in_turn(kinds: TypeInference, layer: What, value: What, given: Given) -> What:
    """The layers of a ``Sequential`` one after the other; unknown as soon as one of them is."""
    if layer.made is None:
        return UNKNOWN
    path, call = layer.made
    if any(arg.star or arg.keyword for arg in call.args):
        return UNKNOWN
    for arg in call.args:
        one = kinds.what(arg.value, kinds.spot(path, arg.start, given.spot.hops))
        if one.kind != "module":
            return UNKNOWN
        value = applied(kinds, one, value, given)
    return value


def _linear(layer: What, found: What, kinds: TypeInference) -> What:
    size = _argument(kinds, layer, 0 if layer.name.endswith("LazyLinear") else 1, "out_features", None)
    if found.sizes:
        return reshaping.with_sizes(found, (*found.sizes[:-1], size))
    return found._replace(sizes=None, low=max(found.low, 1))


def _argument(kinds: TypeInference, layer: What, position: int, keyword: str, default: int | None) -> int | None:
    """A constant of the constructor."""
    if layer.made is None:
        return None
    what = _given_to(kinds, layer, position, keyword)
    if what is None:
        return default
    return what.value if isinstance(what.value, int) else None


def _given_to(kinds: TypeInference, layer: What, position: int, keyword: str) -> What | None:
    if layer.made is None:
        return UNKNOWN
    path, call = layer.made
    return Given(kinds, call, kinds.spot(path, call.start), None).what(position, keyword)
