"""Types of attributes and of results: fields of objects, attributes of library types, and returns of functions.

A field is what all methods of the class assign to it or register by name (``register_buffer``), joined with its
annotation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.types import containers
from torchrepro_lint.dataflow.types.annotations import annotated
from torchrepro_lint.dataflow.types.bindings import literal_value
from torchrepro_lint.dataflow.types.lattice import BOTTOM, TEXT, TYPES, UNKNOWN, AbstractValue, join_all, meet, or_none
from torchrepro_lint.dataflow.types.shapes import with_shape_of
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.nodes import (
    Arg,
    Call,
    Collection,
    Expression,
    Function,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    With,
)
from torchrepro_lint.syntax.qualified_names import in_project, last_word, path_of
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    is_none,
    last_identifier,
    statements,
)

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.resolve.program_index import ProgramIndex


def of_unknown(what: AbstractValue, word: str) -> AbstractValue:
    """An attribute of a value that may be a tensor or an array: what holds for both."""
    if word in ("data", "T", "mT"):
        return of_tensor(what, word)._replace(kind="")
    if word in _SHAPES:
        return AbstractValue("tuple", contents=AbstractValue("int"))
    return AbstractValue(word) if word in ("device", "dtype") else UNKNOWN


# The shapes of arrays, and those of distributions.
_SHAPES = frozenset({"shape", "batch_shape", "event_shape"})


def of_tensor(what: AbstractValue, word: str) -> AbstractValue:
    """An attribute of a tensor."""
    if word == "data":
        return what._replace(kind="tensor", grad=False)
    if word in ("T", "mT", "H", "mH"):
        sizes = what.sizes[::-1] if what.sizes is not None and len(what.sizes) == 2 else None
        layout = "strided" if what.layout == "contiguous" else what.layout
        return what._replace(kind="tensor", sizes=sizes, layout=layout)
    if word == "shape":
        return shape(what)
    if word in ("ndim", "itemsize", "nbytes"):
        return AbstractValue("int", value=what.ndim if word == "ndim" else None)
    if word == "grad":
        return what._replace(kind="tensor", grad=False, layout="")
    if word in ("real", "imag"):
        return with_shape_of(AbstractValue("tensor", family="floating", device=what.device), what)
    if word == "dtype":
        return AbstractValue("dtype", dtype=what.dtype, family=what.family)
    if word == "device":
        return AbstractValue("device", device=what.device)
    return AbstractValue("bool") if word in _FLAGS else UNKNOWN


def shape(what: AbstractValue) -> AbstractValue:
    """The shape of a tensor, as a tuple of integers."""
    sizes = (None,) * what.ndim if what.sizes is None and what.ndim is not None else what.sizes
    items = None if sizes is None else tuple(AbstractValue("int", value=each) for each in sizes)
    return AbstractValue("tuple", contents=AbstractValue("int"), items=items)


def of_array(what: AbstractValue, word: str) -> AbstractValue:
    """An attribute of an array."""
    if word == "T":
        return what._replace(sizes=None)
    return {
        "shape": AbstractValue("tuple", contents=AbstractValue("int")),
        "ndim": AbstractValue("int"),
        "size": AbstractValue("int"),
        "dtype": AbstractValue("dtype"),
    }.get(word, UNKNOWN)


def of_dataframe(what: AbstractValue, word: str) -> AbstractValue:
    """An attribute of a data frame or a series."""
    column = AbstractValue("series") if what.kind == "dataframe" and word in ("index", "columns") else UNKNOWN
    return _PANDAS.get(word, column)


_FLAGS = frozenset({"requires_grad", "is_cuda", "is_leaf", "is_sparse", "is_quantized", "is_nested"})
PATH = {
    "parent": AbstractValue("path"),
    **dict.fromkeys(("name", "stem", "suffix", "anchor", "root", "drive"), TEXT),
    "parts": AbstractValue("tuple", contents=TEXT),
    "suffixes": AbstractValue("list", contents=TEXT),
    "parents": AbstractValue("tuple", contents=AbstractValue("path")),
}
_PANDAS = {
    "values": AbstractValue("ndarray"),
    "iloc": AbstractValue("dataframe"),
    "loc": AbstractValue("dataframe"),
    "shape": AbstractValue("tuple", contents=AbstractValue("int")),
}


_REGISTERING = frozenset({"register_buffer", "register_parameter"})


def registrations(project: ProgramIndex, owner: str) -> Iterator[tuple[str, str, Call]]:
    """Each ``self.register_buffer(...)`` or the like of a class: the file, the method's name, and the call."""
    path = path_of(owner)
    for definition in project.resolver.classes(owner):
        for _, method in definition.methods:
            for function in project.resolver.functions(path + method):
                for each in body_expressions(function.body):
                    match each:
                        case Call(func=Ref(path=(word,)), args=(_, *_)) if word in _REGISTERING:
                            yield path, word, each


