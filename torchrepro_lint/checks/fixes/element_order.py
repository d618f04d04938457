"""The order of a set's elements: whether ``sorted`` puts them into one order, and if not, why and what to write.

That takes a total order: of strings, bytes, integers, paths, and tuples of such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.lattice import AbstractValue
    from torchrepro_lint.domain.project import Project


class Obstacle(NamedTuple):
    """Why ``sorted`` does not settle the order of elements, and what to write instead."""

    reason: str
    cure: str


UNKNOWN_ELEMENTS = Obstacle(
    "what the elements are is not known, so sorted may raise",
    "write sorted(...), with a key where the elements do not compare",
)
_KEEP_A_LIST = "keep them in a list, or as the keys of a dict"
_OBSTACLES = {
    "": UNKNOWN_ELEMENTS,
    **dict.fromkeys(
        ("set", "frozenset"),
        Obstacle(
            "frozensets compare by inclusion, so sorting them settles nothing",
            "write sorted(..., key=sorted) where what they hold compares",
        ),
    ),
    **dict.fromkeys(
        ("parameter", "tensor"), Obstacle("tensors compare element by element, so sorted raises", _KEEP_A_LIST)
    ),
    "module": Obstacle("modules do not compare, so sorted raises", _KEEP_A_LIST),
    **dict.fromkeys(
        ("class", "function"),
        Obstacle(
            "classes and functions do not compare, so sorted raises",
            "write sorted(..., key=lambda each: each.__qualname__)",
        ),
    ),
    "float": Obstacle(
        "a NaN among the numbers has no place in an order", "write sorted(...), with a key if there may be a NaN"
    ),
}
_NO_ORDER = Obstacle(
    "the elements are objects that need not compare, so sorted may raise", "write sorted(..., key=...)"
)
_TOTALLY_ORDERED = frozenset({"str", "bytes", "int", "bool", "path"})
_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__")


def sorting_obstacle(project: Project, element: AbstractValue, where: str = "the set") -> Obstacle | None:
    """Why ``sorted`` may raise or settle nothing for elements of a type; None where they have a total order."""
    if element.optional or element.kind == "none":
        return Obstacle(
            f"None may be in {where}, and sorted raises then",
            "write sorted(..., key=...) with a key that orders None, too",
        )
    if element.name == "?" or any(_defines(project, element.name, method) for method in _COMPARISONS if element.name):
        return Obstacle("the class of the elements has an order of its own, which may be partial", _NO_ORDER.cure)
    if element.kind == "tuple":
        return _of_parts(project, element)
    return None if element.kind in _TOTALLY_ORDERED else _OBSTACLES.get(element.kind, _NO_ORDER)


def _of_parts(project: Project, element: AbstractValue) -> Obstacle | None:
    """Tuples compare part by part."""
    parts = element.items if element.items is not None else (element.element,)
    found = (sorting_obstacle(project, each, "the tuples of the set") for each in parts)
    return next((each for each in found if each is not None), None)


def _defines(project: Project, owner: str, method: str) -> bool:
    """Whether a class of the project or an ancestor there defines a method."""
    return any(":" in name and project.resolver.functions(name) for name in project.resolver.methods(owner, method))
