"""What the attributes of tensors, arrays, frames and paths are.

The buffers, parameters and modules that the methods of a class register by name.

Return types: what the functions of a project return, by their annotations and their ``return`` statements.

What attributes are: of objects of the project's classes, and by the kind of any other value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import containers
from torchrepro_lint.dataflow.types.annotations import annotated
from torchrepro_lint.dataflow.types.lattice import NOTHING, UNKNOWN, What, both, joined
from torchrepro_lint.dataflow.types.targets import literal
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Expression, Leave, Ref, path_of
from torchrepro_lint.syntax.visitor import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot
    from torchrepro_lint.resolve.program_index import ProgramIndex


def of_unknown(what: What, word: str) -> What:
    """An attribute of what may be a tensor, or an array: whichever it is, a shape is a shape."""
    if word in ("data", "T", "mT"):
        return of_tensor(what, word)._replace(kind="")
    if word == "shape":
        return What("tuple", of=What("int"))
    return What(word) if word in ("device", "dtype") else UNKNOWN


def of_tensor(what: What, word: str) -> What:
    """An attribute of a tensor."""
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


def of_array(what: What, word: str) -> What:
    """An attribute of an array."""
    if word == "T":
        return what._replace(sizes=None)
    return {
        "shape": What("tuple", of=What("int")),
        "ndim": What("int"),
        "size": What("int"),
        "dtype": What("dtype"),
    }.get(word, UNKNOWN)


def of_frame(what: What, word: str) -> What:
    """An attribute of a frame or a series: a column too is one."""
    column = What("series") if what.kind == "dataframe" and word in ("index", "columns") else UNKNOWN
    return _PANDAS.get(word, column)


_TENSOR = {
    "dtype": What("dtype"),
    "device": What("device"),
    **dict.fromkeys(("requires_grad", "is_cuda", "is_leaf", "is_sparse", "is_quantized", "is_nested"), What("bool")),
}
_TEXT = What("str", of=What("str"))
PATH = {
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


_REGISTERING = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})


def registrations(project: ProgramIndex, owner: str) -> Iterator[tuple[str, str, Call]]:
    """Each ``self.register_buffer(...)`` of a class: the file, the method's word, and the call."""
    path = path_of(owner)
    for definition in project.resolver.classes(owner):
        for _, method in definition.methods:
            for function in project.resolver.functions(path + method):
                for statement in statements(function.body):
                    for expression in expressions(statement):
                        for each in within(expression):
                            match each:
                                case Call(func=Ref(path=(word,)), args=(_, *_)) if word in _REGISTERING:
                                    yield path, word, each


def returned(kinds: TypeInference, name: str, spot: Spot) -> What:
    """What a function of the project returns."""
    if not spot.hops:
        return UNKNOWN
    return kinds.solver.solve(("returns", name, spot.hops), lambda: _returned(kinds, name, spot))


def _returned(kinds: TypeInference, name: str, spot: Spot) -> What:
    resolver = kinds.project.resolver
    path = path_of(name)
    found = NOTHING
    for function in resolver.functions(name):
        if function.generator:
            return What("iterator")
        declared = UNKNOWN if function.returns is None else annotated(kinds, path, function.returns)
        leaves = [each for each in statements(function.body) if isinstance(each, Leave)]
        values = [value for each in leaves if each.kind == "return" for value in each.values]
        # What only raises is written for others to override.
        one = NOTHING if values or not any(each.kind == "raise" for each in leaves) else UNKNOWN
        for value in values:
            one = joined(one, kinds.what(value, kinds.spot(path, value.start, spot.hops - 1)))
        found = joined(found, both(one, declared))
    return found if resolver.functions(name) else UNKNOWN


_OBJECTS = frozenset({"instance", "module", "dataset", "loader", "class"})


