"""Transfer functions of several tensors: products, concatenations, lookups, and layers, as functions and as modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import elementwise, reshaping
from torchrepro_lint.dataflow.types.containers import element
from torchrepro_lint.dataflow.types.lattice import (
    UNKNOWN,
    AbstractValue,
    common_device,
    common_gradient,
    promoted_dtype,
    tensor,
)
from torchrepro_lint.dataflow.types.tensor_arguments import TorchArguments, TransferFunction
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.syntax.qualified_names import split_last

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


def _listed(arguments: TorchArguments) -> tuple[list[AbstractValue], AbstractValue]:
    """The tensors of a sequence, one by one if known, and the type of all."""
    sequence = arguments.value_of(0, "tensors") or UNKNOWN
    whole = element(sequence)
    return list(sequence.items) if sequence.items else [whole], whole


def _combined(arguments: TorchArguments) -> AbstractValue:
    every, whole = _listed(arguments)
    dtype, kind = promoted_dtype(every)
    known = all(each.is_tensor for each in every)
    low = min((each.min_ndim for each in every), default=0) if known else 0
    highs = [each.max_ndim for each in every]
    high = None if None in highs or not known else max(each for each in highs if each is not None)
    found = tensor(kind, dtype=dtype, device=common_device(every), layout="contiguous", grad=common_gradient(every))
    found = found._replace(min_ndim=low, max_ndim=high)
    return found._replace(layout="" if whole.layout in ("sparse", "quantized", "nested") else "contiguous")


def concatenated(arguments: TorchArguments) -> AbstractValue:
    """``cat``: the rank is kept."""
    return _combined(arguments)


def stacked(arguments: TorchArguments) -> AbstractValue:
    """``stack``: one more dimension."""
    return reshaping.shifted(_combined(arguments), 1)


def stacked_flat(arguments: TorchArguments) -> AbstractValue:
    """``hstack`` and the like."""
    found = _combined(arguments)
    return reshaping.with_ndim(
        found, max(found.min_ndim, 1), None if found.max_ndim is None else max(found.max_ndim, 2)
    )


def padded(arguments: TorchArguments) -> AbstractValue:
    """``pad_sequence``: one more dimension."""
    return reshaping.shifted(_combined(arguments)._replace(layout=""), 1)


def multiplied(arguments: TorchArguments) -> AbstractValue:
    """``matmul`` and ``@``."""
    return elementwise.matmul(arguments.tensor, arguments.value_of(1, "other") or UNKNOWN)


def product(ndim: int) -> TransferFunction:
    """The transfer function of ``mm``, ``bmm``, ``mv``, ``dot``, for results of this rank."""

    def rule(arguments: TorchArguments) -> AbstractValue:
        found = elementwise.pointwise([arguments.tensor, arguments.value_of(1) or UNKNOWN])
        return reshaping.with_ndim(found._replace(layout=""), ndim, ndim)

    return rule


def einsum(arguments: TorchArguments) -> AbstractValue:
    """``torch.einsum("bij,bjk->bik", a, b)``: the rank is the number of letters after the arrow."""
    equation = arguments.constant(0, "equation")
    operands = [each for each in arguments.operands()[1:] if not each.kind or each.is_tensor]
    dtype, kind = promoted_dtype(operands)
    found = tensor(kind, dtype=dtype, device=common_device(operands), grad=common_gradient(operands))
    if not isinstance(equation, str) or "->" not in equation or "..." in equation:
        return found
    count = len(equation.rpartition("->")[2].replace(" ", ""))
    return reshaping.with_ndim(found, count, count)


def added_product(ndim: int) -> TransferFunction:
    """The transfer function of ``addmm`` and the like."""

    def rule(arguments: TorchArguments) -> AbstractValue:
        return reshaping.with_ndim(elementwise.pointwise(arguments.operands()[:3])._replace(layout=""), ndim, ndim)

    return rule


def outer(arguments: TorchArguments) -> AbstractValue:
    return reshaping.with_ndim(elementwise.pointwise(arguments.operands()[:2])._replace(layout=""), 2, 2)


def meshgrid(arguments: TorchArguments) -> AbstractValue:
    """``meshgrid``: a tuple of n tensors of rank n."""
    operands = arguments.operands()
    first = operands[0] if operands else UNKNOWN
    parts = list(first.items) if first.kind in ("list", "tuple") and first.items else operands
    if arguments.has_stars or not all(each.is_tensor for each in parts):
        return AbstractValue("tuple", contents=tensor(device=common_device(parts), grad=common_gradient(parts)))
    each = tensor(parts[0].family, dtype=parts[0].dtype, device=parts[0].device, grad=parts[0].grad)
    return AbstractValue("tuple", items=(reshaping.with_ndim(each, len(parts), len(parts)),) * len(parts))


def cartesian_prod(arguments: TorchArguments) -> AbstractValue:
    """``cartesian_prod``: a row for each combination; of one tensor, the tensor."""
    operands = arguments.operands()
    if arguments.has_stars or not all(each.is_tensor for each in operands):
        return tensor(device=common_device(operands), grad=common_gradient(operands))
    return _rows(operands, 1 if len(operands) == 1 else 2)


def combinations(arguments: TorchArguments) -> AbstractValue:
    """``combinations``: a row for each."""
    return _rows([arguments.tensor], 2)


def _rows(operands: list[AbstractValue], ndim: int) -> AbstractValue:
    dtype, kind = promoted_dtype(operands)
    found = tensor(kind, dtype=dtype, device=common_device(operands), grad=common_gradient(operands))
    return reshaping.with_ndim(found, ndim, ndim)


def linear(arguments: TorchArguments) -> AbstractValue:
    """``F.linear``: the rank is kept."""
    weight = arguments.value_of(1, "weight") or UNKNOWN
    found = arguments.tensor._replace(kind="tensor", layout="", sizes=None)
    return found._replace(grad=False if found.grad is False and weight.grad is False else None)


def convolved(count: int) -> TransferFunction:
    """The transfer function of a convolution: the rank is kept, and the weight may add a gradient."""
    return lambda arguments: reshaping.spatial(linear(arguments), count)


def embedding(arguments: TorchArguments) -> AbstractValue:
    """``F.embedding``: one more dimension than the index, with the dtype of the weight."""
    weight = arguments.value_of(1, "weight") or UNKNOWN
    found = reshaping.shifted(tensor(weight.family or "floating", dtype=weight.dtype, device=weight.device), 0)
    index = arguments.tensor
    return reshaping.with_ndim(
        found, index.min_ndim + 1, None if index.max_ndim is None else index.max_ndim + 1
    )._replace(grad=weight.grad)


def resized(arguments: TorchArguments) -> AbstractValue:
    """Padding, pixel shuffling: the rank is kept."""
    return arguments.tensor._replace(kind="tensor", layout="", sizes=None)


def pooled(count: int) -> TransferFunction:
    """The transfer function of pooling over so many dimensions."""
    return lambda arguments: reshaping.spatial(resized(arguments), count)


def interpolated(arguments: TorchArguments) -> AbstractValue:
    """``F.interpolate``: the mode implies the rank."""
    return reshaping.resized(resized(arguments), arguments.constant(3, "mode", default="nearest"))


def interpolated_as(mode: str) -> TransferFunction:
    """The transfer function of ``F.upsample_bilinear`` and the like."""
    return lambda arguments: reshaping.resized(resized(arguments), mode)


def pooled_with_indices(count: int) -> TransferFunction:
    """The transfer function of max pooling, with indices if requested."""

    def rule(arguments: TorchArguments) -> AbstractValue:
        found = reshaping.spatial(resized(arguments), count)
        asked = arguments.constant(-1, "return_indices", default=False)
        if asked is False and len(arguments.operands()) <= 6:
            return found
        places = found._replace(dtype="int64", family="integer", grad=False)
        return AbstractValue("tuple", items=(found, places)) if asked is True else UNKNOWN

    return rule


def sampled(arguments: TorchArguments) -> AbstractValue:
    """``F.grid_sample``: the rank is kept, and the grid may add a gradient."""
    grid = arguments.value_of(1, "grid") or UNKNOWN
    found = resized(arguments)
    return found._replace(grad=False if found.grad is False and grad_free(grid) else None)


def grad_free(what: AbstractValue) -> bool:
    return what.grad is False


def scattered(arguments: TorchArguments) -> AbstractValue:
    """``scatter``, ``index_add``, ``index_put``: the input's shape; the source may add a gradient, the index cannot."""
    found = arguments.tensor._replace(kind="tensor")
    word = getattr(arguments.call.func, "path", ("",))[-1:] or ("",)
    at = 2 if word[0].startswith(("index_put", "masked", "put")) else 3
    source = arguments.value_of(at, "src") if at == 3 else arguments.value_of(at, "source")
    named = [each for key in ("src", "source", "values", "value") if (each := arguments.value_of(-1, key)) is not None]
    operands = [arguments.tensor, *([] if source is None else [source]), *named]
    return found._replace(
        grad=common_gradient(operands), layout="contiguous" if found.layout == "contiguous" else found.layout
    )


