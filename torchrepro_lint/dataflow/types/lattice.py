"""What is known of a value: its kind, and of tensors dtype, device, dimensions, layout and gradient.

Families of dtypes, and what operations on several tensors have in common: dtype, device, gradient.

Words of torch that say what a tensor is: dtypes, the methods that keep or change them, layouts.
"""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.syntax.nodes import Call

# Kinds that agree on a wider one.
_WIDER = {
    frozenset({"parameter", "tensor"}): "tensor",
    frozenset({"frozenset", "set"}): "set",
}
_TENSORS = ("tensor", "parameter")


class What(NamedTuple):
    """What a value is, unless it is None. An empty string, or None, is a field that is not known.

    Of a value of unknown kind the other fields say what holds if it is a tensor.

    ``kind`` is one of tensor, parameter, module, ndarray, series, dataframe, set, frozenset, list, tuple, dict, generator
    (of random numbers), dataset, loader, path, str, bytes, int, float, bool, none, dtype, device, iterator, function, class,
    instance (of another class), loaded (what ``torch.load`` gave, or a part of it), nothing (no value can arrive). ``name`` is the class of a module, instance, dataset or
    loader, or what a function or class is called; ``made`` is the constructor's call, with its file. ``of`` is what
    iterating it gives (of a dict: the values), ``items`` are those of a tuple or list of known length. ``value`` is a
    literal's; what is made empty is ``of`` nothing. ``dtype`` is torch's own word (``int64``), ``family`` floating, complex, integer or bool. ``low`` and
    ``high`` bound the number of dimensions, ``sizes`` are known or None. ``layout`` is contiguous, strided, sparse,
    quantized or nested. ``grad`` is False where no gradient can be needed. ``seeded`` is a generator's. ``scalar`` says that one
    of the values that it may be has no dimensions, whatever is known of the others; with a ``low`` of more it says nothing.
    """

    kind: str = ""
    of: What | None = None
    items: tuple[What, ...] | None = None
    name: str = ""
    made: tuple[str, Call] | None = None
    value: str | int | float | bool | None = None
    dtype: str = ""
    family: str = ""
    device: str = ""
    low: int = 0
    high: int | None = None
    sizes: tuple[int | None, ...] | None = None
    layout: str = ""
    grad: bool | None = None
    seeded: bool | None = None
    scalar: bool = False

    @property
    def ndim(self) -> int | None:
        """The number of dimensions, where it is known."""
        return self.low if self.low == self.high else None

    @property
    def may_be_scalar(self) -> bool:
        """Whether something is known of its dimensions, and it may have none."""
        return self.low == 0 and (self.scalar or self.high is not None)

    @property
    def is_tensor(self) -> bool:
        """Whether it is known to be a tensor."""
        return self.kind in _TENSORS

    @property
    def integral(self) -> bool:
        """Whether it is a tensor or array of integers or booleans."""
        return self.family in ("integer", "bool")

    @property
    def element(self) -> What:
        """What iterating it gives; unknown where that is not known, and of what is empty so far."""
        return UNKNOWN if self.of is None or self.of.kind == "nothing" else self.of


UNKNOWN = What()
NOTHING = What("nothing")
NONE = What("none")
LOADED = What("loaded", grad=False)


def join(one: What, other: What) -> What:
    """What is known of a value that is one of two: what both agree on. None and no value at all say nothing."""
    if one == other or other.kind == "nothing":
        return one
    if one.kind in ("nothing", "none"):
        return other
    if other.kind == "none":
        return one
    kind = one.kind if one.kind == other.kind else _WIDER.get(frozenset({one.kind, other.kind}), "")
    # What is unknown but for what it is as a tensor, and a tensor: if it is one, both agree on this much.
    open_kinds = all(each.is_tensor or not each.kind for each in (one, other))
    agree = kind or one.kind == other.kind or open_kinds
    found = _joined(kind, one, other) if agree else UNKNOWN
    return found._replace(scalar=one.may_be_scalar or other.may_be_scalar)


def widened(one: What, other: What) -> What:
    """``join`` that gives up on each field in which the two differ: no value grows for ever, as dimensions do in a loop."""
    found = join(one, other)
    return What._make(a if a == b else default for a, b, default in zip(one, found, UNKNOWN, strict=True))


