"""Types of variables and parameters: by bindings, by annotations, and by what every call of the project passes.

Calls that do not name the function count as well: of a loss that is passed as an argument, and of functions in
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.types import attributes, containers, operators
from torchrepro_lint.dataflow.types.annotations import annotated, instance_of_project, library_value
from torchrepro_lint.dataflow.types.bindings import Binding, ProgramPoint
from torchrepro_lint.dataflow.types.context import gradients_off
from torchrepro_lint.dataflow.types.lattice import (
    BOTTOM,
    LOADED,
    TYPES,
    UNKNOWN,
    AbstractValue,
    join_all,
    meet,
    not_none,
    or_none,
)
from torchrepro_lint.query.database import query
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import is_classmethod, takes_receiver
from torchrepro_lint.syntax.nodes import Call, Collection, Expression, Function, Param, Ref
from torchrepro_lint.syntax.qualified_names import in_project, instance_value, is_module, path_of
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import is_none

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.resolve.call_sites import CallPlace


# Operations whose findings depend on rank or gradient; files without them are skipped.
_RANK_DEPENDENT = (
    *("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss", "nll_loss2d", "index_select"),
)
# Names of losses that are passed as arguments.
LOSS_NAMES = lazy_pattern(r"(?i)(?=\w*\Z)(?:\w*(crit|cost|loss|nll|cross_?entropy|objective)\w*|ce)")


def indirect_calls(project: ValueFlow, name: str, function: Function) -> list[tuple[str, Call]]:
    """The higher-order calls, each with its file, of the ``forward`` or ``__call__`` of an object, or of a function that is only named
    in tables; none if there may be others, or if no finding depends on their arguments.
    """
    calls = project.files[path_of(name)].summary.calls
    if not any(has_word(calls, word) for word in _RANK_DEPENDENT):
        return []
    if not function.owner:
        found = _calls_known(project, name) if _is_in_tables_alone(project, name, function) else iter(())
    elif function.name.endswith((".forward", ".__call__")):
        found = _of_object(project, name)
    else:
        return []
    return [(path, call) for path, call in islice(found, limits.MAX_TYPED_CALLS + 1)]


def known_from_indirect(function: Function, passed: AbstractValue) -> AbstractValue:
    """What higher-order calls prove of a parameter: of a method only the rank, since its object may be called elsewhere."""
    if passed.kind not in ("", "tensor", "parameter"):
        return UNKNOWN
    whole = "" if function.owner else passed.kind
    return AbstractValue(whole, min_ndim=passed.min_ndim, max_ndim=passed.max_ndim, grad=passed.grad if whole else None)


def _calls_known(project: ValueFlow, name: str) -> Iterator[tuple[str, Call]]:
    for path, places in project.calls_of(name):
        yield from ((path, _call(project, path, each)) for each in places)


def _of_object(project: ValueFlow, name: str) -> Iterator[tuple[str, Call]]:
    """The calls of an object of the class, and of a loss that is passed as an argument."""
    yield from _calls_known(project, name)
    made = instance_value(project.resolver.owner(name))
    for word in filter(LOSS_NAMES.fullmatch, project.unresolved_words()):
        for path, places in project.unresolved_calls(word):
            for each in places:
                call = _call(project, path, each)
                if isinstance(call.func, Ref) and made in project.resolver.names_from_callers(path, call.func):
                    yield path, call


def _call(project: ValueFlow, path: str, place: CallPlace) -> Call:
    return project.called_at(path + place.function, place.start, place.end).call


def _is_in_tables_alone(project: ValueFlow, name: str, function: Function) -> bool:
    """Whether a function is only called directly, or named as an item of displays."""
    uses = project.uses
    if function.decorators or not project.resolver.call_graph.is_address_taken(name):
        return False
    for path, read, words in uses.of_definition(path_of(name), function.name):
        point = uses.spots(path).of(read)
        parent = point.parent if point is not None else None
        if words or not (_is_called(parent, read) or isinstance(parent, Collection)):
            return False
    return True


def _is_called(parent: Expression | None, read: Expression) -> bool:
    return isinstance(parent, Call) and parent.func == read


# Parameters of such names hold loaded data: tensors without gradient.
_LOADED = ("state_dict", "checkpoint", "ckpt")


def parameter_value(
    inference: TypeInference, point: ProgramPoint, function: Function, param: Param, position: int
) -> AbstractValue:
    """The type of a parameter at the start of its function."""
    name = f"{point.path}{function.name}"
    if position == 0 and takes_receiver(function) and not param.kind.startswith("*"):
        owner = f"{point.path}{function.owner}"
        return AbstractValue("class", name=owner) if is_classmethod(function) else instance_of_project(inference, owner)
    declared = UNKNOWN if param.annotation is None else annotated(inference, point.path, param.annotation)
    if declared.kind in ("", "dict") and param.name.endswith(_LOADED):
        return LOADED
    if declared.kind in ("", "tensor") and not declared.family and param.name == "edge_index":
        declared = declared._replace(family="integer", grad=False)  # the name in graph libraries
    if param.kind.startswith("*"):
        if param.kind == "*" and declared == UNKNOWN and point.calls_left:
            declared = _rest_from_callers(inference, point, name, function, position)
        return AbstractValue("tuple" if param.kind == "*" else "dict", contents=declared)
    passed = _from_callers(inference, point, name, function, position) if point.calls_left else UNKNOWN
    if is_none(param.default) and not passed.kind:
        declared = or_none(declared)
    return meet(declared, passed)


def _from_callers(
    inference: TypeInference, point: ProgramPoint, name: str, function: Function, position: int
) -> AbstractValue:
    """The join of all calls' arguments for a parameter; unknown if not all calls are known."""
    callers = inference.project.resolver.call_graph
    calls = list(islice(callers.of(name, function), limits.MAX_TYPED_CALLS + 1))
    if not 0 < len(calls) <= limits.MAX_TYPED_CALLS or callers.has_unknown_callers(name, function):
        calls = indirect_calls(inference.project, name, function)
        if not 0 < len(calls) <= limits.MAX_TYPED_CALLS:
            return UNKNOWN
        return known_from_indirect(function, _joined_arguments(inference, point, calls, function, position))
    return _joined_arguments(inference, point, calls, function, position)


