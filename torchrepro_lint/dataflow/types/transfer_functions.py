"""Transfer functions by name: tables from functions, methods and layers of torch to the rule that computes the result.

There are tables for functions that are methods as well, for ``torch.nn.functional``, for factories, and for methods
only; the functions behind them find the rule for a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import elementwise, factories, multi_tensor, reductions, reshaping
from torchrepro_lint.dataflow.types.context import gradients_off
from torchrepro_lint.dataflow.types.lattice import BOTTOM, UNKNOWN, AbstractValue
from torchrepro_lint.dataflow.types.tensor_arguments import TorchArguments, TransferFunction
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.syntax.qualified_names import split_last

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


def for_words(rule: TransferFunction, *words: str) -> dict[str, TransferFunction]:
    """One transfer function for several names."""
    return dict.fromkeys(words, rule)


# Functions of torch and methods of tensors.
SHARED: dict[str, TransferFunction] = {
    **for_words(
        elementwise.keep, "abs", "absolute", "neg", "negative", "clone", "positive", "ceil", "floor", "round", "trunc"
    ),
    **for_words(
        elementwise.keep, "frac", "sign", "sgn", "conj", "relu", "dropout", "alpha_dropout", "feature_dropout", "celu"
    ),
    **for_words(
        elementwise.keep,
        "resolve_conj",
        "resolve_neg",
        "pin_memory",
        "share_memory_",
        "nan_to_num",
        "relu6",
        "clamp_min",
    ),
    **for_words(
        elementwise.keep,
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
    **for_words(elementwise.keep, "retain_grad_", "hardshrink", "selu", "threshold", "rrelu", "prelu", "bernoulli"),
    **for_words(elementwise.keep, "coalesce", "exponential_", "trunc_normal_", "renorm", "logical_not_"),
    **for_words(
        elementwise.to_floating,
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
    **for_words(
        elementwise.to_floating,
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "sigmoid",
        "erf",
    ),
    **for_words(
        elementwise.to_floating,
        "erfc",
        "erfinv",
        "lgamma",
        "digamma",
        "reciprocal",
        "deg2rad",
        "rad2deg",
        "logit",
        "sinc",
    ),
    **for_words(elementwise.to_floating, "i0", "arctan", "arcsin", "arccos", "expit"),
    **for_words(
        elementwise.to_boolean, "isnan", "isinf", "isfinite", "logical_not", "signbit", "isneginf", "isposinf", "isreal"
    ),
    **for_words(
        elementwise.comparison, "eq", "ne", "lt", "le", "gt", "ge", "greater", "less", "logical_and", "logical_or"
    ),
    **for_words(elementwise.comparison, "logical_xor", "isclose", "not_equal", "greater_equal", "less_equal"),
    **for_words(
        elementwise.arithmetic_call,
        "add",
        "sub",
        "subtract",
        "mul",
        "multiply",
        "maximum",
        "minimum",
        "fmod",
        "remainder",
    ),
    **for_words(
        elementwise.arithmetic_call,
        "floor_divide",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "rsub",
        "fmax",
        "fmin",
        "pow",
    ),
    **for_words(elementwise.arithmetic_call, "hypot"),
    **for_words(elementwise.quotient, "div", "divide", "true_divide"),
    **for_words(elementwise.where, "where"),
    **for_words(elementwise.detached, "detach", "detach_"),
    **for_words(
        elementwise.keep_shape, "flip", "fliplr", "flipud", "roll", "tril", "triu", "masked_fill", "index_fill"
    ),
    **for_words(
        elementwise.keep_shape,
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
    **for_words(reductions.sum_or_prod, "sum", "prod", "nansum"),
    **for_words(reductions.mean, "mean", "nanmean", "logsumexp"),
    **for_words(reductions.norm, "norm"),
    **for_words(reductions.amax, "amax", "amin"),
    **for_words(reductions.any_or_all, "any", "all"),
    **for_words(reductions.argmax, "argmax", "argmin", "count_nonzero"),
    **for_words(reductions.max_or_min, "max", "min", "median", "nanmedian"),
    **for_words(reductions.kthvalue, "kthvalue"),
    **for_words(reductions.sorted_values, "sort", "topk"),
    **for_words(reductions.argsort, "argsort"),
    **for_words(reductions.cumsum, "cumsum"),
    **for_words(reductions.cummax, "cummax", "cummin"),
    **for_words(reductions.histogram, "bincount"),
    **for_words(reductions.tensor_of_dtype("floating", ndim=1), "histc"),
    **for_words(reshaping.viewed, "view", "reshape"),
    **for_words(reshaping.expanded, "expand", "broadcast_to"),
    **for_words(reshaping.repeated, "repeat", "tile"),
    **for_words(reshaping.flattened, "flatten"),
    **for_words(reshaping.raveled, "ravel"),
    **for_words(reshaping.unflattened, "unflatten"),
    **for_words(reshaping.squeezed, "squeeze"),
    **for_words(reshaping.unsqueezed, "unsqueeze"),
    **for_words(reshaping.permuted, "permute"),
    **for_words(reshaping.swapped, "transpose", "swapaxes", "swapdims"),
    **for_words(reshaping.transposed, "t"),
    **for_words(reshaping.keep_ndim, "rot90", "narrow", "movedim", "moveaxis", "diff", "index_select"),
    **for_words(reshaping.split, "chunk", "split", "tensor_split", "split_with_sizes"),
    **for_words(reshaping.unbind, "unbind"),
    **for_words(reshaping.selected, "select", "diagonal"),
    **for_words(reshaping.diagonal, "diag"),
    **for_words(reshaping.embedded_diagonal, "diag_embed"),
    **for_words(reshaping.gather, "gather"),
    **for_words(reshaping.take, "take"),
    **for_words(reshaping.masked, "masked_select"),
    **for_words(reshaping.nonzero, "nonzero"),
    **for_words(reshaping.unique, "unique", "unique_consecutive"),
    **for_words(reshaping.interleaved, "repeat_interleave"),
    **for_words(multi_tensor.concatenated, "cat", "concat", "concatenate"),
    **for_words(multi_tensor.stacked, "stack"),
    **for_words(multi_tensor.stacked_flat, "hstack", "vstack", "column_stack"),
    **for_words(multi_tensor.multiplied, "matmul"),
    **for_words(multi_tensor.product(2), "mm"),
    **for_words(multi_tensor.product(3), "bmm"),
    **for_words(multi_tensor.product(1), "mv"),
    **for_words(multi_tensor.product(0), "dot", "vdot"),
    **for_words(multi_tensor.added_product(2), "addmm"),
    **for_words(multi_tensor.added_product(3), "baddbmm"),
    **for_words(multi_tensor.outer, "outer", "ger"),
    **for_words(multi_tensor.einsum, "einsum"),
    **for_words(multi_tensor.meshgrid, "meshgrid"),
    **for_words(
        multi_tensor.scattered,
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "index_add",
        "index_copy",
        "index_put",
        "index_reduce",
    ),
    **for_words(
        multi_tensor.scattered, "masked_scatter", "scatter_", "scatter_add_", "index_add_", "index_copy_", "index_put_"
    ),
    **for_words(multi_tensor.scattered, "masked_scatter_", "put_", "put", "scatter_reduce_", "index_reduce_"),
    **for_words(
        factories.zeros_like,
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
    ),
}


# Functions of ``torch.nn.functional`` that torch does not have, or that differ from those of torch.
FUNCTIONAL: dict[str, TransferFunction] = {
    **for_words(
        elementwise.keep,
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
    **for_words(
        elementwise.keep, "logsigmoid", "softsign", "tanhshrink", "softshrink", "dropout1d", "dropout2d", "dropout3d"
    ),
    **for_words(
        elementwise.keep_shape,
        "batch_norm",
        "layer_norm",
        "group_norm",
        "instance_norm",
        "local_response_norm",
        "rms_norm",
    ),
    **for_words(elementwise.keep_shape, "normalize", "gumbel_softmax", "softmin"),
    **for_words(multi_tensor.linear, "linear"),
    **{f"conv{n}d": multi_tensor.convolved(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": multi_tensor.convolved(n) for n in (1, 2, 3)},
    **for_words(multi_tensor.embedding, "embedding"),
    **for_words(multi_tensor.resized, "pad", "pixel_shuffle", "pixel_unshuffle", "max_unpool2d"),
    **for_words(multi_tensor.interpolated, "interpolate", "upsample"),
    "upsample_bilinear": multi_tensor.interpolated_as("bilinear"),
    "upsample_nearest": multi_tensor.interpolated_as("nearest"),
    **{f"{stem}_pool{n}d": multi_tensor.pooled(n) for stem in ("avg", "adaptive_avg", "lp") for n in (1, 2, 3)},
    **{f"{stem}_pool{n}d": multi_tensor.pooled_with_indices(n) for stem in ("max", "adaptive_max") for n in (1, 2, 3)},
    **for_words(multi_tensor.sampled, "grid_sample"),
    **for_words(multi_tensor.attended, "scaled_dot_product_attention"),
    **for_words(
        reductions.loss, "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"
    ),
    **for_words(
        reductions.loss, "binary_cross_entropy", "binary_cross_entropy_with_logits", "ctc_loss", "margin_ranking_loss"
    ),
    **for_words(reshaping.one_hot, "one_hot"),
    **for_words(reshaping.columns, "unfold"),
}

FACTORIES: dict[str, TransferFunction] = {
    **for_words(factories.sized, *(f"torch.{word}" for word in ("zeros", "ones", "empty", "rand", "randn"))),
    "torch.full": factories.filled,
    "torch.randint": factories.integers,
    "torch.randperm": factories.permutation,
    "torch.arange": factories.arange,
    "torch.linspace": factories.linspace,
    "torch.logspace": factories.linspace,
    "torch.eye": factories.eye,
    "torch.tensor": factories.tensor_of_data,
    "torch.as_tensor": factories.as_tensor,
    "torch.asarray": factories.as_tensor,
    "torch.from_numpy": factories.from_array,
    "torch.tril_indices": factories.indices,
    "torch.triu_indices": factories.indices,
    "torch.nn.Parameter": factories.parameter,
    "torch.nn.parameter.Parameter": factories.parameter,
    "torch.device": factories.device,
    "torch.is_tensor": reductions.boolean,
    **for_words(factories.loaded, "torch.load", "torch.hub.load_state_dict_from_url", "safetensors.torch.load_file"),
    **for_words(factories.loaded, "torch.utils.model_zoo.load_url"),
    **for_words(reductions.sparse_new, "torch.sparse_coo_tensor", "torch.sparse_csr_tensor"),
    **for_words(reductions.quantized, "torch.quantize_per_tensor", "torch.quantize_per_channel"),
    **for_words(reductions.nested, "torch.nested.nested_tensor", "torch.nested.as_nested_tensor"),
    "torch.nn.utils.rnn.pad_sequence": multi_tensor.padded,
    "torch.cartesian_prod": multi_tensor.cartesian_prod,
    "torch.combinations": multi_tensor.combinations,
    "torch.bucketize": reductions.argsort,
    "torch.searchsorted": reductions.tensor_of_dtype("integer", "int64"),
}


# Methods that differ from the function of the same name, or are no functions.
METHODS: dict[str, TransferFunction] = {
    **{
        word: elementwise.cast(word) for word in ("float", "double", "half", "bfloat16", "long", "int", "short", "bool")
    },
    "byte": elementwise.cast("uint8"),
    "char": elementwise.cast("int8"),
    "to": elementwise.to,
    "cpu": elementwise.to_device("cpu"),
    "cuda": elementwise.to_device("cuda"),
    "type_as": elementwise.like,
    "type": elementwise.type_,
    "contiguous": elementwise.contiguous,
    "requires_grad_": elementwise.requires_grad_,
    "view_as": reshaping.shaped_like,
    "reshape_as": reshaping.shaped_like,
    "expand_as": reshaping.shaped_like,
    "unfold": reshaping.windowed,
    "new_zeros": factories.new_zeros,
    "new_ones": factories.new_zeros,
    "new_empty": factories.new_zeros,
    "new_full": reductions.new_full,
    "new_tensor": factories.new_tensor,
    "numpy": reductions.array,
    "item": reductions.number,
    "tolist": reductions.listed,
    "size": reductions.size,
    "stride": reductions.sequence,
    **for_words(
        reductions.integer, "dim", "ndimension", "numel", "nelement", "element_size", "get_device", "storage_offset"
    ),
    **for_words(
        reductions.boolean, "is_contiguous", "is_floating_point", "is_complex", "equal", "allclose", "is_pinned"
    ),
    "to_sparse": reductions.sparse,
    "to_sparse_csr": reductions.sparse,
    "to_sparse_coo": reductions.sparse,
    "to_dense": reductions.dense,
    "masked_fill_": elementwise.keep,
    "indices": reductions.sparse_indices,
    "values": reductions.sparse_values,
}

# Methods that no array, data frame, container or module has.
TENSOR_ONLY_METHODS = frozenset(
    {"addmm", "baddbmm", "bmm", "chunk", "clamp_", "clamp_min", "contiguous", "detach", "detach_", "erf"}
    | {"expand_as", "index_add", "index_add_", "index_copy", "index_copy_", "index_select", "log_softmax"}
    | {"logsumexp", "masked_fill", "masked_fill_", "masked_scatter", "masked_select", "narrow", "new_empty"}
    | {"new_full", "new_ones", "new_tensor", "new_zeros", "permute", "rsqrt", "scatter_", "scatter_add"}
    | {"scatter_add_", "scatter_reduce", "sigmoid", "softmax", "type_as", "unbind", "unfold", "unsqueeze"}
    | {"unsqueeze_", "view_as"}
)


_MODULES = ("torch", "torch.Tensor", "torch.special", "torch._C._VariableFunctions")
_FUNCTIONAL = ("torch.nn.functional", "torch._C._nn")


def method_value(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue | None:
    """The result of a tensor method."""
    arguments = TorchArguments(inference, call, point, receiver)
    if arguments.has_bottom:
        return BOTTOM
    rule = METHODS.get(word) or SHARED.get(word)
    if rule is None and word.endswith("_") and not word.startswith("_"):
        in_place = SHARED.get(word[:-1])
        return (
            _under_gradient_mode(inference, _in_place(receiver, in_place(arguments)), point)
            if in_place
            else receiver._replace(kind="tensor")
        )
    return UNKNOWN if rule is None else _under_gradient_mode(inference, rule(arguments), point)


def _in_place(receiver: AbstractValue, after: AbstractValue) -> AbstractValue:
    """The receiver after an in-place method: dtype and device do not change."""
    if not after.is_tensor:
        return receiver._replace(kind="tensor")
    return after._replace(dtype=receiver.dtype, family=receiver.family, device=receiver.device)


def function_value(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue | None:
    """The result of a torch function; None if the tables do not have it."""
    module, word = split_last(name)
    arguments = TorchArguments(inference, call, point, None)
    if arguments.has_bottom:
        return BOTTOM
    if name in FACTORIES:
        return FACTORIES[name](arguments)
    if module in _FUNCTIONAL:
        rule = FUNCTIONAL.get(word) or SHARED.get(word)
        return _under_gradient_mode(inference, rule(arguments) if rule else UNKNOWN, point)
    if module in _MODULES or (module == "torch.linalg" and word in ("norm", "vector_norm")):
        rule = SHARED.get(word) or (METHODS.get(word) if module == "torch.Tensor" else None)
        return _under_gradient_mode(inference, rule(arguments), point) if rule else None
    return None


def constructor_value(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue | None:
    """The result of a torch constructor that is more than an instance: ``nn.Parameter(data)``."""
    return function_value(inference, name, call, point) if name in FACTORIES else None


_OF_DICT = frozenset({"items", "values", "keys", "get", "pop", "copy", "setdefault", "popitem", "update"})


def method_of_loaded(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue | None:
    """The result of a method of loaded data: of a dictionary, or of a tensor in it."""
    if word in _OF_DICT:
        pair = AbstractValue("tuple", items=(AbstractValue("str", contents=AbstractValue("str")), receiver))
        return (
            AbstractValue("iterator", contents=pair if word == "items" else receiver)
            if word in ("items", "values")
            else receiver
        )
    return method_value(inference, AbstractValue("tensor", device=receiver.device, grad=False), word, call, point)


def layer_value(inference: TypeInference, called: AbstractValue, call: Call, point: ProgramPoint) -> AbstractValue:
    """The result of calling a torch layer."""
    if TorchArguments(inference, call, point, None).has_bottom:
        return BOTTOM
    return _under_gradient_mode(inference, multi_tensor.layer_call(inference, called, call, point), point)


def method_of_unknown(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue:
    """The result of a method of an unknown value: a tensor if only tensors have it, else what holds if it is one."""
    if word not in SHARED and word not in METHODS:
        return UNKNOWN
    found = method_value(inference, receiver._replace(kind="tensor"), word, call, point) or UNKNOWN
    if word in TENSOR_ONLY_METHODS or not found.is_tensor:
        return found if word in TENSOR_ONLY_METHODS or found.kind == "nothing" else UNKNOWN
    return found._replace(kind="")


def operator_value(inference: TypeInference, what: AbstractValue, point: ProgramPoint) -> AbstractValue:
    """The result of an operator, under the gradient mode in force."""
    return _under_gradient_mode(inference, what, point)


def _under_gradient_mode(inference: TypeInference, what: AbstractValue, point: ProgramPoint) -> AbstractValue:
    """The value, without gradient if it is computed under ``no_grad``."""
    if what.is_tensor and what.kind != "parameter" and what.grad is None and gradients_off(inference, point):
        return what._replace(grad=False)
    if what.kind == "tuple" and what.items and gradients_off(inference, point):
        return what._replace(items=tuple(_under_gradient_mode(inference, each, point) for each in what.items))
    return what
