"""Functions that hand no gradient on: they keep nothing of their own, and are given nothing that needs one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.infer.annotations import alternatives, annotated
from torchrepro_lint.infer.what import What
from torchrepro_lint.syntax.nodes import Call, Function, Param, path_of

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

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
