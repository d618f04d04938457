"""Partly seeded functions: those that seed some generators and draw from others that nothing on the way seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.domain.rng.effects import Draw, RngEffects, Seed
from torchrepro_lint.source.named_tuples import NamedTuple

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import ProgramEffects


class PartlySeeded(NamedTuple):
    """A function, its first own seeder, and the first draw from a family that it leaves out."""

    function: str
    seed: Seed
    draw: Draw
    family: Family


def partly_seeded_functions(project: ProgramEffects, path: str) -> Iterator[PartlySeeded]:
    """The partly seeded functions and module bodies that may draw in a file: in the file or in one that imports it.

    Those that a program settles are included (see ``is_settled_by_program``).
    """
    for function in project.seeding_functions(path):
        yield from _partly_seeded_function(project, function)


def _partly_seeded_function(project: ProgramEffects, function: str) -> Iterator[PartlySeeded]:
    effects = project.effects_in(function)
    own = [seed for seeds in effects.seeds.values() for seed in seeds if not seed.trace_event.call_path]
    if not own or effects.unknown_seeder:
        return
    first = min(own, key=lambda seed: seed.order)
    for family in FAMILIES:
        # A loader or sampler that is only constructed there draws where it is iterated.
        draws = [each for each in effects.draws.get(family.key, ()) if effects.iterates or each.order < effects.end]
        if draws and family.key not in effects.seeds:
            yield PartlySeeded(function, first, draws[0], family)


def is_settled_by_program(project: ProgramEffects, partly: PartlySeeded) -> bool:
    """Whether a program that reaches the function seeds the family, or is reported by TRL101 to TRL103.

    This needs all programs, so ask it last.
    """
    return any(_settles(each.effects, partly.family) for each in project.reaching(partly.function))


def _settles(effects: RngEffects, family: Family) -> bool:
    """Whether a program seeds the family, or is itself reported."""
    reported = effects.matters and effects.acts and family.key in effects.draws
    return reported or family.key in effects.seeds or effects.unknown_seeder
