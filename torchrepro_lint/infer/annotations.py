"""What annotations say of a value, jaxtyping's shapes included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.infer.instances import instance
from torchrepro_lint.infer.outside import instance_of
from torchrepro_lint.infer.quoted import unquoted
from torchrepro_lint.infer.what import NONE, UNKNOWN, What, joined, tensor
from torchrepro_lint.syntax.nodes import Attribute, Collection, Constant, Expression, Operation, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference

_UNIONS = frozenset({"typing.Optional", "typing.Union", "typing.Final", "typing.ClassVar", "typing_extensions.Final"})
_FIRST = frozenset({"typing.Annotated", "typing_extensions.Annotated", "typing.Required", "typing.NotRequired"})
_OF_KEYS = ("dict",)
# Of these only the elements are known: a list, a tuple or a set may be passed.
_ELEMENTS = frozenset(
    f"{module}.{word}"
    for module in ("typing", "collections.abc")
    for word in ("Sequence", "Iterable", "Collection", "Iterator", "MutableSequence", "Container")
)
_FAMILIES = {
    "Float": "floating",
    "Int": "integer",
    "UInt": "integer",
    "Integer": "integer",
    "Bool": "bool",
    "Complex": "complex",
}


def annotated(kinds: TypeInference, path: str, annotation: Expression) -> What:
    """What a value so annotated is; a tuple of classes, as ``isinstance`` takes it, stands for any of them."""
    match annotation:
        case Constant(value=None):
            return NONE
        case Constant(value=str(text)):
            quoted = unquoted(kinds.project.files[path], text)
            return UNKNOWN if quoted is None else annotated(kinds, path, quoted)
        case Operation(op="|", operands=operands) | Collection(kind="tuple", items=operands):
            return joined(*(annotated(kinds, path, each) for each in operands if each is not None))
        case Subscript(value=value, indices=indices):
            return _subscripted(kinds, path, value, indices)
        case Ref() | Attribute():
            names = _names(kinds, path, annotation)
            return joined(*(class_instance(kinds, each) for each in names)) if names else UNKNOWN
    return UNKNOWN


def alternatives(kinds: TypeInference, path: str, annotation: Expression) -> Iterator[Expression]:
    """The annotations that one stands for: each of a union's."""
    match annotation:
        case Constant(value=str(text)) if (quoted := unquoted(kinds.project.files[path], text)) is not None:
            yield from alternatives(kinds, path, quoted)
        case Operation(op="|", operands=operands):
            for each in operands:
                yield from alternatives(kinds, path, each)
        case Subscript(value=value, indices=indices) if _UNIONS.intersection(_names(kinds, path, value)):
            for each in indices:
                yield from alternatives(kinds, path, each)
        case _:
            yield annotation


def _names(kinds: TypeInference, path: str, annotation: Expression) -> tuple[str, ...]:
    """What a class is called; a quoted annotation is made up, and must not be remembered by its identity."""
    resolver = kinds.project.resolver
    return resolver.names_of(path, annotation) if isinstance(annotation, Ref) else resolver.names(path, annotation)


def class_instance(kinds: TypeInference, name: str) -> What:
    """An instance of a class of the project, or of one from outside."""
    if name.endswith(("()", "[]")):
        return UNKNOWN
    if ":" in name:
        return instance(kinds, name) if kinds.project.resolver.classes(name) else UNKNOWN
    found = instance_of(name)
    return found._replace(dtype="", device="") if found.is_tensor else found  # said of many that are of another size


def _subscripted(kinds: TypeInference, path: str, value: Expression, indices: tuple[Expression, ...]) -> What:
    names = set(_names(kinds, path, value))
    if names & _UNIONS:
        return joined(*(annotated(kinds, path, each) for each in indices))
    if names & _FIRST:
        return annotated(kinds, path, indices[0])
    if names & _ELEMENTS:
        return What(of=annotated(kinds, path, indices[0]))
    if any(name.startswith("jaxtyping.") for name in names):
        return _shaped(kinds, path, next(iter(sorted(names))).rpartition(".")[2], indices)
    whole = annotated(kinds, path, value)
    if whole.kind == "tuple":
        return _tuple(kinds, path, whole, indices)
    if whole.kind == "dict" and len(indices) == 2:
        return whole._replace(of=annotated(kinds, path, indices[1]))
    if whole.kind in ("list", "set", "frozenset", "iterator", "") and len(indices) == 1 and whole.kind:
        return whole._replace(of=annotated(kinds, path, indices[0]))
    return whole


def _tuple(kinds: TypeInference, path: str, whole: What, indices: tuple[Expression, ...]) -> What:
    if len(indices) == 2 and isinstance(indices[1], Operation) and indices[1].op == "...":
        return whole._replace(of=annotated(kinds, path, indices[0]))
    items = tuple(annotated(kinds, path, each) for each in indices)
    return whole._replace(items=items, of=joined(*items))


def _shaped(kinds: TypeInference, path: str, word: str, indices: tuple[Expression, ...]) -> What:
    """``Float[Tensor, "batch 3 h w"]``: a family and a shape; a part with a star may be any number of dimensions."""
    if len(indices) != 2:
        return UNKNOWN
    base, (shape,) = annotated(kinds, path, indices[0]), indices[1:]
    family = next((family for start, family in _FAMILIES.items() if word.startswith(start)), "")
    found = tensor(family) if base.is_tensor else base._replace(family=family)
    if not isinstance(shape, Constant) or not isinstance(shape.value, str):
        return found
    parts = shape.value.split()
    if any(part.startswith(("*", "...", "#*")) for part in parts):
        return found
    sizes = tuple(int(part) if part.isdigit() else None for part in parts)
    return found._replace(low=len(parts), high=len(parts), sizes=sizes)
