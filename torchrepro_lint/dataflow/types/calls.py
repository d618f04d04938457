"""Functions that give back what they are given: ``model, optimizer = restore(model, optimizer)``.

What one call gives is then what that call passes, whatever others do.

Functions that hand no gradient on: they keep nothing of their own, and are given nothing that needs one.

What calls give: functions and classes of the project, those of libraries, methods of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import containers, library_functions, transfer_functions
from torchrepro_lint.dataflow.types.annotations import alternatives, annotated, instance, instance_of
from torchrepro_lint.dataflow.types.attributes import returned
from torchrepro_lint.dataflow.types.lattice import LOADED, UNKNOWN, What, both, joined
from torchrepro_lint.dataflow.types.variables import argument
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Expression,
    Function,
    Leave,
    Param,
    Ref,
    path_of,
)
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Binding, Spot


# What a function may have put something into.
_DISPLAYS = ("list", "set", "dict")


def given_back(kinds: TypeInference, name: str, call: Call, spot: Spot, found: What) -> What:
    """What a call of a function of the project gives, of which ``found`` is known from all calls."""
    functions = kinds.project.resolver.functions(name)
    if len(functions) != 1 or functions[0].decorators or functions[0].generator:
        return found
    values = _return_values(functions[0])
    if not values or not all(_has_parameter(functions[0], each) for each in values):
        return found
    return joined(*(_of(kinds, name, functions[0], call, spot, each, found) for each in values))


def _return_values(function: Function) -> list[Expression]:
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
    return given._replace(of=None, items=None) if given.kind in _DISPLAYS else given


def _is_self(function: Function, binding: Binding) -> bool:
    return bool(function.owner) and binding.param is not None and binding.param[2] == 0


_PLAIN = frozenset({"int", "float", "bool", "str", "none", "device", "dtype", "bytes", "path", "ndarray", "generator"})
_SEQUENCES = ("list", "tuple", "iterator")


def without_gradient(kinds: TypeInference, name: str, call: Call, spot: Spot, found: What) -> What:
    """What a function of the project gives, without a gradient where it is no method and none comes in."""
    if found.grad is False or found.kind not in ("", "tensor", "tuple"):
        return found
    functions = kinds.project.resolver.functions(name)
    if not functions or any(each.owner or ".<locals>." in each.name for each in functions):
        return found
    if any(arg.star for arg in call.args) or not all(_brings_none(kinds, name, functions[-1], call, spot)):
        return found
    if found.items is not None:
        items = tuple(each._replace(grad=False) if each.is_tensor or not each.kind else each for each in found.items)
        return found._replace(items=items)
    return found._replace(grad=False)


def _brings_none(kinds: TypeInference, name: str, function: Function, call: Call, spot: Spot) -> Iterator[bool]:
    """Of each argument whether no gradient can come in with it, as far as it, or its parameter's annotation, tells."""
    path = path_of(name)
    for position, arg in enumerate(call.args):
        what = kinds.what(arg.value, spot)
        param = None if what.kind and not what.is_tensor else _parameter(function, position, arg.keyword)
        yield _is_free(what) or (param is not None and _is_plain(kinds, path, param))


def _parameter(function: Function, position: int, keyword: str | None) -> Param | None:
    """The parameter that an argument is for."""
    if keyword is not None:
        return next((each for each in function.params if each.name == keyword), None)
    at = function.params[position] if position < len(function.params) else None
    return at if at is not None and at.kind in ("", "/") else None


def _is_plain(kinds: TypeInference, path: str, param: Param) -> bool:
    """Whether a parameter takes no tensor: by its annotation, or as it is called ``device`` or ``dtype``."""
    if param.annotation is None:
        return param.name in ("device", "dtype")
    return all(annotated(kinds, path, each).kind in _PLAIN for each in alternatives(kinds, path, param.annotation))


def _is_free(what: What) -> bool:
    """Whether no gradient can come in with an argument."""
    if what.kind in _SEQUENCES:
        return all(map(_is_free, what.items)) if what.items is not None else _is_free(what.element)
    return what.kind in _PLAIN or what.kind == "nothing" or what.grad is False


_CONTAINERS = ("set", "frozenset", "list", "tuple", "dict", "str", "path")


