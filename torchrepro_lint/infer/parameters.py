"""What parameters are: by their names and annotations, and by what every call of the project passes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from torchrepro_lint.infer.annotations import annotated
from torchrepro_lint.infer.instances import instance
from torchrepro_lint.infer.modes import gradients_off
from torchrepro_lint.infer.unnamed import known_of, unnamed_calls
from torchrepro_lint.infer.what import LOADED, NOTHING, UNKNOWN, What, both, joined
from torchrepro_lint.syntax.nodes import Call, Expression, Function, Param, is_on_class, takes_object

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

# What is called so holds what was saved: tensors out of every graph.
_LOADED = ("state_dict", "checkpoint", "ckpt")
# A function with more calls than this is called with all sorts of things.
_MOST_CALLS = 20


def parameter(kinds: TypeInference, spot: Spot, function: Function, param: Param, position: int) -> What:
    """What a parameter is where its function begins."""
    name = f"{spot.path}{function.name}"
    if position == 0 and takes_object(function) and not param.kind.startswith("*"):
        owner = f"{spot.path}{function.owner}"
        return What("class", name=owner) if is_on_class(function) else instance(kinds, owner)
    declared = UNKNOWN if param.annotation is None else annotated(kinds, spot.path, param.annotation)
    if declared.kind in ("", "dict") and param.name.endswith(_LOADED):
        return LOADED
    if declared.kind in ("", "tensor") and not declared.family and param.name == "edge_index":
        declared = declared._replace(family="integer", grad=False)  # so it is called in libraries of graphs
    if param.kind.startswith("*"):
        return What("tuple" if param.kind == "*" else "dict", of=declared)
    passed = _passed(kinds, spot, name, function, param, position) if spot.hops else UNKNOWN
    return both(declared, passed)


def _passed(kinds: TypeInference, spot: Spot, name: str, function: Function, param: Param, position: int) -> What:
    """What every call of the project passes for a parameter; unknown where not all calls are seen."""
    callers = kinds.project.resolver.calls_of
    calls = list(islice(callers.of(name, function), _MOST_CALLS + 1))
    if not 0 < len(calls) <= _MOST_CALLS or callers.leaves_open(name, function):
        calls = unnamed_calls(kinds.project, name, function)
        if not 0 < len(calls) <= _MOST_CALLS:
            return UNKNOWN
        return known_of(function, _by(kinds, spot, calls, function, param, position))
    return _by(kinds, spot, calls, function, param, position)


def _by(
    kinds: TypeInference, spot: Spot, calls: list[tuple[str, Call]], function: Function, param: Param, position: int
) -> What:
    """What each of some calls passes; unknown where one may pass anything."""
    found = NOTHING
    for path, call in calls:
        one = argument(call, function, param, position)
        if one is None:
            return UNKNOWN
        there = kinds.spot(spot.path if one is param.default else path, one.start, spot.hops - 1)
        given = kinds.what(one, there)
        off = one is not param.default and gradients_off(kinds, there)
        found = joined(found, given._replace(grad=False) if off else given)
        if found == UNKNOWN:
            break
    return found


def argument(call: Call, function: Function, param: Param, position: int) -> Expression | None:
    """What a call gives for a parameter, its default where that is left out; None where it can not be told."""
    if any(arg.star for arg in call.args):
        return None
    keyword = next((arg.value for arg in call.args if arg.keyword == param.name), None)
    plain = [arg.value for arg in call.args if arg.keyword is None]
    at = position - bool(function.owner)
    if keyword is None and param.kind != "kw" and 0 <= at < len(plain):
        return plain[at]
    return keyword or param.default
