"""Abstract values: the lattice of types, with join, meet and widening.

An abstract value is a kind, and of tensors dtype, shape, device, layout and gradient. The module also has what
operands have in common (promotion of dtypes, the device, the gradient), and torch's words for dtypes and layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torchrepro_lint.query.cycles import Lattice
from torchrepro_lint.syntax.nodes import Call

# The least upper bounds of kinds, other than unknown.
_SUPERTYPES = {
    frozenset({"parameter", "tensor"}): "tensor",
    frozenset({"frozenset", "set"}): "set",
}
_TENSORS = ("tensor", "parameter")
# Kinds of which a class of the project may be a subclass.
_EXTENDED = frozenset({"str", "bytes", "int", "float", "tuple", "path"})


class AbstractValue(NamedTuple):
    """An abstract value: what is known of a value, unless it is None. An empty string or None is an unknown field.

    If the kind is unknown, the other fields say what holds if the value is a tensor.

    ``kind`` is one of tensor, parameter, module, ndarray, series, dataframe, set, frozenset, list, tuple, dict, generator
    (of random numbers), dataset, loader, path, file (of text), str, bytes, int, float, bool, none, dtype, device, iterator, function, class,
    instance (of another class), loaded (the result of ``torch.load`` or a part of it), nothing (bottom: no value arrives).
    ``name`` is the class of a module, instance, dataset or loader, or the name of a function or class; of a string, number,
    tuple or path it is the class of the project that it may be of, ``?`` for several.
    ``constructor_call`` is a call with its file. ``contents`` is the type of the elements (of a dict: of the values; of an
    empty container: bottom), ``items`` are the elements of a tuple or list of known length. ``value`` is that of a constant.
    ``dtype`` is torch's name (``int64``), ``family`` is floating, complex, integer or bool. ``min_ndim`` and ``max_ndim``
    bound the rank, ``sizes`` are known or None. ``layout`` is contiguous, strided, sparse, quantized or nested. ``grad`` is
    False if no gradient can be needed. ``seeded`` is a generator's. ``scalar`` says that one of the joined values has no
    dimensions; it means nothing if ``min_ndim`` is positive. ``optional`` is nullability: whether the value may be None
    instead; a value of unknown kind always may.
    """

    kind: str = ""
    contents: AbstractValue | None = None
    items: tuple[AbstractValue, ...] | None = None
    name: str = ""
    constructor_call: tuple[str, Call] | None = None
    value: str | int | float | bool | None = None
    dtype: str = ""
    family: str = ""
    device: str = ""
    min_ndim: int = 0
    max_ndim: int | None = None
    sizes: tuple[int | None, ...] | None = None
    layout: str = ""
    grad: bool | None = None
    seeded: bool | None = None
    scalar: bool = False
    optional: bool = False

    @property
    def ndim(self) -> int | None:
        """The rank, if known."""
        return self.min_ndim if self.min_ndim == self.max_ndim else None

    @property
    def may_be_scalar(self) -> bool:
        """Whether something is known of the rank, and it may be 0."""
        return self.min_ndim == 0 and (self.scalar or self.max_ndim is not None)

    @property
    def is_tensor(self) -> bool:
        """Whether it is known to be a tensor."""
        return self.kind in _TENSORS

    @property
    def integral(self) -> bool:
        """Whether it is a tensor or array of integers or booleans."""
        return self.family in ("integer", "bool")

    @property
    def element(self) -> AbstractValue:
        """The type of the elements; unknown also for a container that is empty so far."""
        return UNKNOWN if self.contents is None or self.contents.kind == "nothing" else self.contents


UNKNOWN = AbstractValue()
BOTTOM = AbstractValue("nothing")
NONE = AbstractValue("none")
LOADED = AbstractValue("loaded", grad=False)
TEXT = AbstractValue("str", contents=AbstractValue("str"))


def join(one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The join, the least upper bound: what both agree on. Bottom is neutral, and None but for ``optional``."""
    if one == other or other.kind == "nothing":
        return one
    if one.kind == "nothing":
        return other
    if one.kind == "none":
        return or_none(other)
    if other.kind == "none":
        return or_none(one)
    if (one.kind == "loaded") is not (other.kind == "loaded"):
        loaded, rest = (one, other) if one.kind == "loaded" else (other, one)
        return _join_loaded(loaded, rest)
    kind = one.kind if one.kind == other.kind else _SUPERTYPES.get(frozenset({one.kind, other.kind}), "")
    # An unknown kind has the fields that hold if it is a tensor, so these can be joined with a tensor's.
    open_kinds = all(each.is_tensor or not each.kind for each in (one, other))
    agree = kind or one.kind == other.kind or open_kinds
    found = _join_fields(kind, one, other) if agree else UNKNOWN
    return found._replace(scalar=one.may_be_scalar or other.may_be_scalar)


