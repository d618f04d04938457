"""Functions that seed some generators and draw from others that nothing on the way seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.effects import Draw, Effects, Seed
from torchrepro_lint.families import FAMILIES, Family
from torchrepro_lint.index import plain

if TYPE_CHECKING:
    from torchrepro_lint.catalogue import Catalogue
    from torchrepro_lint.project import Project


class Partly(NamedTuple):
    """A function, its first own seeder, and the first draw from a family that it leaves out."""

    function: str
    seed: Seed
    draw: Draw
    family: Family


def partly_seeded(project: Project, catalogue: Catalogue) -> Iterator[Partly]:
    """All such functions and module bodies, outside of what TRL101 to TRL103 say of entry points."""
    for path in project.setting_paths:
        seeding = {site.function for site in project.calls(path) if _seeds(catalogue, site.names)}
        for function in sorted(seeding):
            yield from _of_function(project, function)


def _seeds(catalogue: Catalogue, names: tuple[str, ...]) -> bool:
    """A cheap look before a function is followed."""
    seeders = (catalogue.seeder(plain(name)) for name in names)
    return any(seeder is not None and seeder.families for seeder in seeders)


def _of_function(project: Project, function: str) -> Iterator[Partly]:
    effects = project.effects_in(function)
    own = [seed for seeds in effects.seeds.values() for seed in seeds if not seed.happening.way]
    if not own or effects.unknown_seeder:
        return
    first = min(own, key=lambda seed: seed.order)
    for family in FAMILIES:
        draws = effects.draws.get(family.key)
        # What programs tell takes all of them, so it is asked last.
        if draws and family.key not in effects.seeds and not _is_told(project, function, family):
            yield Partly(function, first, draws[0], family)


def _is_told(project: Project, function: str, family: Family) -> bool:
    return any(_tells(each.effects, family) for each in project.reaching(function))


def _tells(effects: Effects, family: Family) -> bool:
    """Whether a program that reaches the function seeds the family, or is itself reported."""
    reported = effects.matters and effects.acts and family.key in effects.draws
    return reported or family.key in effects.seeds or effects.unknown_seeder
