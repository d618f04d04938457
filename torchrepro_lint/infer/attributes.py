"""What attributes are: of objects of the project's classes, of tensors and arrays, of paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Constant
from torchrepro_lint.infer import containers
from torchrepro_lint.infer.annotations import annotated
from torchrepro_lint.infer.literals import literal
from torchrepro_lint.infer.outside import instance_of
from torchrepro_lint.infer.what import NOTHING, UNKNOWN, What, both, joined

if TYPE_CHECKING:
    from torchrepro_lint.infer.kinds import Kinds
    from torchrepro_lint.infer.spot import Spot

_OBJECTS = frozenset({"instance", "module", "dataset", "loader", "class"})
# What an object is by the outside classes that its own inherits from.
_BASES = (
    "tensor",
    "parameter",
    "module",
    "dataset",
    "loader",
    "path",
    "dict",
    "list",
    "set",
    "tuple",
    "str",
    "int",
    "float",
)


def instance(kinds: Kinds, owner: str) -> What:
    """An object of a class of the project: of the kind that its bases from outside give it."""
    for base in kinds.project.resolver.ancestry(owner):
        if ":" in base:
            continue
        made = instance_of(base)
        if base in ("torch.nn.Module", "torch.nn.modules.module.Module", "torch.jit.ScriptModule") or base.endswith(
            "LightningModule"
        ):
            return What("module", name=owner)
        if made.kind in _BASES:
            return What(made.kind, name=owner)
    return What("instance", name=owner)


def read(kinds: Kinds, what: What, word: str, spot: Spot) -> What:
    """What the attribute ``word`` of a value is."""
    match what.kind:
        case "nothing":
            return what
        case kind if kind in _OBJECTS and ":" in what.name and what.value is None:
            return kinds.solver.solve(
                ("attribute", what.name, word, spot.hops), lambda: _of_object(kinds, what, word, spot)
            )
        case "tensor" | "parameter":
            return _of_tensor(what, word)
        case "" if word in ("data", "T", "mT"):
            return _of_tensor(what, word)._replace(kind="")
        case "" if word in ("device", "dtype"):
            return What(word)
        case "instance" | "class" if word in ("value", "name") and what.value is not None:
            return literal(what.value) if word == "value" else What("str", of=What("str"))
        case "ndarray":
            return _of_array(what, word)
        case "path":
            return _PATH.get(word, UNKNOWN)
        case "dataframe" | "series":
            return _PANDAS.get(
                word, What("series") if what.kind == "dataframe" and word in ("index", "columns") else UNKNOWN
            )
        case "tuple" if what.items and word in ("values", "indices") and what.name == "values":
            return what.items[word == "indices"]
    return UNKNOWN


def _of_object(kinds: Kinds, what: What, word: str, spot: Spot) -> What:
    """What is assigned to it in the methods of the class and its bases, or in its body; a method or a property."""
    resolver = kinds.project.resolver
    found, declared = NOTHING, UNKNOWN
    for owner in resolver.ancestry(what.name):
        if ":" not in owner:
            continue
        path = owner.partition(":")[0]
        for how, _, value in resolver.instance_attributes(owner).get(word, ()):
            one = kinds.what(value, kinds.spot(path, value.start, spot.hops))
            found = joined(found, one if how == "=" else containers.element(one) if how == "[]" else found)
        for how, value in resolver.assigned(f"{owner}.{word}"):
            if how == ":":
                declared = annotated(kinds, path, value)
            else:
                found = joined(
                    found, kinds.what(value, kinds.spot(path, value.start, spot.hops)) if how == "=" else UNKNOWN
                )
        for one in _registered(kinds, owner, word, spot):
            found = joined(found, one)
    if what.kind == "class" and found.value is not None and any(map(_is_enum, resolver.ancestry(what.name))):
        return What("instance", name=what.name, value=found.value)
    if found.kind != "nothing" or declared.kind:
        return both(found, declared)
    for method in resolver.methods(what.name, word):
        if ":" in method and resolver.functions(method):
            from torchrepro_lint.infer.calls import returned

            return returned(kinds, method, spot) if resolver.is_property(method) else What("function", name=method)
    return UNKNOWN


def _is_enum(name: str) -> bool:
    return name.startswith(("enum.", "strenum.", "backports.strenum")) or name.rpartition(".")[2] in ("StrEnum", "Enum")


def _registered(kinds: Kinds, owner: str, word: str, spot: Spot) -> list[What]:
    """What ``register_buffer("word", value)`` and its like give the object."""
    found = []
    for path, method, call in kinds.registered(owner).get(word, ()):
        value = next((arg.value for arg in call.args[1:] if not arg.star), None)
        if value is None or (isinstance(value, Constant) and value.value is None):
            continue
        one = kinds.what(value, kinds.spot(path, value.start, spot.hops))
        found.append(one._replace(grad=False) if method == "register_buffer" and one.is_tensor else one)
    return found


def _of_tensor(what: What, word: str) -> What:
    if word == "data":
        return what._replace(kind="tensor", grad=False)
    if word in ("T", "mT", "H", "mH"):
        sizes = what.sizes[::-1] if what.sizes is not None and len(what.sizes) == 2 else None
        return what._replace(
            kind="tensor", sizes=sizes, layout="strided" if what.layout == "contiguous" else what.layout
        )
    if word == "shape":
        return shape(what)
    if word in ("ndim", "itemsize", "nbytes"):
        return What("int", value=what.ndim if word == "ndim" else None)
    if word == "grad":
        return what._replace(kind="tensor", grad=False, layout="")
    if word in ("real", "imag"):
        return What("tensor", family="floating", device=what.device, low=what.low, high=what.high, sizes=what.sizes)
    return _TENSOR.get(word, UNKNOWN)


def shape(what: What) -> What:
    """The shape of a tensor, as a tuple of as many numbers as it has dimensions."""
    if what.sizes is not None:
        return What("tuple", of=What("int"), items=tuple(What("int", value=each) for each in what.sizes))
    return What("tuple", of=What("int"), items=None if what.ndim is None else (What("int"),) * what.ndim)


def _of_array(what: What, word: str) -> What:
    if word == "T":
        return what._replace(sizes=None)
    return {
        "shape": What("tuple", of=What("int")),
        "ndim": What("int"),
        "size": What("int"),
        "dtype": What("dtype"),
    }.get(word, UNKNOWN)


_TENSOR = {
    "dtype": What("dtype"),
    "device": What("device"),
    **dict.fromkeys(("requires_grad", "is_cuda", "is_leaf", "is_sparse", "is_quantized", "is_nested"), What("bool")),
}
_TEXT = What("str", of=What("str"))
_PATH = {
    "parent": What("path"),
    **dict.fromkeys(("name", "stem", "suffix", "anchor", "root", "drive"), _TEXT),
    "parts": What("tuple", of=_TEXT),
    "suffixes": What("list", of=_TEXT),
    "parents": What("tuple", of=What("path")),
}
_PANDAS = {
    "values": What("ndarray"),
    "iloc": What("dataframe"),
    "loc": What("dataframe"),
    "shape": What("tuple", of=What("int")),
}
