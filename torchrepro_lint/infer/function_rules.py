"""The tables of functions that are no methods of tensors: those of ``torch.nn.functional``, and those that make tensors."""

from __future__ import annotations

from torchrepro_lint.infer import assembling as made_of
from torchrepro_lint.infer import elementwise, factories, numbers, reductions, reshaping
from torchrepro_lint.infer.given import Rule
from torchrepro_lint.infer.rules import every

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
