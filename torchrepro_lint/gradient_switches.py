"""Gradient modes of context managers and decorators: ``torch.no_grad()``, and what a project makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Leave, Operation, parted
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex

_OFF = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
    | {"torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"}
)


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