def attended(arguments: TorchArguments) -> AbstractValue:
    """``scaled_dot_product_attention``: the rank of the query."""
    found = arguments.tensor._replace(kind="tensor", layout="", sizes=None)
    return found._replace(grad=common_gradient(arguments.operands()[:3]))


# Layers with a number of spatial dimensions, besides channels and, mostly, a batch.
_SPATIAL = frozenset(
    {"Conv", "ConvTranspose", "MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "LPPool", "ReflectionPad"}
    | {"ReplicationPad", "ZeroPad", "ConstantPad", "CircularPad", "InstanceNorm", "FractionalMaxPool", "MaxUnpool"}
    | {"LazyConv", "LazyConvTranspose", "LazyInstanceNorm"}
)
_SHAPE_PRESERVING = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "RReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh"}
    | {"Hardtanh", "Hardswish", "Hardsigmoid", "Softplus", "Softsign", "Softmax", "LogSoftmax", "Softmax2d", "Softmin"}
    | {"Threshold", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "Identity"}
    | {"LocalResponseNorm", "Softshrink", "Hardshrink", "Tanhshrink", "LogSigmoid", "ChannelShuffle"}
)
_NORMALISING = frozenset(
    {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "PReLU"}
    | {"TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer"}
)
# By interpolation mode; empty if it is an argument.
_RESIZING = {
    "Upsample": "",
    "UpsamplingNearest2d": "nearest",
    "UpsamplingBilinear2d": "bilinear",
    "PixelShuffle": "nearest",
    "PixelUnshuffle": "nearest",
}