def return_value(inference: TypeInference, name: str, point: ProgramPoint, parts: int = 0) -> AbstractValue:
    """The type of a function's result: its annotation, and the join of its ``return`` values; of those that may have so many ``parts``."""
    if not point.calls_left:
        return UNKNOWN
    return _return_value(inference, name, point.calls_left, parts)


@query(cutoff=True, cycle=TYPES)
def _return_value(inference: TypeInference, name: str, calls_left: int, parts: int) -> AbstractValue:
    resolver = inference.project.resolver
    path = path_of(name)
    found = BOTTOM
    for function in resolver.functions(name):
        if function.generator:
            return AbstractValue("iterator")
        declared = UNKNOWN if function.returns is None else annotated(inference, path, function.returns)
        leaves = [each for each in statements(function.body) if isinstance(each, SimpleStatement)]
        returned = [value for each in leaves if each.kind == "return" for value in each.values]
        values = [each for each in returned if not parts or _may_have(each, parts)]
        # A method that only raises is meant to be overridden.
        one = BOTTOM if values or not any(each.kind == "raise" for each in leaves) else UNKNOWN
        for value in values:
            known = inference.infer(value, inference.program_point(path, value.start, calls_left - 1))
            one = one if parts and known.kind in _WHOLE else join_all(one, known)
        if values and may_return_none(inference, path, function):
            one = or_none(one)
        found = join_all(found, meet(one, declared))
    return found if resolver.functions(name) else UNKNOWN


# The kinds of values that are not unpacked; a loader could be.
_WHOLE = frozenset({"loader", "module", "bool", "int", "float", "none"})


def _may_have(value: Expression, parts: int) -> bool:
    """Whether a value may be unpacked into so many parts: a tuple that is written with others cannot."""
    if not isinstance(value, Collection) or value.kind not in ("tuple", "list"):
        return True
    return len(value.items) == parts or any(isinstance(each, Operation) and each.op == "*" for each in value.items)


def may_return_none(inference: TypeInference, path: str, function: Function) -> bool:
    """Whether a function may return without a value: by a bare ``return``, or by its end."""
    if inference.flows(path).flow(function).falls_through:
        return True
    return any(
        _suppresses(each) or (isinstance(each, SimpleStatement) and each.kind == "return" and not each.values)
        for each in statements(function.body)
    )


def _suppresses(statement: Statement) -> bool:
    """Whether a ``with`` statement goes on after an exception in it."""
    return isinstance(statement, With) and any(
        isinstance(value, Call) and last_identifier(value.func) == "suppress" for value, _ in statement.items
    )


_OBJECTS = frozenset({"instance", "module", "dataset", "loader", "class"})


def attribute_value(inference: TypeInference, what: AbstractValue, word: str, point: ProgramPoint) -> AbstractValue:
    """The type of the attribute ``word`` of a value."""
    match what.kind:
        case "nothing":
            return what
        case kind if kind in _OBJECTS and in_project(what.name) and what.value is None:
            return inference.types.of(
                ("attribute", what.kind, what.name, word, point.calls_left),
                lambda: _of_object(inference, what, word, point),
            )
        case "tensor" | "parameter":
            return of_tensor(what, word)
        case "loaded" if word in ("data", "T", "mT", "shape", "dtype", "device"):
            return of_tensor(AbstractValue("tensor", device=what.device, grad=False), word)
        case kind if not kind or (kind == "instance" and word in _SHAPES):
            return of_unknown(what, word)
        case "instance" | "class" if word in ("value", "name") and what.value is not None:
            return literal_value(what.value) if word == "value" else TEXT
        case "ndarray":
            return of_array(what, word)
        case "path":
            return PATH.get(word, UNKNOWN)
        case "dataframe" | "series":
            return of_dataframe(what, word)
        case "tuple" if what.items and word in ("values", "indices") and what.name == "values":
            return what.items[word == "indices"]
        case "module" if word == "module":
            return what  # a wrapper is represented by the module that it wraps
    return UNKNOWN


