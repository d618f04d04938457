"""The calls that switch torch's deterministic algorithms, and whether strict mode could be on in a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.determinism import programs_of
from torchrepro_lint.syntax.nodes import Arg, Constant, path_of
from torchrepro_lint.verdicts import verdicts_of

if TYPE_CHECKING:
    from torchrepro_lint.context import Context
    from torchrepro_lint.programs import Program
    from torchrepro_lint.project import Project
    from torchrepro_lint.resolve.program_index import Site

MODERN = "torch.use_deterministic_algorithms"
OLD = "torch.set_deterministic"
DEBUG_MODE = "torch.set_deterministic_debug_mode"


class Switch(NamedTuple):
    """A call of ``name``: its arguments ``mode`` and ``warn_only`` (None: left out), and whether a star may give them."""

    site: Site
    name: str
    mode: Arg | None
    warn_only: Arg | None
    hidden: bool


def switches(project: Project, path: str) -> Iterator[Switch]:
    """The switches of a module, in the order of the text."""
    for site in project.calls(path):
        name = next((each for each in site.names if each in (MODERN, OLD, DEBUG_MODE)), None)
        if name is not None:
            args = site.call.args
            positional = next((arg for arg in args[:1] if arg.keyword is None and not arg.star), None)
            given = {arg.keyword: arg for arg in args if arg.keyword}
            # The parameter was called `d` before torch 1.9.
            mode = positional or given.get("mode") or given.get("d") or given.get("debug_mode")
            yield Switch(site, name, mode, given.get("warn_only"), any(arg.star for arg in args))


def only_warns(switch: Switch) -> bool:
    """Whether a switch says ``warn_only=True``, and its mode is not known to be false."""
    return is_constant(switch.warn_only, True) and not is_constant(switch.mode, False)


def is_constant(arg: Arg | None, value: object) -> bool:
    """Whether an argument is one literal: 0 is no ``False`` here, nor 1 ``True``."""
    if arg is None or not isinstance(arg.value, Constant):
        return False
    return type(arg.value.value) is type(value) and arg.value.value == value


def stops_strict_mode(context: Context, function: str) -> bool:
    """Whether the programs of a function reach what strict mode would stop; without programs, the project counts."""
    programs = programs_of(context.project, function)
    if not programs:
        return any(
            each.case.row.behaviour == "raises" for _, each in verdicts_of(context, sorted(context.project.files))
        )
    return any(_reaches_operation(context, program) for program in programs)


def _reaches_operation(context: Context, program: Program) -> bool:
    reached = program.run.functions
    paths = sorted({path_of(function) for function in reached})
    return any(
        each.case.row.behaviour == "raises" and each.case.site.function in reached
        for _, each in verdicts_of(context, paths)
    )


def reported_warning(context: Context, function: str) -> bool:
    """Whether a ``warn_only=True`` that the programs of a function reach is reported where it stands."""
    for program in programs_of(context.project, function):
        for path in sorted(program.run.paths):
            for switch in switches(context.project, path):
                if only_warns(switch) and switch.site.function in program.run.functions:
                    return not stops_strict_mode(context, switch.site.function)
    return False