def read(kinds: TypeInference, what: What, word: str, spot: Spot) -> What:
    """What the attribute ``word`` of a value is."""
    match what.kind:
        case "nothing":
            return what
        case kind if kind in _OBJECTS and ":" in what.name and what.value is None:
            return kinds.solver.solve(
                ("attribute", what.name, word, spot.hops), lambda: _of_object(kinds, what, word, spot)
            )
        case "tensor" | "parameter":
            return of_tensor(what, word)
        case "loaded" if word in ("data", "T", "mT", "shape", "dtype", "device"):
            return of_tensor(What("tensor", device=what.device, grad=False), word)
        case "":
            return of_unknown(what, word)
        case "instance" | "class" if word in ("value", "name") and what.value is not None:
            return literal(what.value) if word == "value" else What("str", of=What("str"))
        case "ndarray":
            return of_array(what, word)
        case "path":
            return PATH.get(word, UNKNOWN)
        case "dataframe" | "series":
            return of_frame(what, word)
        case "tuple" if what.items and word in ("values", "indices") and what.name == "values":
            return what.items[word == "indices"]
        case "module" if word == "module":
            return what  # of a wrapper, which stands for what it is given
    return UNKNOWN


def _of_object(kinds: TypeInference, what: What, word: str, spot: Spot) -> What:
    """What is assigned to it in the methods of the class and its bases, or in its body; a method or a property."""
    resolver = kinds.project.resolver
    found, declared = NOTHING, UNKNOWN
    for owner in resolver.ancestry(what.name):
        if ":" in owner:
            more, said = _of_class(kinds, owner, word, spot)
            found, declared = joined(found, more), both(declared, said)
    if what.kind == "class" and found.value is not None and any(map(_is_enum, resolver.ancestry(what.name))):
        return What("instance", name=what.name, value=found.value)
    if found.kind != "nothing" or declared.kind:
        return both(found, declared)
    for method in resolver.methods(what.name, word):
        if ":" in method and resolver.functions(method):
            return returned(kinds, method, spot) if resolver.is_property(method) else What("function", name=method)
    return what if word == "module" and what.kind == "module" else UNKNOWN


def _of_class(kinds: TypeInference, owner: str, word: str, spot: Spot) -> tuple[What, What]:
    """What one class assigns to an attribute, and what it is annotated with there."""
    path = path_of(owner)
    found, declared = NOTHING, UNKNOWN
    wrapped = False
    for how, _, value in kinds.project.resolver.instance_attributes(owner).get(word, ()):
        one = kinds.what(value, kinds.spot(path, value.start, spot.hops))
        if how == "=" and not one.kind and _wraps_itself(value, word):
            wrapped = True
        elif how in ("=", "[]"):
            found = joined(found, one if how == "=" else containers.element(one))
    for how, value in kinds.project.resolver.assigned(f"{owner}.{word}"):
        if how == ":":
            declared = annotated(kinds, path, value)
        else:
            one = kinds.what(value, kinds.spot(path, value.start, spot.hops)) if how == "=" else UNKNOWN
            found = joined(found, one)
    found = joined(found, *_registered(kinds, owner, word, spot))
    if wrapped and found.kind != "module":
        return UNKNOWN, declared
    return _filled(found), declared


def _filled(what: What) -> What:
    """A container that an attribute keeps: whoever has the object may fill it."""
    if what.kind not in ("list", "dict", "set"):
        return what
    return what._replace(items=None, of=None if what.of is not None and what.of.kind == "nothing" else what.of)


def _wraps_itself(value: Expression, word: str) -> bool:
    """``self.net = wrap(self.net)``: what a network is wrapped in runs it, whatever it is."""
    match value:
        case Call(args=(Arg(value=Ref(path=(inner,))), *_)):
            return inner == word
    return False


def _is_enum(name: str) -> bool:
    return name.startswith(("enum.", "strenum.", "backports.strenum")) or name.rpartition(".")[2] in ("StrEnum", "Enum")


def _registered(kinds: TypeInference, owner: str, word: str, spot: Spot) -> list[What]:
    """What ``register_buffer("word", value)`` and its like give the object."""
    found = []
    for path, method, call in kinds.registered(owner).get(word, ()):
        value = next((arg.value for arg in call.args[1:] if not arg.star), None)
        if value is None or (isinstance(value, Constant) and value.value is None):
            continue
        one = kinds.what(value, kinds.spot(path, value.start, spot.hops))
        buffer = method == "register_buffer" and one.is_tensor
        found.append(one._replace(device="", grad=False) if buffer else one)  # it goes where its module goes
    return found
