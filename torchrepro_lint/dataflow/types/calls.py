"""Types of calls: functions and classes of the project, those of libraries, and methods of values.

Two refinements are context-sensitive: a function that returns its own parameters gives what this call passes, and a
function without state returns no gradient if none comes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.types import containers, library_functions, transfer_functions
from torchrepro_lint.dataflow.types.annotations import (
    annotated,
    class_instance,
    instance_of,
    instance_of_project,
    union_members,
)
from torchrepro_lint.dataflow.types.attributes import may_return_none, return_value
from torchrepro_lint.dataflow.types.context import gradients_off
from torchrepro_lint.dataflow.types.lattice import LOADED, UNKNOWN, AbstractValue, join_all, meet, or_none
from torchrepro_lint.dataflow.types.variables import argument_for
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.syntax.binding import receiving_parameters, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Expression,
    Function,
    Operation,
    Param,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    instance_value,
    is_instance,
    is_nested,
    locals_prefix,
    path_of,
    without_brackets,
)
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


# Containers that the function may have filled.
_DISPLAYS = ("list", "set", "dict")


def refine_by_returned_parameters(
    inference: TypeInference, name: str, call: Call, point: ProgramPoint, found: AbstractValue
) -> AbstractValue:
    """The result of a function that returns its parameters, refined by the arguments of this call; ``found`` is known from
    all calls.
    """
    functions = inference.project.resolver.functions(name)
    if len(functions) != 1 or functions[0].decorators or functions[0].generator:
        return found
    values = _return_values(functions[0])
    if not values or not all(_has_parameter(functions[0], each) for each in values):
        return found
    refined = join_all(*(_refined(inference, name, functions[0], call, point, each, found) for each in values))
    known = found.kind and not found.optional
    return refined if known or not may_return_none(inference, path_of(name), functions[0]) else or_none(refined)


def _return_values(function: Function) -> list[Expression]:
    leaves = (each for each in statements(function.body) if isinstance(each, SimpleStatement) and each.kind == "return")
    return [value for each in leaves for value in each.values]


def _has_parameter(function: Function, value: Expression) -> bool:
    """Whether a value may be a parameter, by itself or in a tuple; a cheap test."""
    parts = value.items if isinstance(value, Collection) and value.kind == "tuple" else (value,)
    start = locals_prefix(function.name)
    names = {start + each.name for each in function.params if not each.kind.startswith("*")}
    return any(isinstance(each, Ref) and not each.path and not names.isdisjoint(each.roots) for each in parts)


def _refined(
    inference: TypeInference,
    name: str,
    function: Function,
    call: Call,
    point: ProgramPoint,
    value: Expression,
    found: AbstractValue,
) -> AbstractValue:
    if isinstance(value, Collection):
        known = found.items if found.items is not None and len(found.items) == len(value.items) else ()
        rest = known or (UNKNOWN,) * len(value.items)
        items = tuple(
            meet(_argument_returned(inference, name, function, call, point, each), one) if each is not None else one
            for each, one in zip(value.items, rest, strict=True)
        )
        return meet(AbstractValue("tuple", items=items), found)
    return meet(_argument_returned(inference, name, function, call, point, value), found)


def _argument_returned(
    inference: TypeInference, name: str, function: Function, call: Call, point: ProgramPoint, value: Expression
) -> AbstractValue:
    """The argument for the parameter that a value is; unknown if it is no parameter, or was rebound."""
    if not isinstance(value, Ref) or value.path or len(value.roots) != 1:
        return UNKNOWN
    path = path_of(name)
    binding = inference.flows(path).environment_at(value.start).get(value.roots[0])
    while binding is not None and binding.kind == "handed":
        binding = binding.predecessors[0]
    if binding is None or binding.param is None:
        return UNKNOWN
    _, param, position = binding.param
    if position == 0 and takes_receiver(function):
        return UNKNOWN
    one = argument_for(inference, point.path, call, function, position)
    if one is None or (one == param.default and not point.calls_left):
        return UNKNOWN
    there = inference.program_point(path, one.start, point.calls_left - 1) if one == param.default else point
    given = inference.infer(one, there)
    return given._replace(contents=None, items=None) if given.kind in _DISPLAYS else given


_WITHOUT_GRADIENT = frozenset(
    {"int", "float", "bool", "str", "none", "device", "dtype", "bytes", "path", "ndarray", "generator"}
)
_SEQUENCES = ("list", "tuple", "iterator")


def without_gradient(
    inference: TypeInference, name: str, call: Call, point: ProgramPoint, found: AbstractValue
) -> AbstractValue:
    """The result of a function, without gradient if it is no method or closure and no argument needs one."""
    if found.grad is False or found.kind not in ("", "tensor", "tuple"):
        return found
    functions = inference.project.resolver.functions(name)
    if not functions or any(each.owner or is_nested(each.name) for each in functions):
        return found
    if any(arg.star for arg in call.args) or not all(
        _arguments_without_gradient(inference, name, functions[-1], call, point)
    ):
        return found
    if found.items is not None:
        items = tuple(each._replace(grad=False) if each.is_tensor or not each.kind else each for each in found.items)
        return found._replace(items=items)
    return found._replace(grad=False)


def _arguments_without_gradient(
    inference: TypeInference, name: str, function: Function, call: Call, point: ProgramPoint
) -> Iterator[bool]:
    """For each argument, whether it or the annotation of its parameter excludes a gradient."""
    path = path_of(name)
    received = dict(receiving_parameters(function, call, bound=False))
    for arg in call.args:
        what = inference.infer(arg.value, point)
        param = None if what.kind and not what.is_tensor else received.get(arg)
        yield _has_no_gradient(what) or (param is not None and _takes_no_tensor(inference, path, param))


def _takes_no_tensor(inference: TypeInference, path: str, param: Param) -> bool:
    """Whether a parameter takes no tensor: by its annotation, or by the names ``device`` and ``dtype``."""
    if param.annotation is None:
        return param.name in ("device", "dtype")
    return all(
        annotated(inference, path, each).kind in _WITHOUT_GRADIENT
        for each in union_members(inference, path, param.annotation)
    )


def _has_no_gradient(what: AbstractValue) -> bool:
    """Whether an argument needs no gradient."""
    if what.kind in _SEQUENCES:
        return all(map(_has_no_gradient, what.items)) if what.items is not None else _has_no_gradient(what.element)
    return what.kind in _WITHOUT_GRADIENT or what.kind == "nothing" or what.grad is False


_CONTAINERS = ("set", "frozenset", "list", "tuple", "dict", "str", "path", "file")
_OF_LIBRARIES = frozenset(
    {"ndarray", "series", "dataframe", "dtype", "device", "iterator", "int", "float", "bool", "bytes"}
)


def call_value(inference: TypeInference, call: Call, point: ProgramPoint) -> AbstractValue:
    """The type of a call's result."""
    receiver, word = _receiver(inference, call.func, point)
    if receiver is not None and receiver.kind not in ("", "function", "class"):
        found = _of_method(inference, receiver, word, call, point)
        if found is not None:
            return found
    called = inference.infer(call.func, point)
    if called.kind in ("module", "instance", "dataset", "loader"):
        return _as_recorded(inference, _of_object(inference, called, call, point), call, point)
    if called.kind == "function" and called.name:
        return _of_function(inference, called.name, call, point)
    if called.kind == "class" and called.name:
        return _constructed(inference, called.name, call, point)
    if called.kind == "nothing":
        return called
    names = inference.project.names(point.path, call.func)
    found = join_all(*(_of_name(inference, name, call, point) for name in names)) if names else UNKNOWN
    if found == UNKNOWN and receiver is not None and not receiver.kind:
        if word == "state_dict" and not call.args:
            return LOADED
        found = transfer_functions.method_of_unknown(inference, receiver, word, call, point)
    return found if names or word in _GETTERS else _as_recorded(inference, found, call, point)


