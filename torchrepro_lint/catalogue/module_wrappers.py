"""Module wrappers: the calls of torch and other libraries that return the module they were given, or wrap it.

The table is ``module_wrappers.toml``. Calling the result runs the module's own forward, so name resolution looks through
such calls.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchrepro_lint.catalogue.rows import NameIndex, Signature, Table, read_signature
from torchrepro_lint.source.files import read_table
from torchrepro_lint.syntax.nodes import Call, Expression
from torchrepro_lint.syntax.qualified_names import passes_call, simple_name, without_calls
from torchrepro_lint.syntax.visitor import known_argument

# Methods that return the object they are called on, whatever its class.
FLUENT_METHODS = frozenset(
    {"to", "cuda", "cpu", "xpu", "eval", "train", "float", "half", "double", "bfloat16", "to_empty", "requires_grad_"}
    | {"share_memory", "manual_seed"}
)
# Those that other classes have, too, and that return something else there.
_OF_MODULES = frozenset(
    f"{module}().{word}"
    for module in ("torch.nn.Module", "torch.nn.modules.module.Module")
    for word in ("apply", "type")
)
# Names that are asked for again and again.
_CACHED_NAMES = 1 << 14


class ModuleWrapper(NamedTuple):
    """A call that returns a module it was given for the parameter ``module`` (empty: its first argument).

    ``result`` is what the call returns: ``module``, a ``tuple`` that begins with it, or the ``arguments`` in their order (a
    single argument not in a tuple).
    """

    signature: Signature
    module: str
    result: str
    source: str
    evidence: str


@lru_cache(maxsize=1)
def module_wrappers() -> NameIndex[ModuleWrapper]:
    """The rows of the table by qualified name."""
    return NameIndex((table, _wrapper) for table in read_table("module_wrappers.toml")["wrapper"])


def _wrapper(table: Table, name: str) -> ModuleWrapper:
    module, result = table.get("module", ""), table.get("result", "module")
    return ModuleWrapper(read_signature(table, name), module, result, table["source"], table["evidence"])


@lru_cache(maxsize=_CACHED_NAMES)
def module_wrapper(name: str) -> ModuleWrapper | None:
    """The row about a name from outside; methods are named through their class: ``Accelerator().prepare``."""
    return next(iter(module_wrappers().of(without_calls(name))), None)


def is_fluent(name: str) -> bool:
    """Whether a method from outside (``torch.nn.Module().to``) returns the object that it is called on."""
    return passes_call(name) and (simple_name(name) in FLUENT_METHODS or name in _OF_MODULES)


def wrapped_module(wrapper: ModuleWrapper, call: Call) -> Expression | None:
    """The module that a call gets and returns as its whole result; None where the result is a tuple."""
    if wrapper.result == "tuple" or (wrapper.result == "arguments" and _returned(wrapper, call) > 1):
        return None
    return _module(wrapper, call)


def element_of_result(wrapper: ModuleWrapper, call: Call, index: int) -> Expression | None:
    """The argument that is returned at an index of a call's result, if the result is unpacked."""
    if wrapper.result == "tuple":
        return _module(wrapper, call) if index == 0 else None
    if wrapper.result == "module" or index < 0 or any(arg.star for arg in call.args):
        return None
    return known_argument(call, index, *wrapper.signature.parameters[index : index + 1])


def _returned(wrapper: ModuleWrapper, call: Call) -> int:
    """The least number of arguments that are returned; a star may be several."""
    words = wrapper.signature.parameters
    return sum(1 + (arg.star != "") for arg in call.args if arg.keyword is None or arg.keyword in words)


def _module(wrapper: ModuleWrapper, call: Call) -> Expression | None:
    """The argument for the module, by keyword or by position."""
    words = wrapper.signature.parameters
    index = words.index(wrapper.module) if wrapper.module in words else 0
    return known_argument(call, index, wrapper.module)
