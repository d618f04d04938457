"""The table of what torch's functions give that are methods of tensors as well: by word, the rule that says what."""

from __future__ import annotations

from torchrepro_lint.infer import assembling as made_of
from torchrepro_lint.infer import elementwise, factories, reductions, reshaping
from torchrepro_lint.infer.given import Rule


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
