"""Functions that give back what they are given: ``model, optimizer = restore(model, optimizer)``.

What one call gives is then what that call passes, whatever others do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer.parameters import argument
from torchrepro_lint.infer.what import UNKNOWN, What, both, joined
from torchrepro_lint.syntax.nodes import Call, Collection, Expression, Function, Leave, Ref, path_of
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.infer.bindings import Binding
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

# What a function may have put something into.
_CONTAINERS = ("list", "set", "dict")


def given_back(kinds: TypeInference, name: str, call: Call, spot: Spot, found: What) -> What:
    """What a call of a function of the project gives, of which ``found`` is known from all calls."""
    functions = kinds.project.resolver.functions(name)
    if len(functions) != 1 or functions[0].decorators or functions[0].generator:
        return found
    values = _returned(functions[0])
    if not values or not all(_has_parameter(functions[0], each) for each in values):
        return found
    return joined(*(_of(kinds, name, functions[0], call, spot, each, found) for each in values))


def _returned(function: Function) -> list[Expression]:
    leaves = (each for each in statements(function.body) if isinstance(each, Leave) and each.kind == "return")
    return [value for each in leaves for value in each.values]


def _has_parameter(function: Function, value: Expression) -> bool:
    """A cheap look for what may be a parameter, as it is or in a tuple."""
    parts = value.items if isinstance(value, Collection) and value.kind == "tuple" else (value,)
    start = f"{function.name}.<locals>."
    names = {start + each.name for each in function.params if not each.kind.startswith("*")}
    return any(isinstance(each, Ref) and not each.path and not names.isdisjoint(each.roots) for each in parts)


def _of(
    kinds: TypeInference, name: str, function: Function, call: Call, spot: Spot, value: Expression, found: What
) -> What:
    if isinstance(value, Collection):
        known = found.items if found.items is not None and len(found.items) == len(value.items) else ()
        rest = known or (UNKNOWN,) * len(value.items)
        items = tuple(
            both(_passed(kinds, name, function, call, spot, each), one) if each is not None else one
            for each, one in zip(value.items, rest, strict=True)
        )
        return both(What("tuple", items=items), found)
    return both(_passed(kinds, name, function, call, spot, value), found)


def _passed(kinds: TypeInference, name: str, function: Function, call: Call, spot: Spot, value: Expression) -> What:
    """What a call passes for the parameter that a value is; unknown where it is none, or another by then."""
    if not isinstance(value, Ref) or value.path or len(value.roots) != 1:
        return UNKNOWN
    path = path_of(name)
    binding = kinds.places(path).env(value.start).get(value.roots[0])
    while binding is not None and binding.how == "handed":
        binding = binding.before[0]
    if binding is None or binding.param is None or _is_self(function, binding):
        return UNKNOWN
    _, param, position = binding.param
    one = argument(call, function, param, position)
    if one is None or (one is param.default and not spot.hops):
        return UNKNOWN
    there = kinds.spot(path, one.start, spot.hops - 1) if one is param.default else spot
    given = kinds.what(one, there)
    return given._replace(of=None, items=None) if given.kind in _CONTAINERS else given


def _is_self(function: Function, binding: Binding) -> bool:
    return bool(function.owner) and binding.param is not None and binding.param[2] == 0
