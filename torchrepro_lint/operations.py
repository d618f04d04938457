"""The calls of a module that are cases of catalogued operations, as far as their conditions are not known to fail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.conditions import NOTHING, Known, Truth, applicable
from torchrepro_lint.facts import Attribute, Call, Collection, Constant, Expression, Operation, Ref
from torchrepro_lint.signatures import Argument, arguments

if TYPE_CHECKING:
    from torchrepro_lint.entries import Row, Spelling
    from torchrepro_lint.project import Project, Site
    from torchrepro_lint.rule import Context

# Methods that numpy, pandas or containers have too: they count on what is known to be a tensor.
_SHARED = frozenset(
    {"cumsum", "cumsum_", "median", "nanmedian", "gather", "scatter", "put", "put_", "bincount", "resize_", "take"}
)
_NO_GRADIENT = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode")
# Variables with several values each multiply; beyond these counts an argument stays unknown.
_MOST_VARIABLES = 3
_MOST_VALUES = 12
_CUT = frozenset({"detach", "detach_", "data"})


class Case(NamedTuple):
    """A call that a row of the catalogue may speak of."""

    site: Site
    row: Row
    truth: Truth


def cases(context: Context, known: Known = NOTHING) -> Iterator[Case]:
    """The rows that hold, or may hold, for each call of the module under check, those that hold first.

    ``known`` is what is certain of every call, whatever the code says.
    """
    for site in context.project.calls(context.path):
        for name in operation_names(site):
            rows = context.catalogue.operation(name)
            if not rows:
                continue
            found: dict[Row, Truth] = {}
            for argument in _readings(context, rows[0].spelling, site):
                for row, truth in applicable(rows, argument, {"device": _device(context, site), **known}):
                    found[row] = max(truth, found.get(row, truth))
            for row, truth in sorted(found.items(), key=lambda each: -each[1]):
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


def _readings(context: Context, spelling: Spelling, site: Site) -> Iterator[Argument]:
    """The ways to read a call's arguments: one for each value that a variable among them may have."""
    read = arguments(spelling, site.call)
    words = [word for word in (*spelling.parameters, *spelling.keywords) if isinstance(read(word), Ref)]
    open_ended = {word: values for word in words if len(values := _candidates(context, site, read(word))) > 0}
    combinations = product(*open_ended.values()) if len(open_ended) <= _MOST_VARIABLES else ()
    tried = False
    for chosen in combinations:
        tried = True
        given = dict(zip(open_ended, chosen, strict=True))
        yield lambda name, given=given: given.get(name) or read(name)  # type: ignore[misc]
    if not tried:
        yield read


def _candidates(context: Context, site: Site, value: Expression | None) -> list[Expression]:
    """The values that an argument may have: those that a test around the call admits, else all that are assigned."""
    assert isinstance(value, Ref)
    for guard in reversed(site.guards):
        if guard.kind == "if" and (admitted := list(_admitted(guard.value, value))):
            return admitted
    resolver = context.project.resolver
    leaves = context.project.values(context.path, value) if value.roots else []
    found = [resolver.default(path, each) or each for path, each in leaves]
    return list(dict.fromkeys(found))[:_MOST_VALUES]


def _admitted(test: Expression, value: Ref) -> Iterator[Expression]:
    """``mode == "nearest"`` and ``mode in ("nearest", "area")`` say what ``mode`` is."""
    match test:
        case Operation(op="==", operands=(Ref(roots=value.roots, path=value.path), Constant() as constant)):
            yield constant
        case Operation(op="in", operands=(Ref(roots=value.roots, path=value.path), Collection(items=items))):
            yield from (item for item in items if isinstance(item, Constant))
        case Operation(op="and", operands=operands):
            for operand in operands:
                yield from _admitted(operand, value)


def without_gradient(project: Project, path: str, site: Site) -> bool:
    """Whether no gradient can flow: under ``no_grad``, in a function so decorated, or from a detached input."""
    modes = [mode for guard in site.guards if guard.kind == "with" and (mode := _mode(project, path, guard.value))]
    decorators = (each for function in project.resolver.functions(site.function) for each in function.decorators)
    modes = [*(mode for each in decorators if (mode := _mode(project, path, each))), *modes]
    return modes[-1:] == ["off"] or _is_cut(_input(site.call))


def _mode(project: Project, path: str, value: Expression) -> str:
    """What a context manager or decorator does to gradients: ``off``, ``on``, or nothing."""
    called = value.func if isinstance(value, Call) else value
    argument = value.args[0].value if isinstance(value, Call) and value.args else None
    switched = argument.value if isinstance(argument, Constant) else None
    for name in project.names(path, called):
        word = name.rpartition(".")[2]
        if name in _NO_GRADIENT:
            return "on" if word == "inference_mode" and switched is False else "off"
        if name in ("torch.enable_grad", "torch.autograd.enable_grad"):
            return "on"
        if name in ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"):
            return "off" if switched is False else "on"
    return ""


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
