"""Return types: what the functions of a project return, by their annotations and their ``return`` statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer.annotations import annotated
from torchrepro_lint.infer.what import NOTHING, UNKNOWN, What, both, joined
from torchrepro_lint.syntax.nodes import Leave, path_of
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot


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
