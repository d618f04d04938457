"""Whether programs ask torch for its deterministic algorithms, or cuDNN for its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.flags import CUDNN_DETERMINISTIC, DETERMINISTIC, WARN, is_off
from torchrepro_lint.syntax.nodes import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.programs import Program
    from torchrepro_lint.project import Project
    from torchrepro_lint.touches import Touch


def enabled(project: Project, function: str) -> bool:
    """Whether every program that reaches a function asks for them; a condition around the switch does not count.

    Where none reaches it, the programs are asked that import its module. False where there are no programs.
    """
    programs = programs_of(project, function)
    return bool(programs) and all(enables(project, program) for program in programs)


def enables(project: Project, program: Program, flag: str = DETERMINISTIC) -> bool:
    """Whether a program sets a flag to anything but a constant that is off; a condition around it does not count."""
    return any(not is_off(touch.value) for touch in set_in(project, program, flag))


def warns_only(project: Project, function: str) -> bool:
    """Whether every such program asks for warnings, and none for more than that."""
    programs = programs_of(project, function)
    return bool(programs) and all(_warns(project, program) for program in programs)


def cudnn_deterministic(project: Project, function: str) -> bool:
    """Whether every such program sets ``torch.backends.cudnn.deterministic``, by whatever value but a constant False."""
    programs = programs_of(project, function)
    return bool(programs) and all(enables(project, program, CUDNN_DETERMINISTIC) for program in programs)


def programs_of(project: Project, function: str) -> tuple[Program, ...]:
    """The programs that reach a function, else those that import its module."""
    return project.reaching(function) or project.reaching(path_of(function) + ":")


def set_in(project: Project, program: Program, what: str) -> Iterator[Touch]:
    """Where a program sets a flag or a variable, in order."""
    return (touch for touch in project.switching(program) if touch.what == what)


def _warns(project: Project, program: Program) -> bool:
    on = {touch.value for touch in set_in(project, program, DETERMINISTIC) if not is_off(touch.value)}
    return on == {WARN}