def _of_object(inference: TypeInference, what: AbstractValue, word: str, point: ProgramPoint) -> AbstractValue:
    """The join of all assignments to a field in the class and its bases; else a property or a method."""
    resolver = inference.project.resolver
    found, declared = BOTTOM, UNKNOWN
    for owner in resolver.ancestry(what.name):
        if in_project(owner):
            more, said = _of_class(inference, owner, word, point)
            found, declared = join_all(found, more), meet(declared, said)
    if what.kind == "class" and found.value is not None and any(map(_is_enum, resolver.ancestry(what.name))):
        return AbstractValue("instance", name=what.name, value=found.value)
    if found.kind != "nothing" or declared.kind:
        return meet(found, declared)
    for method in resolver.methods(what.name, word):
        if in_project(method) and resolver.functions(method):
            return (
                return_value(inference, method, point)
                if resolver.is_property(method)
                else AbstractValue("function", name=method)
            )
    if word == "module" and what.kind == "module":
        return what
    return _left_to_subclasses(inference, what.name, word, point)


def _left_to_subclasses(inference: TypeInference, owner: str, word: str, point: ProgramPoint) -> AbstractValue:
    """The join of what the subclasses assign to a field that a class only reads, as an abstract class does."""
    heirs = inference.project.resolver.subclasses(owner)
    if len(heirs) > limits.MAX_SUBCLASSES:
        return UNKNOWN
    found = join_all(BOTTOM, *(meet(*_of_class(inference, each, word, point)) for each in heirs))
    return UNKNOWN if found.kind == "nothing" else found


def _of_class(
    inference: TypeInference, owner: str, word: str, point: ProgramPoint
) -> tuple[AbstractValue, AbstractValue]:
    """The join of what one class assigns to an attribute, and its annotation there."""
    path = path_of(owner)
    found, declared = BOTTOM, UNKNOWN
    wrapped = False
    for how, _, value in inference.project.resolver.stored_attributes(owner, word):
        one = inference.infer(value, inference.program_point(path, value.start, point.calls_left))
        if how == "=" and not one.kind and _wraps_itself(value, word):
            wrapped = True
        elif how in ("=", "[]"):
            found = join_all(found, one if how == "=" else containers.element(one))
    for how, value in inference.project.resolver.assigned(f"{owner}.{word}"):
        if how == ":":
            declared = annotated(inference, path, value)
        else:
            one = (
                inference.infer(value, inference.program_point(path, value.start, point.calls_left))
                if how == "="
                else UNKNOWN
            )
            found = join_all(found, one)
    found = join_all(found, *_registered(inference, owner, word, point))
    if found.is_tensor and _is_buffer(inference, owner, word):
        found = found._replace(grad=False)
    if wrapped and found.kind != "module":
        return UNKNOWN, declared
    return _as_field(found), declared


def _is_buffer(inference: TypeInference, owner: str, word: str) -> bool:
    """Whether an attribute is registered as a buffer, which needs no gradient, and no forward assigns to it.

    An assignment to the attribute keeps it a buffer: the module's own setter puts the tensor there.
    """
    registered = inference.registered(owner).get(word, ())
    assigned = inference.project.resolver.stored_attributes(owner, word)
    return any(kind == "register_buffer" for _, kind, _ in registered) and not any(
        method.endswith(".forward") for _, method, _ in assigned
    )


def _as_field(what: AbstractValue) -> AbstractValue:
    """A container in an attribute, its content unknown: whoever has the object may fill it."""
    if what.kind not in ("list", "dict", "set"):
        return what
    return what._replace(
        items=None, contents=None if what.contents is not None and what.contents.kind == "nothing" else what.contents
    )


def _wraps_itself(value: Expression, word: str) -> bool:
    """Whether an attribute is wrapped, ``self.net = wrap(self.net)``: the wrapper still runs the network."""
    match value:
        case Call(args=(Arg(value=Ref(path=(inner,))), *_)):
            return inner == word
    return False


def _is_enum(name: str) -> bool:
    return name.startswith(("enum.", "strenum.", "backports.strenum")) or last_word(name) in ("StrEnum", "Enum")


def _registered(inference: TypeInference, owner: str, word: str, point: ProgramPoint) -> list[AbstractValue]:
    """The values registered under a name: ``register_buffer("word", value)`` and the like."""
    found = []
    for path, method, call in inference.registered(owner).get(word, ()):
        value = next((arg.value for arg in call.args[1:] if not arg.star), None)
        if value is None or is_none(value):
            continue
        one = inference.infer(value, inference.program_point(path, value.start, point.calls_left))
        buffer = method == "register_buffer" and one.is_tensor
        found.append(one._replace(device="", grad=False) if buffer else one)  # it moves with its module
    return found
