"""The calls of a module that are cases of catalogued operations, as far as their conditions are not known to fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.conditions import Truth, applicable
from torchrepro_lint.facts import Attribute, Call, Constant, Expression, Ref
from torchrepro_lint.signatures import Argument, arguments

if TYPE_CHECKING:
    from torchrepro_lint.entries import Row
    from torchrepro_lint.events import Guard
    from torchrepro_lint.project import Project, Site
    from torchrepro_lint.rule import Context

# Methods that numpy, pandas or containers have too: they count on what is known to be a tensor.
_SHARED = frozenset(
    {"cumsum", "cumsum_", "median", "nanmedian", "gather", "scatter", "put", "put_", "bincount", "resize_", "take"}
)
_NO_GRADIENT = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode")
_CUT = frozenset({"detach", "detach_", "data"})


class Case(NamedTuple):
    """A call that a row of the catalogue may speak of."""

    site: Site
    row: Row
    truth: Truth


def cases(context: Context) -> Iterator[Case]:
    """The rows that hold, or may hold, for each call of the module under check."""
    for site in context.project.calls(context.path):
        for name in operation_names(site):
            rows = context.catalogue.operation(name)
            if not rows:
                continue
            device = _device(context, site)
            argument = _resolved(context, rows[0].spelling, site)
            for row, truth in applicable(rows, argument, {"device": device}):
                if row.phase != "backward" or not without_gradient(context.project, context.path, site):
                    yield Case(site, row, truth)
            break


def operation_names(site: Site) -> Iterator[str]:
    """The catalogue's names of what is called: public functions and classes, and methods on what may be a tensor."""
    for name in site.names:
        if ":" in name:
            continue
        if "()" not in name:
            yield name
        elif (method := _tensor_method(name)) is not None:
            yield method
    word = _word(site.call.func)
    if not site.names and word and word not in _SHARED:
        yield f"torch.Tensor.{word}"


def _tensor_method(name: str) -> str | None:
    """``torch.Tensor.cumsum`` for ``torch.randn().cumsum``: a method of what a function or module of torch returned."""
    receiver, _, word = name.rpartition(".")
    if not word or word.endswith("()") or not receiver.startswith("torch.") or not receiver.endswith("()"):
        return None
    made = receiver.split("()")[0].rpartition(".")[2]
    is_module = made[:1].isupper() and made not in ("Tensor", "LongTensor", "FloatTensor") and receiver.count("()") == 1
    return None if is_module else f"torch.Tensor.{word}"


def _word(func: Expression) -> str:
    match func:
        case Ref(path=(*_, word)) | Attribute(name=word):
            return word
    return ""


def _device(context: Context, site: Site) -> str:
    if context.settings.device != "auto":
        return context.settings.device
    return "cuda" if context.project.may_use_accelerator(site.function) else "cpu"


def _resolved(context: Context, spelling: object, site: Site) -> Argument:
    """Arguments with variables replaced by the one literal that they stand for."""
    from torchrepro_lint.entries import Spelling

    assert isinstance(spelling, Spelling)
    read = arguments(spelling, site.call)

    def argument(name: str) -> Expression | None:
        value = read(name)
        if isinstance(value, Ref) and value.roots:
            found = [each for _, each in context.project.values(context.path, value)]
            if len(found) == 1:
                return found[0]
        return value

    return argument


def without_gradient(project: Project, path: str, site: Site) -> bool:
    """Whether no gradient can flow: under ``no_grad``, in a function so decorated, or on a detached input."""
    if any(_disables(project, path, guard) for guard in site.guards):
        return True
    for function in project.resolver.functions(site.function):
        for decorator in function.decorators:
            called = decorator.func if isinstance(decorator, Call) else decorator
            if set(project.names(path, called)).intersection(_NO_GRADIENT):
                return True
    return _is_cut(_input(site.call))


def _disables(project: Project, path: str, guard: Guard) -> bool:
    value = guard.value
    if guard.kind != "with" or not isinstance(value, Call):
        return False
    names = set(project.names(path, value.func))
    if "torch.set_grad_enabled" in names:
        return bool(value.args) and isinstance(value.args[0].value, Constant) and value.args[0].value.value is False
    return bool(names.intersection(_NO_GRADIENT))


def _input(call: Call) -> Expression | None:
    """The tensor of a call: a method's receiver is unknown as a value, so its attributes are looked at instead."""
    if call.args and not call.args[0].star and call.args[0].keyword in (None, "input"):
        return call.args[0].value
    return None


def _is_cut(expression: Expression | None) -> bool:
    match expression:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)) | Ref(path=(*_, word)):
            return word in _CUT
    return False
