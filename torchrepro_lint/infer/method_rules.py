"""The table of methods of tensors that are no functions of torch, or other ones; and of those that only tensors have."""

from __future__ import annotations

from torchrepro_lint.infer import elementwise, factories, numbers, reshaping
from torchrepro_lint.infer.given import Rule
from torchrepro_lint.infer.rules import every

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
    **every(numbers.integer, "dim", "ndimension", "numel", "nelement", "element_size", "get_device", "storage_offset"),
    **every(numbers.truth, "is_contiguous", "is_floating_point", "is_complex", "equal", "allclose", "is_pinned"),
    "to_sparse": numbers.sparse,
    "to_sparse_csr": numbers.sparse,
    "to_sparse_coo": numbers.sparse,
    "to_dense": numbers.dense,
    "masked_fill_": elementwise.same,
    "indices": numbers.sparse_indices,
    "values": numbers.sparse_values,
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