def result(kinds: TypeInference, call: Call, spot: Spot) -> What:
    """What a call gives."""
    receiver, word = _receiver(kinds, call.func, spot)
    if receiver is not None and receiver.kind not in ("", "function", "class"):
        found = _of_method(kinds, receiver, word, call, spot)
        if found is not None:
            return found
    called = kinds.what(call.func, spot)
    if called.kind in ("module", "instance", "dataset", "loader"):
        return _of_object(kinds, called, call, spot)
    if called.kind == "function" and called.name:
        return _of_function(kinds, called.name, call, spot)
    if called.kind == "class" and called.name:
        return _made(kinds, called.name, call, spot)
    if called.kind == "nothing":
        return called
    names = kinds.project.names(spot.path, call.func)
    found = joined(*(_of_name(kinds, name, call, spot) for name in names)) if names else UNKNOWN
    if found == UNKNOWN and receiver is not None and not receiver.kind:
        return transfer_functions.by_word(kinds, receiver, word, call, spot)
    return found


def _receiver(kinds: TypeInference, func: Expression, spot: Spot) -> tuple[What | None, str]:
    match func:
        case Attribute(value=value, name=word):
            return kinds.what(value, spot), word
        case Ref(start=start, roots=roots, path=(*before, word), base_end=end):
            return kinds.what(Ref(start, end, roots, tuple(before), end), spot), word
    return None, ""


def _of_method(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What | None:
    """What a method of a value gives; None where it is looked up in the project's classes."""
    if receiver.kind == "nothing":
        return receiver
    if receiver.is_tensor:
        return transfer_functions.method(kinds, receiver, word, call, spot)
    if receiver.kind == "loaded":
        return transfer_functions.method_of_loaded(kinds, receiver, word, call, spot)
    if word == "state_dict" and receiver.kind in ("module", "instance"):
        return LOADED
    if receiver.kind in _CONTAINERS:
        return containers.method(receiver, word, [kinds.what(arg.value, spot) for arg in call.args if not arg.star])
    if receiver.kind in (
        "ndarray",
        "series",
        "dataframe",
        "dtype",
        "device",
        "iterator",
        "int",
        "float",
        "bool",
        "bytes",
    ):
        return library_functions.method(receiver, word)
    if receiver.kind == "module" and word in library_functions.FLUENT:
        return receiver
    if receiver.kind == "generator":
        return library_functions.of_generator(receiver, word, call)
    return None


def _of_name(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What:
    if ":" not in name:
        return _of_function(kinds, name, call, spot) if "()" not in name and "[]" not in name else UNKNOWN
    if name.endswith("()"):
        return _of_object(kinds, instance(kinds, name[:-2]), call, spot)
    if kinds.project.resolver.classes(name):
        return _made(kinds, name, call, spot)
    return _of_function(kinds, name, call, spot)


def _of_function(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What:
    if ":" in name:
        found = given_back(kinds, name, call, spot, returned(kinds, name, spot))
        return without_gradient(kinds, name, call, spot, found)
    if name.startswith("torch."):
        of_torch = transfer_functions.function(kinds, name, call, spot)
        if of_torch is not None:
            return of_torch
    return library_functions.result(kinds, name, call, spot)


def _made(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What:
    """An object, with the call that made it."""
    if ":" in name:
        found = instance(kinds, name)
        return found._replace(made=(spot.path, call))
    known = library_functions.constructed(kinds, name, call, spot)
    if known is None and name.startswith("torch."):
        known = transfer_functions.made(kinds, name, call, spot)
    if known is not None:
        return known
    made = instance_of(name)
    return (
        made._replace(made=(spot.path, call))
        if made.kind in ("module", "dataset", "loader", "instance", "generator")
        else made
    )


def _of_object(kinds: TypeInference, called: What, call: Call, spot: Spot) -> What:
    """What calling an object gives: its ``__call__`` or ``forward``, or a layer of torch's."""
    if ":" in called.name:
        methods = kinds.project.resolver.call_methods(f"{called.name}()")
        return joined(*(returned(kinds, each, spot) for each in methods)) if methods else UNKNOWN
    return transfer_functions.layer(kinds, called, call, spot) if called.kind == "module" else UNKNOWN


def given(call: Call, position: int, keyword: str) -> Expression | None:
    """The expression that is given for a parameter by position or keyword; stars before it hide it."""
    plain: list[Arg] = []
    for arg in call.args:
        if arg.keyword == keyword:
            return arg.value
        if arg.star:
            break
        if arg.keyword is None:
            plain.append(arg)
    keywords = (arg.value for arg in call.args if arg.keyword == keyword)
    return plain[position].value if 0 <= position < len(plain) else next(keywords, None)