# Methods that give what a container has.
_GETTERS = frozenset({"get", "pop", "setdefault"})


def _as_recorded(inference: TypeInference, found: AbstractValue, call: Call, point: ProgramPoint) -> AbstractValue:
    """What an object computes of its arguments, which needs no gradient under ``no_grad``."""
    if found == UNKNOWN and call.args and gradients_off(inference, point):
        return found._replace(grad=False)
    return transfer_functions.under_gradient_mode(inference, found, point)


def _receiver(inference: TypeInference, func: Expression, point: ProgramPoint) -> tuple[AbstractValue | None, str]:
    match func:
        case Attribute(value=value, name=word):
            return inference.infer(value, point), word
        case Ref(start=start, roots=roots, path=(*before, word), base_end=end):
            return inference.infer(Ref(start, end, roots, tuple(before), end), point), word
    return None, ""


def _of_method(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue | None:
    """The result of a method of a library type; None if it must be looked up in the project's classes."""
    if receiver.kind == "nothing":
        return receiver
    if receiver.is_tensor:
        return transfer_functions.method_value(inference, receiver, word, call, point)
    if receiver.kind == "loaded":
        return transfer_functions.method_of_loaded(inference, receiver, word, call, point)
    if word == "state_dict" and receiver.kind in ("module", "instance"):
        return LOADED
    if receiver.kind in _CONTAINERS:
        return containers.method_value(
            receiver, word, [inference.infer(arg.value, point) for arg in call.args if not arg.star]
        )
    if receiver.kind in _OF_LIBRARIES:
        return library_functions.method_value(receiver, word)
    if receiver.kind == "module" and word in library_functions.FLUENT:
        return receiver
    if receiver.kind == "generator":
        return library_functions.of_generator(receiver, word, call)
    return None


def _of_name(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue:
    if not in_project(name):
        return _of_function(inference, name, call, point) if name == without_brackets(name) else UNKNOWN
    if is_instance(name):
        return _of_object(inference, instance_of_project(inference, class_of(name)), call, point)
    if inference.project.resolver.classes(name):
        return _constructed(inference, name, call, point)
    return _of_function(inference, name, call, point)


def _of_function(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue:
    if in_project(name):
        found = refine_by_returned_parameters(inference, name, call, point, return_value(inference, name, point))
        found = without_gradient(inference, name, call, point, found)
        return _as_recorded(inference, found, call, point) if _computes(inference, name) else found
    if name.startswith("torch."):
        of_torch = transfer_functions.function_value(inference, name, call, point)
        if of_torch is not None:
            return of_torch
    return library_functions.function_value(inference, name, call, point)


# Functions by which what is called under ``no_grad`` records gradients again.
_RECORDING = frozenset({"enable_grad", "set_grad_enabled"})


def _returned_parts(value: Expression) -> Iterator[Expression]:
    """What a returned value is, or may be an item or an attribute of: ``self.tables`` of ``self.tables[i]``, and of ``getattr(self, word)``."""
    match value:
        case Subscript(value=inner) | Attribute(value=inner):
            yield from _returned_parts(inner)
        case Collection(items=items):
            yield from (each for item in items if item is not None for each in _returned_parts(item))
        case Operation(op="if" | "or" | "and", operands=operands):
            yield from (each for item in operands for each in _returned_parts(item))
        case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(Arg(value=Ref() as held), *_)):
            yield held._replace(path=(*held.path, "*"))
        case _:
            yield value


def _computes(inference: TypeInference, name: str) -> bool:
    """Whether a function computes its result while it is called, under the grad mode of its caller: it is no generator, and returns
    nothing that may be kept elsewhere, as an attribute or an element of one.
    """
    definitions = inference.project.resolver.functions(name)
    returned = [value for each in definitions for value in _return_values(each)]
    return (
        bool(returned)
        and not any(each.generator for each in definitions)
        and not any(isinstance(each, Ref) and each.path for value in returned for each in _returned_parts(value))
        and _RECORDING.isdisjoint(inference.project.resolver.modules.summary(path_of(name)).calls)
    )


def _constructed(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue:
    """A new object, with the call that constructs it."""
    if in_project(name):
        found = instance_of_project(inference, name)
        return found._replace(constructor_call=(point.path, call))
    known = library_functions.constructor_value(inference, name, call, point)
    if known is None and name.startswith("torch."):
        known = transfer_functions.constructor_value(inference, name, call, point)
    if known is not None:
        return known
    made = instance_of(name)
    return (
        made._replace(constructor_call=(point.path, call))
        if made.kind in ("module", "dataset", "loader", "instance", "generator")
        else made
    )


def _of_object(inference: TypeInference, called: AbstractValue, call: Call, point: ProgramPoint) -> AbstractValue:
    """The result of calling an object: of its ``__call__`` or ``forward``, or of a torch layer. One whose class is not known, or only by
    the base class that an annotation gives, may be any of those that lead there.
    """
    if not in_project(called.name) and (called.name in _UNNAMED or is_abstract(instance_value(called.name))):
        objects = inference.project.resolver.objects(point.path, call.func)
        classes = [class_of(each) for each in objects.names if is_instance(each)]
        if objects.complete and len(classes) == len(objects.names) <= limits.MAX_SUBCLASSES:
            made = (class_instance(inference, each) for each in classes)
            found = [transfer_functions.module_value(inference, each, call, point) for each in made]
            # Where they differ in rank, what else is known of the call says more.
            same = len({(each.min_ndim, each.max_ndim) for each in found}) == 1
            return join_all(*found) if same else UNKNOWN
    known = in_project(called.name) or called.kind == "module"
    return transfer_functions.module_value(inference, called, call, point) if known else UNKNOWN


# The names of a value whose class is not known: none, or one of several.
_UNNAMED = ("", "?")