def layer_call(inference: TypeInference, called: AbstractValue, call: Call, point: ProgramPoint) -> AbstractValue:
    """The result of calling a layer."""
    arguments = TorchArguments(inference, call, point, None)
    return layer_value(inference, called, arguments.input, arguments)


def layer_value(
    inference: TypeInference, layer: AbstractValue, value: AbstractValue, arguments: TorchArguments
) -> AbstractValue:
    """The result of a layer for a value."""
    module, word = split_last(layer.name)
    if value.kind == "nothing" or not module.startswith("torch.nn"):
        return value if value.kind == "nothing" else UNKNOWN
    found = (value if value.is_tensor else AbstractValue("tensor"))._replace(
        kind="tensor", layout="", dtype="", value=None
    )
    if word == "Sequential":
        return _sequential(inference, layer, value, arguments)
    if word in _SHAPE_PRESERVING or word in _NORMALISING:
        return found if word in _SHAPE_PRESERVING else found._replace(grad=None)
    if word in _RESIZING:
        mode = _RESIZING[word] or _constructor_argument(inference, layer, 2, "mode")
        return reshaping.resized(found, mode.value if isinstance(mode, AbstractValue) else mode)
    if word[:-2] in _SPATIAL and word[-2:] in ("1d", "2d", "3d"):
        return reshaping.spatial(found._replace(grad=None) if "Conv" in word else found, int(word[-2]))
    return _special(inference, layer, word, found)


def _special(inference: TypeInference, layer: AbstractValue, word: str, found: AbstractValue) -> AbstractValue:
    learned = found._replace(grad=None)
    match word:
        case "Linear" | "LazyLinear":
            return _linear(layer, learned, inference)
        case "Bilinear" | "Fold" | "Unfold" | "CosineSimilarity" | "PairwiseDistance":
            return reshaping.open_shape(learned)
        case "Embedding":
            return reshaping.shifted(
                tensor("floating", device=found.device)._replace(min_ndim=found.min_ndim, max_ndim=found.max_ndim), 1
            )
        case "EmbeddingBag":
            return tensor("floating", device=found.device)._replace(min_ndim=2, max_ndim=2)
        case "Flatten":
            start, end = (
                _constructor_constant(inference, layer, 0, "start_dim", 1),
                _constructor_constant(inference, layer, 1, "end_dim", -1),
            )
            return reshaping.with_flattening(found, start, end)
        case "LSTM" | "GRU" | "RNN" if found.min_ndim:
            return AbstractValue("tuple", items=(reshaping.with_ndim(learned, 2, 3), UNKNOWN))
        case "MultiheadAttention":
            return AbstractValue("tuple", items=(learned._replace(sizes=None), tensor()))
        case _ if word.endswith("Loss") and word != "AdaptiveLogSoftmaxWithLoss":
            return tensor(sizes=()) if _constructor_argument(inference, layer, 99, "reduction") is None else tensor()
    return UNKNOWN


def _sequential(
    inference: TypeInference, layer: AbstractValue, value: AbstractValue, arguments: TorchArguments
) -> AbstractValue:
    """The layers of a ``Sequential`` in turn; unknown if one of them is."""
    if layer.constructor_call is None:
        return UNKNOWN
    path, call = layer.constructor_call
    if any(arg.star or arg.keyword for arg in call.args):
        return UNKNOWN
    for arg in call.args:
        one = inference.infer(arg.value, inference.program_point(path, arg.start, arguments.point.calls_left))
        if one.kind != "module":
            return UNKNOWN
        value = layer_value(inference, one, value, arguments)
    return value


def _linear(layer: AbstractValue, found: AbstractValue, inference: TypeInference) -> AbstractValue:
    size = _constructor_constant(inference, layer, 0 if layer.name.endswith("LazyLinear") else 1, "out_features", None)
    if found.sizes:
        return reshaping.with_sizes(found, (*found.sizes[:-1], size))
    return found._replace(sizes=None, min_ndim=max(found.min_ndim, 1))


def _constructor_constant(
    inference: TypeInference, layer: AbstractValue, position: int, keyword: str, default: int | None
) -> int | None:
    """An integer argument of the layer's constructor."""
    if layer.constructor_call is None:
        return None
    what = _constructor_argument(inference, layer, position, keyword)
    if what is None:
        return default
    return what.value if isinstance(what.value, int) else None


def _constructor_argument(
    inference: TypeInference, layer: AbstractValue, position: int, keyword: str
) -> AbstractValue | None:
    if layer.constructor_call is None:
        return UNKNOWN
    path, call = layer.constructor_call
    return TorchArguments(inference, call, inference.program_point(path, call.start), None).value_of(position, keyword)
