"""The table of what torch's functions give that are methods of tensors as well: by word, the rule that says what.

The tables of functions that are no methods of tensors: those of ``torch.nn.functional``, and those that make tensors.

The table of methods of tensors that are no functions of torch, or other ones; and of those that only tensors have.

What torch's functions, methods and layers give: the rules by word, and which of them a call is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import elementwise, factories, multi_tensor, reductions, reshaping
from torchrepro_lint.dataflow.types import multi_tensor as made_of
from torchrepro_lint.dataflow.types import reductions as numbers
from torchrepro_lint.dataflow.types.context import gradients_off
from torchrepro_lint.dataflow.types.lattice import NOTHING, UNKNOWN, What
from torchrepro_lint.dataflow.types.tensor_arguments import Given, Rule
from torchrepro_lint.syntax.nodes import Call

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot


def every(rule: Rule, *words: str) -> dict[str, Rule]:
    """One rule for several words."""
    return dict.fromkeys(words, rule)


# Functions of torch and methods of tensors.
RULES: dict[str, Rule] = {
    **every(
        elementwise.same, "abs", "absolute", "neg", "negative", "clone", "positive", "ceil", "floor", "round", "trunc"
    ),
    **every(
        elementwise.same, "frac", "sign", "sgn", "conj", "relu", "dropout", "alpha_dropout", "feature_dropout", "celu"
    ),
    **every(
        elementwise.same,
        "resolve_conj",
        "resolve_neg",
        "pin_memory",
        "share_memory_",
        "nan_to_num",
        "relu6",
        "clamp_min",
    ),
    **every(
        elementwise.same,
        "clamp_max",
        "square",
        "bitwise_not",
        "zero_",
        "fill_",
        "normal_",
        "uniform_",
        "copy_",
        "random_",
    ),
    **every(elementwise.same, "retain_grad_", "hardshrink", "selu", "threshold", "rrelu", "prelu", "bernoulli"),
    **every(elementwise.same, "coalesce", "exponential_", "trunc_normal_", "renorm", "logical_not_"),
    **every(
        elementwise.floats,
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tan",
    ),
    **every(
        elementwise.floats, "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf"
    ),
    **every(
        elementwise.floats, "erfc", "erfinv", "lgamma", "digamma", "reciprocal", "deg2rad", "rad2deg", "logit", "sinc"
    ),
    **every(elementwise.floats, "i0", "arctan", "arcsin", "arccos", "expit"),
    **every(
        elementwise.truths, "isnan", "isinf", "isfinite", "logical_not", "signbit", "isneginf", "isposinf", "isreal"
    ),
    **every(elementwise.compared, "eq", "ne", "lt", "le", "gt", "ge", "greater", "less", "logical_and", "logical_or"),
    **every(elementwise.compared, "logical_xor", "isclose", "not_equal", "greater_equal", "less_equal"),
    **every(
        elementwise.combined, "add", "sub", "subtract", "mul", "multiply", "maximum", "minimum", "fmod", "remainder"
    ),
    **every(
        elementwise.combined, "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "rsub", "fmax", "fmin", "pow"
    ),
    **every(elementwise.combined, "hypot"),
    **every(elementwise.quotient, "div", "divide", "true_divide"),
    **every(elementwise.chosen, "where"),
    **every(elementwise.detached, "detach", "detach_"),
    **every(elementwise.strided, "flip", "fliplr", "flipud", "roll", "tril", "triu", "masked_fill", "index_fill"),
    **every(
        elementwise.strided,
        "softmax",
        "log_softmax",
        "cumprod",
        "logcumsumexp",
        "clamp",
        "clip",
        "lerp",
        "addcmul",
        "addcdiv",
    ),
    **every(reductions.summed, "sum", "prod", "nansum"),
    **every(reductions.averaged, "mean", "nanmean", "logsumexp"),
    **every(reductions.normed, "norm"),
    **every(reductions.extreme, "amax", "amin"),
    **every(reductions.decided, "any", "all"),
    **every(reductions.located, "argmax", "argmin", "count_nonzero"),
    **every(reductions.picked, "max", "min", "median", "nanmedian"),
    **every(reductions.ranked, "kthvalue"),
    **every(reductions.ordered, "sort", "topk"),
    **every(reductions.order, "argsort"),
    **every(reductions.running, "cumsum"),
    **every(reductions.running_extreme, "cummax", "cummin"),
    **every(reductions.histogram, "bincount"),
    **every(reductions.plain("floating", ndim=1), "histc"),
    **every(reshaping.viewed, "view", "reshape"),
    **every(reshaping.expanded, "expand", "broadcast_to"),
    **every(reshaping.repeated, "repeat", "tile"),
    **every(reshaping.flattened, "flatten"),
    **every(reshaping.raveled, "ravel"),
    **every(reshaping.unflattened, "unflatten"),
    **every(reshaping.squeezed, "squeeze"),
    **every(reshaping.unsqueezed, "unsqueeze"),
    **every(reshaping.permuted, "permute"),
    **every(reshaping.swapped, "transpose", "swapaxes", "swapdims"),
    **every(reshaping.transposed, "t"),
    **every(reshaping.kept, "rot90", "narrow", "movedim", "moveaxis", "diff", "index_select"),
    **every(reshaping.parted, "chunk", "split", "tensor_split", "split_with_sizes"),
    **every(reshaping.unbound, "unbind"),
    **every(reshaping.selected, "select", "diagonal"),
    **every(reshaping.diagonal, "diag"),
    **every(reshaping.embedded_diagonal, "diag_embed"),
    **every(reshaping.gathered, "gather"),
    **every(reshaping.taken, "take"),
    **every(reshaping.masked, "masked_select"),
    **every(reshaping.found_at, "nonzero"),
    **every(reshaping.unique, "unique", "unique_consecutive"),
    **every(reshaping.interleaved, "repeat_interleave"),
    **every(made_of.concatenated, "cat", "concat", "concatenate"),
    **every(made_of.stacked, "stack"),
    **every(made_of.stacked_flat, "hstack", "vstack", "column_stack"),
    **every(made_of.multiplied, "matmul"),
    **every(made_of.product(2), "mm"),
    **every(made_of.product(3), "bmm"),
    **every(made_of.product(1), "mv"),
    **every(made_of.product(0), "dot", "vdot"),
    **every(made_of.added_product(2), "addmm"),
    **every(made_of.added_product(3), "baddbmm"),
    **every(made_of.outer, "outer", "ger"),
    **every(made_of.summed_product, "einsum"),
    **every(made_of.grids, "meshgrid"),
    **every(
        made_of.written,
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "index_add",
        "index_copy",
        "index_put",
        "index_reduce",
    ),
    **every(made_of.written, "masked_scatter", "scatter_", "scatter_add_", "index_add_", "index_copy_", "index_put_"),
    **every(made_of.written, "masked_scatter_", "put_", "put", "scatter_reduce_", "index_reduce_"),
    **every(
        factories.alike, "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"
    ),
}


# Functions of ``torch.nn.functional`` whose word is not torch's, or means something else there.
FUNCTIONAL: dict[str, Rule] = {
    **every(
        elementwise.same,
        "gelu",
        "silu",
        "mish",
        "elu",
        "leaky_relu",
        "hardswish",
        "hardtanh",
        "hardsigmoid",
        "softplus",
    ),
    **every(
        elementwise.same, "logsigmoid", "softsign", "tanhshrink", "softshrink", "dropout1d", "dropout2d", "dropout3d"
    ),
    **every(
        elementwise.strided,
        "batch_norm",
        "layer_norm",
        "group_norm",
        "instance_norm",
        "local_response_norm",
        "rms_norm",
    ),
    **every(elementwise.strided, "normalize", "gumbel_softmax", "softmin"),
    **every(made_of.linear, "linear"),
    **{f"conv{n}d": made_of.convolved(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": made_of.convolved(n) for n in (1, 2, 3)},
    **every(made_of.looked_up, "embedding"),
    **every(made_of.resized, "pad", "pixel_shuffle", "pixel_unshuffle", "max_unpool2d"),
    **every(made_of.interpolated, "interpolate", "upsample"),
    "upsample_bilinear": made_of.interpolated_as("bilinear"),
    "upsample_nearest": made_of.interpolated_as("nearest"),
    **{f"{stem}_pool{n}d": made_of.pooled(n) for stem in ("avg", "adaptive_avg", "lp") for n in (1, 2, 3)},
    **{f"{stem}_pool{n}d": made_of.pooled_with_indices(n) for stem in ("max", "adaptive_max") for n in (1, 2, 3)},
    **every(made_of.sampled, "grid_sample"),
    **every(made_of.attended, "scaled_dot_product_attention"),
    **every(
        reductions.loss, "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"
    ),
    **every(
        reductions.loss, "binary_cross_entropy", "binary_cross_entropy_with_logits", "ctc_loss", "margin_ranking_loss"
    ),
    **every(reshaping.hot, "one_hot"),
    **every(reshaping.columns, "unfold"),
}

FACTORIES: dict[str, Rule] = {
    **every(factories.sized, *(f"torch.{word}" for word in ("zeros", "ones", "empty", "rand", "randn"))),
    "torch.full": factories.filled,
    "torch.randint": factories.integers,
    "torch.randperm": factories.permutation,
    "torch.arange": factories.counted,
    "torch.linspace": factories.spaced,
    "torch.logspace": factories.spaced,
    "torch.eye": factories.identity,
    "torch.tensor": factories.converted,
    "torch.as_tensor": factories.adopted,
    "torch.asarray": factories.adopted,
    "torch.from_numpy": factories.from_array,
    "torch.tril_indices": factories.indices,
    "torch.triu_indices": factories.indices,
    "torch.nn.Parameter": factories.parameter,
    "torch.nn.parameter.Parameter": factories.parameter,
    "torch.device": factories.device,
    "torch.is_tensor": numbers.truth,
    **every(factories.loaded, "torch.load", "torch.hub.load_state_dict_from_url", "safetensors.torch.load_file"),
    **every(factories.loaded, "torch.utils.model_zoo.load_url"),
    **every(numbers.sparse_new, "torch.sparse_coo_tensor", "torch.sparse_csr_tensor"),
    **every(numbers.quantized, "torch.quantize_per_tensor", "torch.quantize_per_channel"),
    **every(numbers.nested, "torch.nested.nested_tensor", "torch.nested.as_nested_tensor"),
    "torch.nn.utils.rnn.pad_sequence": made_of.padded,
    "torch.cartesian_prod": made_of.crossed,
    "torch.combinations": made_of.combined,
    "torch.bucketize": reductions.order,
    "torch.searchsorted": reductions.plain("integer", "int64"),
}


# Methods whose word means something else as a function, or that are none.
METHODS: dict[str, Rule] = {
    **{
        word: elementwise.cast(word) for word in ("float", "double", "half", "bfloat16", "long", "int", "short", "bool")
    },
    "byte": elementwise.cast("uint8"),
    "char": elementwise.cast("int8"),
    "to": elementwise.moved,
    "cpu": elementwise.to_device("cpu"),
    "cuda": elementwise.to_device("cuda"),
    "type_as": elementwise.like,
    "type": elementwise.typed,
    "contiguous": elementwise.contiguous,
    "requires_grad_": elementwise.requiring,
    "view_as": reshaping.shaped_like,
    "reshape_as": reshaping.shaped_like,
    "expand_as": reshaping.shaped_like,
    "unfold": reshaping.windowed,
    "new_zeros": factories.renewed,
    "new_ones": factories.renewed,
    "new_empty": factories.renewed,
    "new_full": reductions.renewed_full,
    "new_tensor": factories.renewed_from,
    "numpy": reductions.array,
    "item": reductions.number,
    "tolist": reductions.listed,
    "size": reductions.size,
    "stride": reductions.sequence,
    **every(
        reductions.integer, "dim", "ndimension", "numel", "nelement", "element_size", "get_device", "storage_offset"
    ),
    **every(reductions.truth, "is_contiguous", "is_floating_point", "is_complex", "equal", "allclose", "is_pinned"),
    "to_sparse": reductions.sparse,
    "to_sparse_csr": reductions.sparse,
    "to_sparse_coo": reductions.sparse,
    "to_dense": reductions.dense,
    "masked_fill_": elementwise.same,
    "indices": reductions.sparse_indices,
    "values": reductions.sparse_values,
}

# Methods that no array, frame, container or module shares.
OWN = frozenset(
    {
        "unsqueeze",
        "unsqueeze_",
        "detach",
        "detach_",
        "permute",
        "masked_fill",
        "masked_fill_",
        "masked_select",
        "expand_as",
    }
    | {
        "view_as",
        "type_as",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_tensor",
        "index_select",
        "scatter_add",
    }
    | {
        "scatter_add_",
        "scatter_",
        "index_add",
        "index_add_",
        "index_copy",
        "index_copy_",
        "contiguous",
        "softmax",
        "bmm",
    }
    | {
        "log_softmax",
        "sigmoid",
        "addmm",
        "unfold",
        "chunk",
        "unbind",
        "clamp_",
        "clamp_min",
        "narrow",
        "logsumexp",
        "baddbmm",
    }
    | {"masked_scatter", "scatter_reduce", "rsqrt", "erf"}
)


_MODULES = ("torch", "torch.Tensor", "torch.special", "torch._C._VariableFunctions")
_FUNCTIONAL = ("torch.nn.functional", "torch._C._nn")


def method(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What | None:
    """What a method of a tensor gives."""
    given = Given(kinds, call, spot, receiver)
    if given.waits:
        return NOTHING
    rule = METHODS.get(word) or RULES.get(word)
    if rule is None and word.endswith("_") and not word.startswith("_"):
        in_place = RULES.get(word[:-1])
        return _in_mode(kinds, _kept(receiver, in_place(given)), spot) if in_place else receiver._replace(kind="tensor")
    return UNKNOWN if rule is None else _in_mode(kinds, rule(given), spot)


def _kept(receiver: What, after: What) -> What:
    """In place neither dtype nor device changes."""
    if not after.is_tensor:
        return receiver._replace(kind="tensor")
    return after._replace(dtype=receiver.dtype, family=receiver.family, device=receiver.device)


def function(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What | None:
    """What a function of torch gives; None where nothing is known of it."""
    module, _, word = name.rpartition(".")
    given = Given(kinds, call, spot, None)
    if given.waits:
        return NOTHING
    if name in FACTORIES:
        return FACTORIES[name](given)
    if module in _FUNCTIONAL:
        rule = FUNCTIONAL.get(word) or RULES.get(word)
        return _in_mode(kinds, rule(given) if rule else UNKNOWN, spot)
    if module in _MODULES or (module == "torch.linalg" and word in ("norm", "vector_norm")):
        rule = RULES.get(word) or (METHODS.get(word) if module == "torch.Tensor" else None)
        return _in_mode(kinds, rule(given), spot) if rule else None
    return None


def made(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What | None:
    """What a class of torch gives that is more than an object of it: ``nn.Parameter(data)``."""
    return function(kinds, name, call, spot) if name in FACTORIES else None


_OF_DICT = frozenset({"items", "values", "keys", "get", "pop", "copy", "setdefault", "popitem", "update"})


def method_of_loaded(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What | None:
    """A method of what a file held: of a dictionary, or of a tensor in it."""
    if word in _OF_DICT:
        pair = What("tuple", items=(What("str", of=What("str")), receiver))
        return What("iterator", of=pair if word == "items" else receiver) if word in ("items", "values") else receiver
    return method(kinds, What("tensor", device=receiver.device, grad=False), word, call, spot)


def layer(kinds: TypeInference, called: What, call: Call, spot: Spot) -> What:
    """What calling a layer of torch gives."""
    if Given(kinds, call, spot, None).waits:
        return NOTHING
    return _in_mode(kinds, multi_tensor.output(kinds, called, call, spot), spot)


def by_word(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What:
    """What a method gives on a value that may be anything: a tensor, where only tensors have it, else what it would be."""
    if word not in RULES and word not in METHODS:
        return UNKNOWN
    found = method(kinds, receiver._replace(kind="tensor"), word, call, spot) or UNKNOWN
    if word in OWN or not found.is_tensor:
        return found if word in OWN or found.kind == "nothing" else UNKNOWN
    return found._replace(kind="")


def computed(kinds: TypeInference, what: What, spot: Spot) -> What:
    """What an operator gives, where it stands."""
    return _in_mode(kinds, what, spot)


def _in_mode(kinds: TypeInference, what: What, spot: Spot) -> What:
    """Nothing that is computed under ``no_grad`` needs a gradient."""
    if what.is_tensor and what.kind != "parameter" and what.grad is None and gradients_off(kinds, spot):
        return what._replace(grad=False)
    if what.kind == "tuple" and what.items and gradients_off(kinds, spot):
        return what._replace(items=tuple(_in_mode(kinds, each, spot) for each in what.items))
    return what