def _joined(kind: str, one: What, other: What) -> What:
    """The plain fields that agree, and of the others what both allow."""
    agreed = (a if a == b else default for a, b, default in zip(one, other, UNKNOWN, strict=True))
    return What._make(agreed)._replace(
        kind=kind,
        of=join(one.of, other.of) if one.of and other.of else None,
        items=_items(one.items, other.items),
        low=min(one.low, other.low),
        high=None if one.high is None or other.high is None else max(one.high, other.high),
        sizes=_sizes(one.sizes, other.sizes),
    )


def _items(one: tuple[What, ...] | None, other: tuple[What, ...] | None) -> tuple[What, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(map(join, one, other))


def _sizes(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> tuple[int | None, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def joined(*all_of: What) -> What:
    """``join`` of any number; of none it is nothing."""
    found = NOTHING
    for each in all_of:
        found = join(found, each)
    return found


def both(one: What, other: What) -> What:
    """What is known of a value that is known to be both: the first decides, the second fills what the first leaves open."""
    if other == UNKNOWN:
        return one
    if one.kind in ("", "nothing", "none"):
        return other if other.kind or one.kind == "" else one
    same = one.kind == other.kind or frozenset({one.kind, other.kind}) in _WIDER or (one.is_tensor and not other.kind)
    if not same:
        return one
    ranges = (max(one.low, other.low), other.high if one.high is None else one.high)
    filled = (b if a == default else a for a, b, default in zip(one, other, UNKNOWN, strict=True))
    return What._make(filled)._replace(low=ranges[0], high=ranges[1])


def tensor(
    family: str = "",
    *,
    dtype: str = "",
    device: str = "",
    sizes: tuple[int | None, ...] | None = None,
    layout: str = "",
    grad: bool | None = None,
) -> What:
    """A tensor of which this much is known; integers and booleans need no gradient."""
    low, high = (0, None) if sizes is None else (len(sizes), len(sizes))
    needs = False if family in ("integer", "bool") else grad
    found = What("tensor", dtype=dtype, family=family, device=device, sizes=sizes, layout=layout, grad=needs)
    return found._replace(low=low, high=high)


_ORDER = ("bool", "integer", "floating", "complex")
_OF_NUMBERS = {"bool": "bool", "int": "integer", "float": "floating"}


def family(what: What) -> str:
    """The family of a tensor, an array or a number; empty where it is not known."""
    return _OF_NUMBERS.get(what.kind, what.family)


def promoted(operands: list[What]) -> tuple[str, str]:
    """The dtype and the family that operands give together; empty where they are not known."""
    families = [family(each) for each in operands]
    if "" in families or not families:
        return "", ""
    highest = max(families, key=_ORDER.index)
    exact = {each.dtype for each in operands if each.is_tensor and each.family == highest}
    others = any(not each.is_tensor and family(each) == highest for each in operands)
    tensors = [each for each in operands if each.is_tensor]
    alone = len(exact) == 1 and (not others or all(each.family == highest for each in tensors))
    return (exact.pop() if alone else "", highest)


def common_device(operands: list[What]) -> str:
    """The device of a result; a tensor on the CPU without dimensions goes with any other."""
    tensors = [each for each in operands if each.is_tensor or each.kind == ""]
    known = {each.device for each in tensors}
    if len(known) == 1:
        return known.pop()
    if "" in known and len(known) == 2:
        known.discard("")
        sure = next(iter(sorted(known)))
        if sure != "cpu" or any(each.device == "cpu" and each.low > 0 for each in tensors):
            return sure
    return ""


def common_gradient(operands: list[What]) -> bool | None:
    """False where no operand can need a gradient."""
    needing = [each for each in operands if each.kind not in _OF_NUMBERS and each.kind not in ("none", "str")]
    return False if all(each.grad is False for each in needing) else None


def device_named(what: What) -> str:
    """The kind of device that a text, a number or a device names."""
    if what.kind == "device":
        return what.device
    if what.kind == "int":
        return "cuda"
    return what.value.partition(":")[0] if isinstance(what.value, str) else ""


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