def _rest_from_callers(
    inference: TypeInference, point: ProgramPoint, name: str, function: Function, position: int
) -> AbstractValue:
    """The join of what all calls pass for ``*values``; unknown if not all calls are known."""
    callers = inference.project.resolver.call_graph
    calls = list(islice(callers.of(name, function), limits.MAX_TYPED_CALLS + 1))
    unknown = any(arg.star for _, call in calls for arg in call.args)
    if not 0 < len(calls) <= limits.MAX_TYPED_CALLS or unknown or callers.has_unknown_callers(name, function):
        return UNKNOWN
    passed = (
        inference.infer(arg.value, inference.program_point(path, arg.value.start, point.calls_left - 1))
        for path, call in calls
        for arg, param in callers.receiving(path, call, function)
        if param == function.params[position]
    )
    return join_all(*passed)


def _joined_arguments(
    inference: TypeInference,
    point: ProgramPoint,
    calls: list[tuple[str, Call]],
    function: Function,
    position: int,
) -> AbstractValue:
    """The join of the arguments of some calls; unknown if one may pass anything."""
    found = BOTTOM
    for path, call in calls:
        one = argument_for(inference, path, call, function, position)
        if one is None:
            return UNKNOWN
        is_default = one == function.params[position].default
        there = inference.program_point(point.path if is_default else path, one.start, point.calls_left - 1)
        given = inference.infer(one, there)
        off = not is_default and gradients_off(inference, there)
        found = join_all(found, given._replace(grad=False) if off else given)
        if found == UNKNOWN:
            break
    return found


def argument_for(
    inference: TypeInference, path: str, call: Call, function: Function, position: int
) -> Expression | None:
    """The argument of a call for a parameter, or the default; None if it cannot be determined."""
    arg = inference.project.resolver.call_graph.argument(path, call, function, position)
    return function.params[position].default if arg is None else None if arg.star else arg.value


