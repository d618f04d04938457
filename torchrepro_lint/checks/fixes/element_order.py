"""The order of a set's elements: whether ``sorted`` puts them into one order, and if not, why and what to write.

That takes a total order: of strings, bytes, integers, paths, and tuples of such.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import in_project
from torchrepro_lint.trace.traces import Traces


class Obstacle(Record, frozen=True):
    """Why ``sorted`` does not settle the order of elements, and what to write instead."""

    reason: str
    cure: str


UNKNOWN_ELEMENTS = Obstacle(
    "the type of the elements is not known, so sorted may raise an error",
    "write sorted(...), with a key if the elements are not comparable",
)
_KEEP_A_LIST = "keep them in a list, or as the keys of a dict"
_OBSTACLES = {
    "": UNKNOWN_ELEMENTS,
    **dict.fromkeys(
        ("set", "frozenset"),
        Obstacle(
            "frozensets compare by inclusion, so sorting does not fix their order",
            "write sorted(..., key=sorted) if their elements are comparable",
        ),
    ),
    **dict.fromkeys(
        ("parameter", "tensor"), Obstacle("tensors compare element by element, so sorted raises an error", _KEEP_A_LIST)
    ),
    "module": Obstacle("modules are not comparable, so sorted raises an error", _KEEP_A_LIST),
    **dict.fromkeys(
        ("class", "function"),
        Obstacle(
            "classes and functions are not comparable, so sorted raises an error",
            "write sorted(..., key=lambda each: each.__qualname__)",
        ),
    ),
    "float": Obstacle(
        "the numbers may contain a NaN, which has no order", "write sorted(...), with a key if there may be a NaN"
    ),
}
_NO_ORDER = Obstacle("the elements may not be comparable, so sorted may raise an error", "write sorted(..., key=...)")
_TOTALLY_ORDERED = frozenset({"str", "bytes", "int", "bool", "path"})
_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__")


def sorting_obstacle(project: Traces, element: AbstractValue, where: str = "the set") -> Obstacle | None:
    """Why ``sorted`` may raise or settle nothing for elements of a type; None where they have a total order."""
    if element.optional or element.kind == "none":
        return Obstacle(
            f"{where} may contain None, and then sorted raises an error",
            "write sorted(..., key=...) with a key that handles None, too",
        )
    if element.name == "?" or any(_defines(project, element.name, method) for method in _COMPARISONS if element.name):
        return Obstacle("the class of the elements defines its own order, which may be partial", _NO_ORDER.cure)
    if element.kind == "tuple":
        return _of_parts(project, element)
    return None if element.kind in _TOTALLY_ORDERED else _OBSTACLES.get(element.kind, _NO_ORDER)


def _of_parts(project: Traces, element: AbstractValue) -> Obstacle | None:
    """Tuples compare part by part."""
    parts = element.items if element.items is not None else (element.element,)
    found = (sorting_obstacle(project, each, "the tuples of the set") for each in parts)
    return next((each for each in found if each is not None), None)


def _defines(project: Traces, owner: str, method: str) -> bool:
    """Whether a class of the project or an ancestor there defines a method."""
    return any(
        in_project(name) and project.resolver.functions(name) for name in project.resolver.methods(owner, method)
    )
