"""TRL110: a function seeds some generators and draws from another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.effects import Draw, Effects, Seed
from torchrepro_lint.families import FAMILIES, Family
from torchrepro_lint.routes import first_line, place_of
from torchrepro_lint.rule import Finding

if TYPE_CHECKING:
    from torchrepro_lint.facts import Statement
    from torchrepro_lint.rule import Context


def check(context: Context) -> Iterator[Finding]:
    """Functions and the module's own body, outside of what TRL101 to TRL103 say of entry points."""
    names = [f"{context.path}:", *(context.path + each.name for each in context.facts.functions)]
    for name in dict.fromkeys(names):
        if _seeds_itself(context, name):
            yield from _of_function(context, name)


def _seeds_itself(context: Context, name: str) -> bool:
    """A cheap look before the function is followed: a seeder of the catalogue among its own calls."""
    return any(
        (seeder := context.catalogue.seeder(target.replace("().", "."))) is not None and seeder.families
        for site in context.project.calls(context.path)
        if site.function == name
        for target in site.names
    )


def _of_function(context: Context, name: str) -> Iterator[Finding]:
    effects = context.project.effects_in(name)
    own = [seed for seeds in effects.seeds.values() for seed in seeds if not seed.happening.way]
    if not own or effects.unknown_seeder:
        return
    first = min(own, key=lambda seed: seed.order)
    for family in FAMILIES:
        draw = effects.draws.get(family.key)
        if draw and family.key not in effects.seeds and not _is_spoken_of(context, name, family):
            yield Finding("TRL110", first_line(context.lines, _statement(draw)), _message(context, draw, first, family))


def _is_spoken_of(context: Context, name: str, family: Family) -> bool:
    """Whether the programs that reach the function seed the family, or are themselves reported."""
    programs = context.project.reaching(name)
    return any(_tells(program.effects, family) for program in programs)


def _tells(effects: Effects, family: Family) -> bool:
    reported = effects.matters and effects.acts and family.key in effects.draws
    return reported or family.key in effects.seeds or effects.unknown_seeder


def _statement(draw: Draw) -> Statement:
    """The statement of the function itself through which the draw is reached."""
    way = draw.happening.way
    return way[0].event.statement if way else draw.happening.event.statement


def _message(context: Context, draw: Draw, seed: Seed, family: Family) -> str:
    place = f" ({place_of(context.project, draw.happening)})" if draw.happening.way else ""
    row = context.lines.position(seed.happening.event.statement.start).row
    missing = f"{draw.label}{place} draws from {family.owner}, which this function does not seed"
    return f"{missing} although it calls {seed.label} (line {row}); call {family.seeder} too"
