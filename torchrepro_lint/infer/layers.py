"""What calling a layer of ``torch.nn`` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer import shapes
from torchrepro_lint.infer.given import Given
from torchrepro_lint.infer.what import UNKNOWN, What, tensor
from torchrepro_lint.syntax.nodes import Call

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

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
        return shapes.resized(found, mode.value if isinstance(mode, What) else mode)
    if word[:-2] in _SPATIAL and word[-2:] in ("1d", "2d", "3d"):
        return shapes.spatial(found._replace(grad=None) if "Conv" in word else found, int(word[-2]))
    return _special(kinds, layer, word, found)


def _special(kinds: TypeInference, layer: What, word: str, found: What) -> What:
    learned = found._replace(grad=None)
    match word:
        case "Linear" | "LazyLinear":
            return _linear(layer, learned, kinds)
        case "Bilinear" | "Fold" | "Unfold" | "CosineSimilarity" | "PairwiseDistance":
            return shapes.open_shape(learned)
        case "Embedding":
            return shapes.shifted(tensor("floating", device=found.device)._replace(low=found.low, high=found.high), 1)
        case "EmbeddingBag":
            return tensor("floating", device=found.device)._replace(low=2, high=2)
        case "Flatten":
            start, end = _argument(kinds, layer, 0, "start_dim", 1), _argument(kinds, layer, 1, "end_dim", -1)
            return shapes.flattened(found, start, end)
        case "LSTM" | "GRU" | "RNN" if found.low:
            return What("tuple", items=(shapes.with_ndim(learned, 2, 3), UNKNOWN))
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
        return shapes.with_sizes(found, (*found.sizes[:-1], size))
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