def variable_value(inference: TypeInference, binding: Binding, point: ProgramPoint) -> AbstractValue:
    """The type of a variable by one of its bindings; ``point`` has the file and the calls left."""
    if inference.solver.nesting > limits.MAX_TYPED_ASSIGNMENTS:
        _solve_dependencies(inference, binding, point)
    found = inference.types.of((binding, point.calls_left), lambda: _variable_value(inference, binding, point))
    if not found.kind and binding in inference.tensors_by_use(point):
        found = found._replace(kind="tensor")
    if (found.is_tensor or not found.kind) and not found.family and binding in inference.indices_by_use(point):
        found = found._replace(family="integer", grad=False)
    if found.is_tensor and not found.layout and binding in inference.sparse_by_use(point):
        found = found._replace(layout="sparse")
    return found


def _solve_dependencies(inference: TypeInference, binding: Binding, point: ProgramPoint) -> None:
    """Solve the dependencies of a binding, the earliest first."""
    stack, seen = [binding], set()
    while stack:
        top = stack[-1]
        if top in seen or inference.solver.knows(inference.types, (top, point.calls_left)):
            stack.pop()
            if top is not binding:
                key = (top, point.calls_left)
                inference.types.of(key, lambda each=top: _variable_value(inference, each, point))
            continue
        seen.add(top)
        stack.extend(_dependencies(top))


def _dependencies(binding: Binding) -> list[Binding]:
    if binding.kind == "loop":
        return list(binding.predecessors[:1])
    found = list(binding.predecessors)
    if binding.value is not None and binding.env is not None:
        for each in operators.references(binding.value):
            found += [binding.env[root] for root in each.roots if root in binding.env]
    return found


def _variable_value(inference: TypeInference, binding: Binding, point: ProgramPoint) -> AbstractValue:
    if binding.kind == "param":
        assert binding.param is not None
        return parameter_value(inference, point, *binding.param)
    before = [variable_value(inference, each, point) for each in binding.predecessors]
    if binding.kind == "join":
        return join_all(*(not_none(each) if given else each for each, given in zip(before, binding.at, strict=True)))
    if binding.kind == "loop":
        return join_all(*before)
    inner = point._replace(env=binding.env if binding.env is not None else point.env)
    if binding.kind == "is":
        assert binding.value is not None
        return _narrow(before[0], annotated(inference, point.path, binding.value))
    asked = binding.value is not None and binding.kind not in ("adding", "mixed")
    value = inference.infer(binding.value, inner) if asked and binding.value is not None else BOTTOM
    return _by_kind(inference, binding, before, value, inner)


def _by_kind(
    inference: TypeInference, binding: Binding, before: list[AbstractValue], value: AbstractValue, inner: ProgramPoint
) -> AbstractValue:
    match binding.kind:
        case "=" | ":":
            declared = UNKNOWN if binding.annotation is None else annotated(inference, inner.path, binding.annotation)
            return declared if binding.kind == ":" else meet(value, declared)
        case "[]":
            return containers.element(value)
        case "[i]":
            place, count = binding.at
            return containers.item(_of_length(inference, binding.predecessors[0], before[0], count, inner), place)
        case "*":
            return AbstractValue("list", contents=containers.element(before[0] if before else value))
        case "with":
            return containers.entered(value)
        case "dtype":
            return _of_dtype(before[0], value)
        case "in place" | "flag" | "tensor" | "ndim" | "sized":
            return _as_tensor(binding, before[0], value)
        case "adding" | "mixed" | "handed":
            return containers.after_insertion(inference, binding, before[0], inner)
        case "written":
            return containers.after_element_write(before[0], value)
    return operators.augmented_value(binding.kind.removesuffix("="), before[0] if before else UNKNOWN, value)


def _of_length(
    inference: TypeInference, unpacked: Binding, what: AbstractValue, count: int, point: ProgramPoint
) -> AbstractValue:
    """What is unpacked into so many variables: of a function's results those of this length, since the others cannot be."""
    call = unpacked.value
    if what.items is not None or what.kind not in ("tuple", "list", "") or not isinstance(call, Call) or not count:
        return what
    names = inference.project.resolver.names(point.path, call.func)
    if not names or not all(map(inference.project.resolver.functions, names)):
        return what
    found = join_all(*(attributes.return_value(inference, name, point, count) for name in names))
    return what if found.items is None else found