def _join_loaded(loaded: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The join of loaded data with something else: a tensor, or a dictionary of what needs no gradient."""
    if other.kind == "dict":
        inside = other.contents
        free = inside is not None and (inside.kind in ("nothing", "loaded") or inside.grad is False)
        return AbstractValue("loaded", grad=False) if free else UNKNOWN
    if other.is_tensor or not other.kind:
        return join(AbstractValue(device=loaded.device, grad=loaded.grad), other)
    return UNKNOWN


def widen(one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The widening: each field in which the two differ becomes unknown, so that no value grows for ever in a loop."""
    found = join(one, other)
    same = (a if a == b else default for a, b, default in zip(one, found, UNKNOWN, strict=True))
    return AbstractValue._make(same)._replace(name=found.name, optional=found.optional)


def or_none(what: AbstractValue) -> AbstractValue:
    """The same value, or None."""
    return what._replace(optional=True) if what.kind not in ("", "nothing", "none") else what


def not_none(what: AbstractValue) -> AbstractValue:
    """The same value where it is known not to be None."""
    return what._replace(optional=False) if what.optional else what


def _join_fields(kind: str, one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The join field by field."""
    agreed = (a if a == b else default for a, b, default in zip(one, other, UNKNOWN, strict=True))
    return AbstractValue._make(agreed)._replace(
        kind=kind,
        contents=join(one.contents, other.contents) if one.contents and other.contents else None,
        items=_join_items(one.items, other.items),
        min_ndim=min(one.min_ndim, other.min_ndim),
        max_ndim=None if one.max_ndim is None or other.max_ndim is None else max(one.max_ndim, other.max_ndim),
        sizes=_join_sizes(one.sizes, other.sizes),
        optional=bool(kind) and (one.optional or other.optional),
        name=_join_names(kind, one.name, other.name),
    )


def _join_names(kind: str, one: str, other: str) -> str:
    if one == other:
        return one
    return ("?" if one and other else one or other) if kind in _EXTENDED else ""


def _join_items(
    one: tuple[AbstractValue, ...] | None, other: tuple[AbstractValue, ...] | None
) -> tuple[AbstractValue, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(map(join, one, other))


def _join_sizes(
    one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None
) -> tuple[int | None, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


# The type of a value may depend on itself, as in a loop or a recursive function.
TYPES = Lattice(BOTTOM, join, widen)


def join_all(*all_of: AbstractValue) -> AbstractValue:
    """The join of any number of values; of none, bottom."""
    found = BOTTOM
    for each in all_of:
        found = join(found, each)
    return found


def meet(one: AbstractValue, other: AbstractValue) -> AbstractValue:
    """The meet of two facts about one value; if they conflict, the first decides."""
    if other == UNKNOWN:
        return one
    if one.kind == "none":  # ``name: str = None``
        return or_none(other) if other.kind else one
    if one.kind in ("", "nothing"):
        return other if other.kind or one.kind == "" else one
    same = (
        one.kind == other.kind or frozenset({one.kind, other.kind}) in _SUPERTYPES or (one.is_tensor and not other.kind)
    )
    if not same:
        return one
    ranges = (max(one.min_ndim, other.min_ndim), other.max_ndim if one.max_ndim is None else one.max_ndim)
    filled = (b if a == default else a for a, b, default in zip(one, other, UNKNOWN, strict=True))
    return AbstractValue._make(filled)._replace(
        min_ndim=ranges[0], max_ndim=ranges[1], optional=one.optional and (other.optional or not other.kind)
    )


def tensor(
    family: str = "",
    *,
    dtype: str = "",
    device: str = "",
    sizes: tuple[int | None, ...] | None = None,
    layout: str = "",
    grad: bool | None = None,
) -> AbstractValue:
    """A tensor with these fields known; integers and booleans need no gradient."""
    low, high = (0, None) if sizes is None else (len(sizes), len(sizes))
    needs = False if family in ("integer", "bool") else grad
    found = AbstractValue("tensor", dtype=dtype, family=family, device=device, sizes=sizes, layout=layout, grad=needs)
    return found._replace(min_ndim=low, max_ndim=high)


_PROMOTION = ("bool", "integer", "floating", "complex")
# The dtype families of Python's numbers.
NUMBERS = {"bool": "bool", "int": "integer", "float": "floating"}


def dtype_family(what: AbstractValue) -> str:
    """The dtype family of a tensor, an array or a number; empty if unknown."""
    return NUMBERS.get(what.kind, what.family)


def promoted_dtype(operands: Sequence[AbstractValue]) -> tuple[str, str]:
    """Type promotion: the dtype and family of a result; empty if unknown."""
    families = [dtype_family(each) for each in operands]
    if "" in families or not families:
        return "", ""
    highest = max(families, key=_PROMOTION.index)
    exact = {each.dtype for each in operands if each.is_tensor and each.family == highest}
    others = any(not each.is_tensor and dtype_family(each) == highest for each in operands)
    tensors = [each for each in operands if each.is_tensor]
    alone = len(exact) == 1 and (not others or all(each.family == highest for each in tensors))
    return (exact.pop() if alone else "", highest)


def common_device(operands: Sequence[AbstractValue]) -> str:
    """The device of a result; a zero-dimensional CPU tensor combines with any device."""
    tensors = [each for each in operands if each.is_tensor or each.kind == ""]
    known = {each.device for each in tensors}
    if len(known) == 1:
        return known.pop()
    if "" in known and len(known) == 2:
        known.discard("")
        sure = next(iter(sorted(known)))
        if sure != "cpu" or any(each.device == "cpu" and each.min_ndim > 0 for each in tensors):
            return sure
    return ""


def common_gradient(operands: Sequence[AbstractValue]) -> bool | None:
    """False if no operand can need a gradient."""
    needing = [each for each in operands if each.kind not in NUMBERS and each.kind not in ("none", "str")]
    return False if all(each.grad is False or each.integral for each in needing) else None


def device_type(what: AbstractValue) -> str:
    """The device type that a string, a number or a device names."""
    if what.kind == "device":
        return what.device
    if what.kind == "int":
        return "cuda"
    return what.value.partition(":")[0] if isinstance(what.value, str) else ""


def nested_data(what: AbstractValue) -> tuple[str, tuple[int | None, ...] | None]:
    """The dtype family and the sizes of a tensor of numbers in nested lists."""
    if what.kind in NUMBERS:
        return NUMBERS[what.kind], ()
    if what.kind in ("list", "tuple", "iterator") and what.contents is not None:
        family, inner = nested_data(what.contents)
        return family, None if inner is None else (None if what.items is None else len(what.items), *inner)
    return "", None
