"""The modes in which a call keeps no gradient: ``with torch.no_grad()``, decorators, and what a project makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call, Constant, Expression, Leave, Operation
from torchrepro_lint.qualified import parted, path_of
from torchrepro_lint.walk import statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchrepro_lint.events import Guard
    from torchrepro_lint.program_index import ProgramIndex

_OFF = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
    | {"torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"}
)

_STEPS = (".forward", ".backward")
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


def mode_at(project: ProgramIndex, function: str, guards: Iterable[Guard]) -> str:
    """The innermost mode around a call, its function's decorators included: ``off``, ``on``, or nothing."""
    path = path_of(function)
    modes = [mode for guard in guards if guard.kind == "with" and (mode := switch_of(project, path, guard.value))]
    decorators = (each for one in project.resolver.functions(function) for each in one.decorators)
    modes = [*(mode for each in decorators if (mode := switch_of(project, path, each))), *modes]
    if not modes and _is_of_function(project, function):
        return "off"
    return modes[-1] if modes else ""


def _is_of_function(project: ProgramIndex, function: str) -> bool:
    """Whether it is a step of an ``autograd.Function``: torch records nothing of what happens inside."""
    if not function.endswith(_STEPS):
        return False
    owner = project.resolver.owner(function)
    return bool(owner) and not _FUNCTIONS.isdisjoint(project.resolver.ancestry(owner))


def switch_of(project: ProgramIndex, path: str, value: Expression) -> str:
    """What a context manager or decorator does to gradients: ``off``, ``on``, or nothing."""
    called = value.func if isinstance(value, Call) else value
    argument = value.args[0].value if isinstance(value, Call) and value.args else None
    switched = argument.value if isinstance(argument, Constant) else None
    for name in project.names(path, called):
        word = name.rpartition(".")[2]
        if name in _OFF:
            return "on" if word == "inference_mode" and switched is False else "off"
        if name in ("torch.enable_grad", "torch.autograd.enable_grad"):
            return "on"
        if name in ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"):
            return "off" if switched is False else "on"
        if ":" in name and _wraps_in_mode(project, name):
            return "off"
    return ""


def _wraps_in_mode(project: ProgramIndex, name: str) -> bool:
    """Whether a function of the project is a decorator that returns ``torch.no_grad()(function)``, from within too."""
    path, _, own = parted(name)
    if not project.resolver.functions(name):
        return False
    return any(
        _applies_mode(project, path, value)
        for function in project.files[path].functions
        if function.name == f":{own}" or function.name.startswith(f":{own}.<locals>.")
        for statement in statements(function.body)
        if isinstance(statement, Leave) and statement.kind == "return"
        for value in statement.values
    )


def _applies_mode(project: ProgramIndex, path: str, value: Expression) -> bool:
    match value:
        case Call(func=Call(func=mode)):
            chosen = mode.operands[1:] if isinstance(mode, Operation) and mode.op == "if" else (mode,)
            return all(_OFF.intersection(project.names(path, each)) for each in chosen)
    return False
