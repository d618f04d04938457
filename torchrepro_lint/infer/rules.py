"""The table of torch's functions and methods: by word, the rule that says what one gives."""

from __future__ import annotations

from torchrepro_lint.infer import assembling as made_of
from torchrepro_lint.infer import elementwise, factories, numbers, reductions, reshaping
from torchrepro_lint.infer.given import Rule


def _all(rule: Rule, *words: str) -> dict[str, Rule]:
    return dict.fromkeys(words, rule)


# Functions of torch and methods of tensors.
RULES: dict[str, Rule] = {
    **_all(
        elementwise.same, "abs", "absolute", "neg", "negative", "clone", "positive", "ceil", "floor", "round", "trunc"
    ),
    **_all(
        elementwise.same, "frac", "sign", "sgn", "conj", "relu", "dropout", "alpha_dropout", "feature_dropout", "celu"
    ),
    **_all(
        elementwise.same,
        "resolve_conj",
        "resolve_neg",
        "pin_memory",
        "share_memory_",
        "nan_to_num",
        "relu6",
        "clamp_min",
    ),
    **_all(
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
    **_all(elementwise.same, "retain_grad_", "hardshrink", "selu", "threshold", "rrelu", "prelu", "bernoulli"),
    **_all(elementwise.same, "coalesce", "exponential_", "trunc_normal_", "renorm", "logical_not_"),
    **_all(
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
    **_all(
        elementwise.floats, "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf"
    ),
    **_all(
        elementwise.floats, "erfc", "erfinv", "lgamma", "digamma", "reciprocal", "deg2rad", "rad2deg", "logit", "sinc"
    ),
    **_all(elementwise.floats, "i0", "arctan", "arcsin", "arccos", "expit"),
    **_all(
        elementwise.truths, "isnan", "isinf", "isfinite", "logical_not", "signbit", "isneginf", "isposinf", "isreal"
    ),
    **_all(elementwise.compared, "eq", "ne", "lt", "le", "gt", "ge", "greater", "less", "logical_and", "logical_or"),
    **_all(elementwise.compared, "logical_xor", "isclose", "not_equal", "greater_equal", "less_equal"),
    **_all(
        elementwise.combined, "add", "sub", "subtract", "mul", "multiply", "maximum", "minimum", "fmod", "remainder"
    ),
    **_all(
        elementwise.combined, "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "rsub", "fmax", "fmin", "pow"
    ),
    **_all(elementwise.combined, "hypot"),
    **_all(elementwise.quotient, "div", "divide", "true_divide"),
    **_all(elementwise.chosen, "where"),
    **_all(elementwise.detached, "detach", "detach_"),
    **_all(elementwise.strided, "flip", "fliplr", "flipud", "roll", "tril", "triu", "masked_fill", "index_fill"),
    **_all(
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
    **_all(reductions.summed, "sum", "prod", "nansum"),
    **_all(reductions.averaged, "mean", "nanmean", "logsumexp"),
    **_all(reductions.normed, "norm"),
    **_all(reductions.extreme, "amax", "amin"),
    **_all(reductions.decided, "any", "all"),
    **_all(reductions.located, "argmax", "argmin", "count_nonzero"),
    **_all(reductions.picked, "max", "min", "median", "nanmedian"),
    **_all(reductions.ranked, "kthvalue"),
    **_all(reductions.ordered, "sort", "topk"),
    **_all(reductions.order, "argsort"),
    **_all(reductions.running, "cumsum"),
    **_all(reductions.running_extreme, "cummax", "cummin"),
    **_all(reductions.histogram, "bincount"),
    **_all(reductions.plain("floating", ndim=1), "histc"),
    **_all(reshaping.viewed, "view", "reshape"),
    **_all(reshaping.expanded, "expand", "broadcast_to"),
    **_all(reshaping.repeated, "repeat", "tile"),
    **_all(reshaping.flattened, "flatten"),
    **_all(reshaping.raveled, "ravel"),
    **_all(reshaping.unflattened, "unflatten"),
    **_all(reshaping.squeezed, "squeeze"),
    **_all(reshaping.unsqueezed, "unsqueeze"),
    **_all(reshaping.permuted, "permute"),
    **_all(reshaping.swapped, "transpose", "swapaxes", "swapdims"),
    **_all(reshaping.transposed, "t"),
    **_all(reshaping.kept, "rot90", "narrow", "movedim", "moveaxis", "diff", "index_select"),
    **_all(reshaping.parted, "chunk", "split", "tensor_split", "split_with_sizes"),
    **_all(reshaping.unbound, "unbind"),
    **_all(reshaping.selected, "select", "diagonal"),
    **_all(reshaping.diagonal, "diag"),
    **_all(reshaping.embedded_diagonal, "diag_embed"),
    **_all(reshaping.gathered, "gather"),
    **_all(reshaping.taken, "take"),
    **_all(reshaping.masked, "masked_select"),
    **_all(reshaping.found_at, "nonzero"),
    **_all(reshaping.unique, "unique"),
    **_all(reshaping.interleaved, "repeat_interleave"),
    **_all(made_of.concatenated, "cat", "concat", "concatenate"),
    **_all(made_of.stacked, "stack"),
    **_all(made_of.stacked_flat, "hstack", "vstack", "column_stack"),
    **_all(made_of.multiplied, "matmul"),
    **_all(made_of.product(2), "mm"),
    **_all(made_of.product(3), "bmm"),
    **_all(made_of.product(1), "mv"),
    **_all(made_of.product(0), "dot", "vdot"),
    **_all(made_of.added_product(2), "addmm"),
    **_all(made_of.added_product(3), "baddbmm"),
    **_all(made_of.outer, "outer", "ger"),
    **_all(made_of.summed_product, "einsum"),
    **_all(made_of.grids, "meshgrid"),
    **_all(
        made_of.written,
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "index_add",
        "index_copy",
        "index_put",
        "index_reduce",
    ),
    **_all(made_of.written, "masked_scatter", "scatter_", "scatter_add_", "index_add_", "index_copy_", "index_put_"),
    **_all(made_of.written, "masked_scatter_", "put_", "put", "scatter_reduce_", "index_reduce_"),
    **_all(
        factories.alike, "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"
    ),
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
    "new_full": numbers.renewed_full,
    "new_tensor": factories.renewed_from,
    "numpy": numbers.array,
    "item": numbers.number,
    "tolist": numbers.listed,
    "size": numbers.size,
    "stride": numbers.sequence,
    **_all(numbers.integer, "dim", "ndimension", "numel", "nelement", "element_size", "get_device", "storage_offset"),
    **_all(numbers.truth, "is_contiguous", "is_floating_point", "is_complex", "equal", "allclose", "is_pinned"),
    "to_sparse": numbers.sparse,
    "to_sparse_csr": numbers.sparse,
    "to_sparse_coo": numbers.sparse,
    "to_dense": numbers.dense,
    "masked_fill_": elementwise.same,
    "indices": numbers.sparse_indices,
    "values": numbers.sparse_values,
}

# Functions of ``torch.nn.functional`` whose word is not torch's, or means something else there.
FUNCTIONAL: dict[str, Rule] = {
    **_all(
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
    **_all(
        elementwise.same, "logsigmoid", "softsign", "tanhshrink", "softshrink", "dropout1d", "dropout2d", "dropout3d"
    ),
    **_all(
        elementwise.strided,
        "batch_norm",
        "layer_norm",
        "group_norm",
        "instance_norm",
        "local_response_norm",
        "rms_norm",
    ),
    **_all(elementwise.strided, "normalize", "gumbel_softmax", "softmin"),
    **_all(made_of.linear, "linear"),
    **_all(made_of.convolved, "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    **_all(made_of.looked_up, "embedding"),
    **_all(made_of.resized, "pad", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest", "avg_pool1d"),
    **_all(
        made_of.resized, "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"
    ),
    **_all(made_of.resized, "lp_pool1d", "lp_pool2d", "lp_pool3d", "pixel_shuffle", "pixel_unshuffle", "max_unpool2d"),
    **_all(made_of.resized_with_indices, "max_pool1d", "max_pool2d", "max_pool3d"),
    **_all(made_of.resized_with_indices, "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
    **_all(made_of.sampled, "grid_sample"),
    **_all(made_of.attended, "scaled_dot_product_attention"),
    **_all(
        reductions.loss, "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"
    ),
    **_all(
        reductions.loss, "binary_cross_entropy", "binary_cross_entropy_with_logits", "ctc_loss", "margin_ranking_loss"
    ),
    **_all(reshaping.hot, "one_hot"),
    **_all(reshaping.columns, "unfold"),
}

FACTORIES: dict[str, Rule] = {
    **_all(factories.sized, *(f"torch.{word}" for word in ("zeros", "ones", "empty", "rand", "randn"))),
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
    **_all(factories.loaded, "torch.load", "torch.hub.load_state_dict_from_url", "safetensors.torch.load_file"),
    **_all(factories.loaded, "torch.utils.model_zoo.load_url"),
    **_all(numbers.sparse_new, "torch.sparse_coo_tensor", "torch.sparse_csr_tensor"),
    **_all(numbers.quantized, "torch.quantize_per_tensor", "torch.quantize_per_channel"),
    **_all(numbers.nested, "torch.nested.nested_tensor", "torch.nested.as_nested_tensor"),
    "torch.nn.utils.rnn.pad_sequence": made_of.padded,
    "torch.bucketize": reductions.order,
    "torch.searchsorted": reductions.plain("integer", "int64"),
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
