"""What attributes are: of objects of the project's classes, and by the kind of any other value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer import containers, fields
from torchrepro_lint.infer.annotations import annotated
from torchrepro_lint.infer.literals import literal
from torchrepro_lint.infer.returns import returned
from torchrepro_lint.infer.what import NOTHING, UNKNOWN, What, both, joined
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Expression, Ref, path_of

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

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
            return fields.of_tensor(what, word)
        case "loaded" if word in ("data", "T", "mT", "shape", "dtype", "device"):
            return fields.of_tensor(What("tensor", device=what.device, grad=False), word)
        case "":
            return fields.of_unknown(what, word)
        case "instance" | "class" if word in ("value", "name") and what.value is not None:
            return literal(what.value) if word == "value" else What("str", of=What("str"))
        case "ndarray":
            return fields.of_array(what, word)
        case "path":
            return fields.PATH.get(word, UNKNOWN)
        case "dataframe" | "series":
            return fields.of_frame(what, word)
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
