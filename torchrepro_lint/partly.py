"""Functions that seed some generators and draw from others that nothing on the way seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.effects import Draw, Effects, Seed

if TYPE_CHECKING:
    from torchrepro_lint.program_effects import ProgramEffects


class Partly(NamedTuple):
    """A function, its first own seeder, and the first draw from a family that it leaves out."""

    function: str
    seed: Seed
    draw: Draw
    family: Family


def partly_seeded(project: ProgramEffects, path: str) -> Iterator[Partly]:
    """Such functions and module bodies that may draw in a file: their own, or one that it imports, directly or not; those
    too of which programs tell (see ``is_told``).
    """
    for function in project.seeding_functions(path):
        yield from _of_function(project, function)


def _of_function(project: ProgramEffects, function: str) -> Iterator[Partly]:
    effects = project.effects_in(function)
    own = [seed for seeds in effects.seeds.values() for seed in seeds if not seed.happening.way]
    if not own or effects.unknown_seeder:
        return
    first = min(own, key=lambda seed: seed.order)
    for family in FAMILIES:
        # A loader or sampler that is only made there draws where it is gone along.
        draws = [each for each in effects.draws.get(family.key, ()) if effects.iterates or each.order < effects.end]
        if draws and family.key not in effects.seeds:
            yield Partly(function, first, draws[0], family)


def is_told(project: ProgramEffects, partly: Partly) -> bool:
    """Whether a program that reaches the function seeds the family, or TRL101 to TRL103 say it of the program.

    It takes all programs to know, so it is to be asked last.
    """
    return any(_tells(each.effects, partly.family) for each in project.reaching(partly.function))


def _tells(effects: Effects, family: Family) -> bool:
    """Whether a program that reaches the function seeds the family, or is itself reported."""
    reported = effects.matters and effects.acts and family.key in effects.draws
    return reported or family.key in effects.seeds or effects.unknown_seeder
