"""TRL203: a run reaches operations that are deterministic only on request, and nothing in it asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.switches import fix_enabling
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.determinism_mode import enables
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC
from torchrepro_lint.domain.operations.reached import is_convolution, on_request, raising
from torchrepro_lint.domain.program_effects import belongs_elsewhere
from torchrepro_lint.trace.contexts import entry_statement, first_line, place_of, reached_at, steps_to

if TYPE_CHECKING:
    from torchrepro_lint.domain.operations.reached import Operation
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context

_CODE = "TRL203"
_FLAG = "torch.use_deterministic_algorithms(True)"


def check(context: Context) -> Iterator[Finding]:
    """Once per entry point, where it reaches the first of them."""
    for program in context.project.programs_of(context.path):
        effects = program.effects
        if effects.matters and effects.acts and not effects.unknown_seeder:
            yield from _of_program(context, program)


def _of_program(context: Context, program: Program) -> Iterator[Finding]:
    project = context.project
    if enables(project, program):
        return
    cudnn = enables(project, program, CUDNN_DETERMINISTIC)
    found = [each for each in on_request(context, program) if not (cudnn and is_convolution(each.row))]
    only_convolutions = all(is_convolution(each.row) for each in found)
    first = next((each for each in found if not belongs_elsewhere(project, program.entry, each.happening)), None)
    if first is not None:
        what = f"{first.label}{reached_at(project, program.entry, first.happening)}"
        message = f"{_subject(what, found)} deterministic only on request; {_cure(context, program, only_convolutions)}"
        statement = entry_statement(program.entry, first.happening)
        steps = steps_to(project, first.happening, f"{first.label} is deterministic only on request")
        fix = (
            None
            if _stop(context, program)
            else fix_enabling(project, program, first.happening, context.catalogue.version)
        )
        yield Finding(_CODE, first_line(context.lines, statement), message, fix, steps=steps)


def _subject(first: str, found: Sequence[Operation]) -> str:
    """``nn.Embedding (model.py:3) is``, or how many different ones there are and the first."""
    count = len({each.row.operation for each in found})
    return f"{first} is" if count == 1 else f"{count} operations of this run, first {first}, are"


def _cure(context: Context, program: Program, only_convolutions: bool) -> str:
    stop = _stop(context, program)
    if stop is not None:
        return f"{_FLAG} would stop at {stop.label} ({place_of(context.project, stop.happening, context.path)}), so replace that first"
    also = " or set torch.backends.cudnn.deterministic = True" if only_convolutions else ""
    return f"call {_FLAG}{also}"


def _stop(context: Context, program: Program) -> Operation | None:
    """What the switch would stop."""
    return next(iter(raising(context, program)), None)
