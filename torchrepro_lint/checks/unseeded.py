"""TRL101, TRL102, TRL103: a run draws from a generator that nothing seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import FAMILIES, NUMPY, PYTHON, TORCH, Family
from torchrepro_lint.checks.fixes.seeding import fix_program, spawning
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.program_effects import belongs_elsewhere
from torchrepro_lint.domain.rng.feasibility import first_possible
from torchrepro_lint.trace.contexts import entry_statement, first_line, reached_at, steps_to

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.rng.effects import Draw


def _rule(code: str, family: Family) -> Callable[[Context], Iterator[Finding]]:
    def check(context: Context) -> Iterator[Finding]:
        for program in context.project.programs_of(context.path):
            yield from _of_program(context, program, code, family)

    return check


torch = _rule("TRL101", TORCH)
numpy = _rule("TRL102", NUMPY)
python = _rule("TRL103", PYTHON)


def _of_program(context: Context, program: Program, code: str, family: Family) -> Iterator[Finding]:
    draw = _unseeded(context, program, family)
    if draw is None:
        return
    effects = program.effects
    statement = entry_statement(program.entry, draw.happening)
    source = f"from {family.owner}" if draw.family == family.key else f"in workers, which {family.what} seeds"
    message = f"{draw.label}{reached_at(context.project, program.entry, draw.happening)} draws {source}, and "
    if family.key == "torch" and "torch-cuda" in effects.seeds:
        message += (
            "torch.cuda.manual_seed seeds CUDA only, so the CPU generator is unseeded; call torch.manual_seed(...)"
        )
    else:
        message += f"nothing in this run seeds {family.what}; call {family.seeder} first"
    steps = steps_to(context.project, draw.happening, f"{draw.label} draws {source}")
    missing = [
        (each.key, found)
        for each in FAMILIES
        if (found := _unseeded(context, program, each))
        and spawning(context.project, found.happening) == spawning(context.project, draw.happening)
    ]
    fix = None if family.key in effects.entropic else fix_program(context.project, program, missing)
    yield Finding(code, first_line(context.lines, statement), message, fix, steps=steps)


def _unseeded(context: Context, program: Program, family: Family) -> Draw | None:
    """The first draw of a family that a run which matters never seeds, and that is its own; else None."""
    effects = program.effects
    if family.key in effects.seeds or not effects.matters or not effects.acts or effects.unknown_seeder:
        return None
    draws = effects.draws.get(family.key, ())
    own = (each for each in draws if not belongs_elsewhere(context.project, program.entry, each.happening, family.key))
    return first_possible(context.project, program.run, own)
