"""The catalogue's parameters and defaults are those of the installed torch."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import installed
from torchrepro_lint.catalogue.catalogue import consumers, signatures
from torchrepro_lint.catalogue.rows import Signature

torch = installed.torch()

# Functions that torch has under another name in its dispatcher.
_DISPATCHED = {"torch.sparse.mm": "_sparse_mm", "torch.sparse.addmm": "_sparse_addmm", "torch.spmm": "mm"}
# Called with sizes as star arguments; or subscripted.
_OPEN = {"torch.empty", "torch.Tensor.resize_", "torch.Tensor.__getitem__"}
SPELLINGS = sorted(
    {one for ones in signatures().values() for one in ones if one.name.startswith("torch.") and one.name not in _OPEN}
)
CONSUMERS = sorted(
    {
        row.signature
        for name in consumers().names
        for row in consumers().of(name)
        if row.signature.name.startswith("torch.") and (row.signature.parameters or row.signature.defaults)
    }
)


@pytest.mark.parametrize("signature", SPELLINGS + CONSUMERS, ids=lambda one: one.name)
def test_a_spelling_has_the_parameters_of_torch(signature: Signature) -> None:
    ways = list(torch_signatures(signature.name))
    assert any(matches(signature, positional, keywords, defaults) for positional, keywords, defaults in ways), ways


def matches(signature: Signature, positional: list[str], keywords: list[str], defaults: dict[str, Any]) -> bool:
    own = [name for name, _ in signature.defaults if name in (*signature.parameters, *signature.keywords)]
    return (
        list(signature.parameters) == positional[: len(signature.parameters)]
        and set(signature.keywords) <= {*keywords, *positional}
        and all(_equal(defaults.get(name), dict(signature.defaults)[name]) for name in own)
    )


def torch_signatures(name: str) -> list[tuple[list[str], list[str], dict[str, Any]]]:
    """Positional parameters (a method's without the tensor), keyword-only ones and defaults, in each overload."""
    found = resolve(name)
    method = name.startswith("torch.Tensor.")
    if inspect.isclass(found) or inspect.isroutine(found):
        try:
            return [_python(found, method)]
        except (TypeError, ValueError):
            pass
    return [_schema(schema, method) for schema in _schemas(name)]


def resolve(name: str) -> Any:
    value: Any = torch
    for word in name.split(".")[1:]:
        value = getattr(value, word)
    return value


def _python(found: Any, method: bool) -> tuple[list[str], list[str], dict[str, Any]]:
    function = found if not inspect.isclass(found) else found.__init__
    parameters = list(inspect.signature(function).parameters.values())[bool(inspect.isclass(found) or method) :]
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        if inspect.isclass(found) and issubclass(found, torch.nn.RNNBase):
            return _python(torch.nn.RNNBase, method=False)
        raise TypeError("a dispatcher")
    return (
        [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD],
        [one.name for one in parameters if one.kind is one.KEYWORD_ONLY],
        {one.name: one.default for one in parameters if one.default is not one.empty},
    )


def _schemas(name: str) -> list[Any]:
    short = _DISPATCHED.get(name) or name.rpartition(".")[2]
    twin = getattr(torch.nn.functional, f"{short}_with_indices", None)
    if twin is not None and name.startswith("torch.nn.functional."):
        return [twin]
    return list(torch._C._jit_get_schemas_for_operator(f"aten::{short}"))


def _schema(schema: Any, method: bool) -> tuple[list[str], list[str], dict[str, Any]]:
    if inspect.isfunction(schema):
        return _python(schema, method=False)
    positional = ["input" if one.name == "self" else one.name for one in schema.arguments if not one.kwarg_only]
    keywords = [one.name for one in schema.arguments if one.kwarg_only]
    defaults = {one.name: one.default_value for one in schema.arguments if one.has_default_value()}
    # torch.sort's stable=None is False; the overload that has it takes the rest by name in C++ only.
    if "stable" in keywords:
        positional += [keyword for keyword in keywords if keyword != "stable"]
    return (positional[1:] if method else positional), keywords, defaults


def _equal(one: Any, other: Any) -> bool:
    same: bool = one == other or (one is None and other is False)
    return same


def test_a_wrong_default_would_be_seen() -> None:
    name = "torch.nn.functional.interpolate"
    (way,) = torch_signatures(name)
    right = next(one for one in SPELLINGS if one.name == name)
    assert matches(right, *way)
    assert not matches(right._replace(defaults=(("mode", "bilinear"),)), *way)
    assert not matches(right._replace(parameters=("input", "mode")), *way)