def _of_dtype(before: AbstractValue, tested: AbstractValue) -> AbstractValue:
    """A value whose dtype was compared with another, or with several."""
    found = tested if tested.kind == "dtype" else tested.element
    if found.kind != "dtype" or not (before.is_tensor or not before.kind):
        return before
    known = before._replace(dtype=found.dtype, family=found.family)
    return known._replace(grad=False) if known.integral else known


def _as_tensor(binding: Binding, before: AbstractValue, value: AbstractValue) -> AbstractValue:
    """A tensor after an in-place method, a change of its gradient flag, or a test."""
    if binding.kind == "tensor":
        return _narrow(before, AbstractValue("tensor"))
    if binding.kind == "sized":
        fits = (before.is_tensor or not before.kind) and (before.max_ndim is None or before.max_ndim >= binding.at[0])
        return before._replace(min_ndim=max(before.min_ndim, binding.at[0])) if fits else before
    if binding.kind == "ndim" and not before.kind:  # holds for an array as well
        return before._replace(min_ndim=binding.at[0], max_ndim=binding.at[1])
    if not before.kind:  # if it is a tensor, it may have a gradient now
        return before._replace(grad=None) if before.grad is False else before
    if not before.is_tensor:
        return before
    match binding.kind:
        case "flag":
            return before._replace(grad=False if value.value is False else None)
        case "ndim":
            return before._replace(min_ndim=binding.at[0], max_ndim=binding.at[1])
    return value if value.is_tensor else before


def _narrow(before: AbstractValue, tested: AbstractValue) -> AbstractValue:
    """A value narrowed by a type test."""
    if not tested.kind:
        return before
    return meet(before, tested) if before.kind == tested.kind or (before.is_tensor and tested.is_tensor) else tested


def global_value(inference: TypeInference, point: ProgramPoint, root: str, words: tuple[str, ...]) -> AbstractValue:
    """The type of a name that is no local variable: of the module, a closure, or imported."""
    names = [*inference.project.resolver.modules.referents(point.path, (root,), words)]
    return join_all(*(_member_of(inference, point, name, rest) for name, rest in names)) if names else UNKNOWN


def _member_of(inference: TypeInference, point: ProgramPoint, name: str, words: tuple[str, ...]) -> AbstractValue:
    """The type of a dotted name, through modules of the project."""
    if is_module(name) and words:
        inside = inference.project.resolver.modules.attribute(name[:-1], words[0]) or ()
        return join_all(*(_member_of(inference, point, each, words[1:]) for each in inside)) if inside else UNKNOWN
    if not in_project(name):
        return library_value(".".join((name, *words)))
    found = definition_value(inference, name, point)
    for word in words:
        found = attributes.attribute_value(inference, found, word, point)
    return found


def definition_value(inference: TypeInference, name: str, point: ProgramPoint) -> AbstractValue:
    """The type of a definition of the project: a function, a class, or a variable by all its assignments."""
    resolver = inference.project.resolver
    if resolver.functions(name):
        return AbstractValue("function", name=name)
    if resolver.classes(name):
        return AbstractValue("class", name=name)
    return _flow_insensitive(inference, name, point.calls_left)


@query(cutoff=True, cycle=TYPES)
def _flow_insensitive(inference: TypeInference, name: str, calls_left: int) -> AbstractValue:
    path = path_of(name)
    found, declared = BOTTOM, UNKNOWN
    values = inference.project.resolver.assigned(name)
    for how, value in values:
        there = inference.program_point(path, value.start, calls_left)
        if how == ":":
            declared = annotated(inference, path, value)
            continue
        what = inference.infer(value, there)
        if how == "[]":
            what = containers.element(what)
            what = (
                UNKNOWN if what.kind in ("tuple", "list") else what
            )  # or an element of it: the target may be destructured
        elif how == "with":
            what = containers.entered(what)
        elif how != "=":
            what = operators.augmented_value(how.removesuffix("="), found, what)
        found = join_all(found, what)
    param = inference.project.resolver.parameter(name)
    if param is not None:
        start = inference.flows(path).flow(param.function).start
        found = join_all(
            found, variable_value(inference, start[name[len(path) :]], ProgramPoint(path, start, calls_left))
        )
    return meet(found, declared) if values or param else UNKNOWN
