"""What is passed for parameters by calls that do not name the function: of a loss, and of what a table gives.

What parameters are: by their names and annotations, and by what every call of the project passes.

What variables are: by their bindings, by what is assigned to them anywhere, by annotations and by callers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import attributes, containers, elementwise
from torchrepro_lint.dataflow.types import containers as indexing
from torchrepro_lint.dataflow.types.annotations import annotated, instance, outside_name
from torchrepro_lint.dataflow.types.context import gradients_off
from torchrepro_lint.dataflow.types.lattice import LOADED, NOTHING, UNKNOWN, What, both, joined
from torchrepro_lint.dataflow.types.targets import ADDING, Binding, Spot
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Expression,
    Function,
    Param,
    Ref,
    is_on_class,
    path_of,
    takes_object,
)
from torchrepro_lint.syntax.summary import has_word

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.call_sites import Place


# Operations of which the dimensions, or whether a gradient is kept, decide what is said. Files without them are not asked.
_DECIDING = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss", "nll_loss2d", "index_select")
# What losses are called that are passed on to the function that calls them.
_LOSS = re.compile(r"(?i)(?=\w*\Z)(?:\w*(criteri|loss|nll|crossentropy|cross_entropy|objective)\w*|ce)")
# What is called from more places is called with all sorts of things.
_MOST_CALLS = 20


def unnamed_calls(project: ValueFlow, name: str, function: Function) -> list[tuple[str, Call]]:
    """The calls, each with its file, that run a module's ``forward``, or a function that tables alone name; none where
    there may be others that are not found, and where nothing depends on what they pass.
    """
    calls = project.files[path_of(name)].summary.calls
    if not any(has_word(calls, word) for word in _DECIDING):
        return []
    if not function.owner:
        found = _told(project, name) if _is_in_tables_alone(project, name, function) else iter(())
    elif function.name.endswith(".forward"):
        found = _of_object(project, name)
    else:
        return []
    return [(path, call) for path, call in islice(found, _MOST_CALLS + 1)]


def known_of(function: Function, passed: What) -> What:
    """What is taken for granted of what such calls pass: of an object that may be called elsewhere, too, no more than how many
    dimensions it gets.
    """
    if passed.kind not in ("", "tensor", "parameter"):
        return UNKNOWN
    whole = "" if function.owner else passed.kind
    return What(whole, low=passed.low, high=passed.high, grad=passed.grad if whole else None)


def _told(project: ValueFlow, name: str) -> Iterator[tuple[str, Call]]:
    for path, places in project.all_calls.told.of(name):
        yield from ((path, _call(project, path, each)) for each in places)


def _of_object(project: ValueFlow, name: str) -> Iterator[tuple[str, Call]]:
    """Those by what is known to be an object of the class, and by a loss that is passed on."""
    yield from _told(project, name)
    made = f"{project.resolver.owner(name)}()"
    untold = project.all_calls.untold
    for word in filter(_LOSS.fullmatch, untold.names()):
        for path, places in untold.of(word):
            for each in places:
                call = _call(project, path, each)
                if isinstance(call.func, Ref) and made in project.resolver.through_calls(path, call.func):
                    yield path, call


def _call(project: ValueFlow, path: str, place: Place) -> Call:
    return project.called_at(path + place.function, place.start, place.end).call


def _is_in_tables_alone(project: ValueFlow, name: str, function: Function) -> bool:
    """Whether a function is named where it is called, and otherwise as an item of displays alone."""
    uses = project.uses
    if function.decorators or not project.resolver.calls_of.hands_on(name):
        return False
    for path, read, words in uses.of_definition(path_of(name), function.name):
        spot = uses.spots(path).of(read)
        parent = spot.parent if spot is not None else None
        if words or not (_is_called(parent, read) or isinstance(parent, Collection)):
            return False
    return True


def _is_called(parent: Expression | None, read: Expression) -> bool:
    return isinstance(parent, Call) and parent.func is read


# What is called so holds what was saved: tensors out of every graph.
_LOADED = ("state_dict", "checkpoint", "ckpt")
# A function with more calls than this is called with all sorts of things.


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


# A chain of assignments longer than this is worked off from its beginning, so that it takes no deep recursion.
_DEEP = 40


def bound(kinds: TypeInference, binding: Binding, spot: Spot) -> What:
    """What a variable is through one of its bindings; ``spot`` names the file and the hops left."""
    solver = kinds.solver
    if solver.nesting > _DEEP:
        _work_off(kinds, binding, spot)
    found = solver.solve((binding, spot.hops), lambda: _bound(kinds, binding, spot))
    if not found.kind and binding in kinds.shown(spot):
        found = found._replace(kind="tensor")
    if (found.is_tensor or not found.kind) and not found.family and binding in kinds.indices(spot):
        found = found._replace(family="integer", grad=False)
    if found.is_tensor and not found.layout and binding in kinds.sparse(spot):
        found = found._replace(layout="sparse")
    return found


def _work_off(kinds: TypeInference, binding: Binding, spot: Spot) -> None:
    """Answer for the bindings that one hangs on, the earliest first."""
    stack, seen = [binding], set()
    while stack:
        top = stack[-1]
        if id(top) in seen or kinds.solver.knows((top, spot.hops)):
            stack.pop()
            if top is not binding:
                kinds.solver.solve((top, spot.hops), lambda each=top: _bound(kinds, each, spot))  # type: ignore[misc]
            continue
        seen.add(id(top))
        stack.extend(_hangs_on(top))


def _hangs_on(binding: Binding) -> list[Binding]:
    if binding.how == "loop":
        return list(binding.before[:1])
    found = list(binding.before)
    if binding.value is not None and binding.env is not None:
        for each in elementwise.references(binding.value):
            found += [binding.env[root] for root in each.roots if root in binding.env]
    return found


def _bound(kinds: TypeInference, binding: Binding, spot: Spot) -> What:
    if binding.how == "param":
        assert binding.param is not None
        return parameter(kinds, spot, *binding.param)
    before = [bound(kinds, each, spot) for each in binding.before]
    if binding.how in ("join", "loop"):
        return joined(*before)
    inner = spot._replace(env=binding.env if binding.env is not None else spot.env)
    if binding.how == "is":
        assert binding.value is not None
        return _narrowed(before[0], annotated(kinds, spot.path, binding.value))
    asked = binding.value is not None and binding.how not in ("adding", "mixed")
    value = kinds.what(binding.value, inner) if asked and binding.value is not None else NOTHING
    return _by_how(kinds, binding, before, value, inner)


def _by_how(kinds: TypeInference, binding: Binding, before: list[What], value: What, inner: Spot) -> What:
    match binding.how:
        case "=" | ":":
            declared = UNKNOWN if binding.annotation is None else annotated(kinds, inner.path, binding.annotation)
            return declared if binding.how == ":" else both(value, declared)
        case "[]":
            return containers.element(value)
        case "[i]":
            return indexing.item(before[0], binding.at[0])
        case "*":
            return What("list", of=containers.element(before[0] if before else value))
        case "with":
            return containers.entered(value)
        case "in place" | "flag" | "tensor" | "ndim" | "sized":
            return _as_tensor(binding, before[0], value)
        case "adding" | "mixed" | "handed":
            return _grown(kinds, binding, before[0], inner)
        case "written":
            return _written(before[0], value)
    return elementwise.augmented(binding.how.removesuffix("="), before[0] if before else UNKNOWN, value)


def _as_tensor(binding: Binding, before: What, value: What) -> What:
    """A tensor that is changed in place, told whether it needs a gradient, or seen through a test."""
    if binding.how == "tensor":
        return _narrowed(before, What("tensor"))
    if binding.how == "sized":
        fits = (before.is_tensor or not before.kind) and (before.high is None or before.high >= binding.at[0])
        return before._replace(low=max(before.low, binding.at[0])) if fits else before
    if binding.how == "ndim" and not before.kind:  # of an array, too: who takes tensors alone was given one
        return before._replace(low=binding.at[0], high=binding.at[1])
    if not before.kind:  # if it is a tensor, it may have got a gradient
        return before._replace(grad=None) if before.grad is False else before
    if not before.is_tensor:
        return before
    match binding.how:
        case "flag":
            return before._replace(grad=False if value.value is False else None)
        case "ndim":
            return before._replace(low=binding.at[0], high=binding.at[1])
    return value if value.is_tensor else before


def _grown(kinds: TypeInference, binding: Binding, before: What, inner: Spot) -> What:
    """A container after a method that puts something into it, or a call that it is given to."""
    call = binding.value
    if not isinstance(call, Call):
        return before._replace(of=None, items=None) if before.kind in ("list", "set", "dict") else before
    if before.kind not in ("list", "set") or binding.how == "mixed" or len(call.args) != 1 or call.args[0].star:
        return before._replace(of=None, items=None) if before.kind in ("list", "set", "dict") else before
    assert isinstance(call.func, Ref)
    given = kinds.what(call.args[0].value, inner)
    added = given if call.func.path[-1] in ADDING else containers.element(given)
    return before._replace(of=joined(before.of, added) if before.of is not None and added.kind else None, items=None)


def _written(before: What, value: What) -> What:
    """A container some of whose elements are set: what it holds is not known any more; a tensor takes over a gradient."""
    if before.is_tensor:
        return before if value.grad is False or value.kind in ("int", "float", "bool") else before._replace(grad=None)
    if before.kind == "dict":
        return before._replace(of=joined(before.of, value) if before.of is not None else None)
    return before._replace(of=None, items=None) if before.kind in ("list", "nothing") else before


def _narrowed(before: What, tested: What) -> What:
    """A value that has passed a test for a type."""
    if not tested.kind:
        return before
    return both(before, tested) if before.kind == tested.kind or (before.is_tensor and tested.is_tensor) else tested


def named(kinds: TypeInference, spot: Spot, root: str, words: tuple[str, ...]) -> What:
    """What a name stands for that is no variable of the function: of the module, a closure, or from an import."""
    names = kinds.project.resolver.modules.resolve(spot.path, root)
    return joined(*(_followed(kinds, spot, name, words) for name in names)) if names else UNKNOWN


def _followed(kinds: TypeInference, spot: Spot, name: str, words: tuple[str, ...]) -> What:
    """Modules of the project are gone through to what is in them."""
    if name.endswith(":") and words:
        inside = kinds.project.resolver.modules.attribute(name[:-1], words[0]) or ()
        return joined(*(_followed(kinds, spot, each, words[1:]) for each in inside)) if inside else UNKNOWN
    if ":" not in name:
        return outside_name(".".join((name, *words)))
    found = of_name(kinds, name, spot)
    for word in words:
        found = attributes.read(kinds, found, word, spot)
    return found


def of_name(kinds: TypeInference, name: str, spot: Spot) -> What:
    """What a name of the project is: a function, a class, or a variable, by all that is assigned to it."""
    resolver = kinds.project.resolver
    if resolver.functions(name):
        return What("function", name=name)
    if resolver.classes(name):
        return What("class", name=name)
    return kinds.solver.solve(("variable", name, spot.hops), lambda: _anywhere(kinds, name, spot))


def _anywhere(kinds: TypeInference, name: str, spot: Spot) -> What:
    path = path_of(name)
    found, declared = NOTHING, UNKNOWN
    values = kinds.project.resolver.assigned(name)
    for how, value in values:
        there = kinds.spot(path, value.start, spot.hops)
        if how == ":":
            declared = annotated(kinds, path, value)
            continue
        what = kinds.what(value, there)
        if how == "[]":
            what = containers.element(what)
            what = (
                UNKNOWN if what.kind in ("tuple", "list") else what
            )  # or an element of that: the target may be one of several
        elif how == "with":
            what = containers.entered(what)
        elif how != "=":
            what = elementwise.augmented(how.removesuffix("="), found, what)
        found = joined(found, what)
    param = kinds.project.resolver.parameter(name)
    if param is not None:
        start = kinds.places(path).flow(param.function).start
        found = joined(found, bound(kinds, start[name[len(path) :]], Spot(path, start, spot.hops)))
    return both(found, declared) if values or param else UNKNOWN
