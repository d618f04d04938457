"""The modes in which a call keeps no gradient: ``with torch.no_grad()``, decorators, and what a project makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.value_flow import switch_of
from torchrepro_lint.syntax.nodes import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.events import Guard

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
