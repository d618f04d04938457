"""Words of torch that say what a tensor is: dtypes, the methods that keep or change them, layouts."""

from __future__ import annotations

INTEGERS = frozenset({"uint8", "int8", "int16", "short", "int32", "int", "int64", "long", "bool"})
INT32 = frozenset({"int32", "int"})
# Methods that return their receiver with another dtype, and the attribute of torch that names it.
CASTS = {"long": "long", "int": "int", "short": "short", "char": "int8", "byte": "uint8", "bool": "bool"}
# Methods whose result has the dtype, the kind and the gradient of what they are called on.
KEEPS = frozenset(
    {"to", "cuda", "cpu", "clone", "contiguous", "flatten", "reshape", "view", "squeeze", "unsqueeze", "t"}
)
SAME_SHAPE = frozenset({"to", "cuda", "cpu", "clone", "contiguous", "detach", *CASTS})
INTEGER_RESULTS = frozenset({"argmax", "argmin", "argsort", "nonzero", "eq", "ne", "lt", "le", "gt", "ge", "isnan"})
INTEGER_FACTORIES = frozenset(
    {"randint", "randperm", "bincount", "isfinite", "tril_indices", "triu_indices", "bucketize", "searchsorted"}
)
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
FACTORIES = frozenset(
    {
        "randn",
        "rand",
        "zeros",
        "ones",
        "empty",
        "full",
        "tensor",
        "arange",
        "linspace",
        "eye",
        "stack",
        "randint",
        "randperm",
        "from_numpy",
    }
)
SPARSE = ("torch.sparse", "torch.quantize_per_", "torch._sparse", "torch.nested")
SPARSE_METHODS = frozenset(
    {
        "to_sparse",
        "to_sparse_csr",
        "to_sparse_csc",
        "to_sparse_coo",
        "to_sparse_bsr",
        "to_sparse_bsc",
        "coalesce",
        "to_mkldnn",
    }
)

FLOATS = frozenset({"float", "float16", "float32", "float64", "half", "double", "bfloat16", "cfloat", "complex64"})
