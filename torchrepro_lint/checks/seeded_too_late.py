"""TRL104: a run draws from a generator before it seeds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.checks.fixes.late_seeding import fix_late
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.program_effects import belongs_elsewhere
from torchrepro_lint.domain.rng.feasibility import first_possible
from torchrepro_lint.trace.contexts import entry_statement, first_line, place_of, reached_at, steps_to
from torchrepro_lint.trace.trace import guards

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.rng.effects import Draw, Seed
    from torchrepro_lint.trace.trace import Happening


def check(context: Context) -> Iterator[Finding]:
    """Once per entry point and family."""
    for program in context.project.programs_of(context.path):
        effects = program.effects
        if effects.matters and effects.acts and not effects.unknown_seeder:
            late = {family: found for family in FAMILIES if (found := _late(context, program, family))}
            for family, (draw, seed) in late.items():
                fix = fix_late(context.project, program, {each.key: found for each, found in late.items()}, draw)
                yield _finding(context, program, family, draw, seed)._replace(fix=fix)


def _late(context: Context, program: Program, family: Family) -> tuple[Draw, Seed] | None:
    """The first draw of a family and the first seeder that comes after it."""
    every = program.effects.seeds.get(family.key, ())
    if not every:
        return None
    early = (each for each in program.effects.draws.get(family.key, ()) if each.order <= every[0].order)
    draw = first_possible(context.project, program.run, early)
    if draw is None:
        return None
    # What stands in the other branch of the same test is neither before nor after.
    seeds = [each for each in every if not _exclusive(draw.happening, each.happening)]
    if not seeds or draw.order > seeds[0].order or belongs_elsewhere(context.project, program.entry, draw.happening):
        return None
    return draw, seeds[0]


def _finding(context: Context, program: Program, family: Family, draw: Draw, seed: Seed) -> Finding:
    message = (
        f"{draw.label}{reached_at(context.project, program.entry, draw.happening)} draws from {family.owner} before "
        f"{seed.label} ({place_of(context.project, seed.happening, context.path)}) seeds it; seed first"
    )
    statement = entry_statement(program.entry, draw.happening)
    steps = steps_to(context.project, draw.happening, f"{draw.label} draws from {family.owner}")
    return Finding("TRL104", first_line(context.lines, statement), message, steps=steps)


def _exclusive(one: Happening, other: Happening) -> bool:
    """Whether no run has both: they stand in different branches of one test."""
    branches = {(id(guard.value), guard.kind) for guard in guards(one)}
    opposite = {"if": "else", "else": "if"}
    return any((id(guard.value), opposite.get(guard.kind)) in branches for guard in guards(other))
