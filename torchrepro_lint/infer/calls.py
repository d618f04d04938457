"""What calls give: functions and classes of the project, those of libraries, methods of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer import containers, functions, library, tensors
from torchrepro_lint.infer.handed_back import given_back
from torchrepro_lint.infer.handing import without_gradient
from torchrepro_lint.infer.instances import instance
from torchrepro_lint.infer.outside import instance_of
from torchrepro_lint.infer.returns import returned
from torchrepro_lint.infer.what import LOADED, UNKNOWN, What, joined
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Expression, Ref

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

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
        return tensors.by_word(kinds, receiver, word, call, spot)
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
        return tensors.method(kinds, receiver, word, call, spot)
    if receiver.kind == "loaded":
        return tensors.method_of_loaded(kinds, receiver, word, call, spot)
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
        return library.method(receiver, word)
    if receiver.kind == "module" and word in functions.FLUENT:
        return receiver
    if receiver.kind == "generator":
        return functions.of_generator(receiver, word, call)
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
        of_torch = tensors.function(kinds, name, call, spot)
        if of_torch is not None:
            return of_torch
    return functions.result(kinds, name, call, spot)


def _made(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What:
    """An object, with the call that made it."""
    if ":" in name:
        found = instance(kinds, name)
        return found._replace(made=(spot.path, call))
    known = functions.constructed(kinds, name, call, spot)
    if known is None and name.startswith("torch."):
        known = tensors.made(kinds, name, call, spot)
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
    return tensors.layer(kinds, called, call, spot) if called.kind == "module" else UNKNOWN


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
