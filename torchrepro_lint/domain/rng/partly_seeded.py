"""Partly seeded functions: those that seed some generators and draw from others that nothing on the way seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.domain.program_effects import ProgramEffects
from torchrepro_lint.domain.rng.effects import Draw, RngEffects, Seed
from torchrepro_lint.query import limits
from torchrepro_lint.query.database import query


class PartlySeeded(NamedTuple):
    """A function, its first own seeder, and the first draw from a family that it leaves out."""

    function: str
    seed: Seed
    draw: Draw
    family: Family


def partly_seeded_functions(project: ProgramEffects, path: str) -> Iterator[PartlySeeded]:
    """The partly seeded functions and module bodies that may draw in a file: in the file or in one that imports it.

    Those that a program settles may be included (see ``is_settled_by_program``). Of many functions that call one another in a
    cycle only the first is: each of them reaches the same draws and seeds, and a trace for each would take minutes.
    """
    known: dict[str, _Searched] = project.revision_cache.setdefault(__name__, {})
    together: set[str] = set()
    for function in project.seeding_functions(path):
        if function in together:
            continue
        if function not in known:
            if sum(each.events for each in known.values()) > _MANY_EVENTS and _are_all_settled(project, function):
                continue
            known[function] = _search(project, function)
        yield from known[function].found
        together |= known[function].cycle


# After so many events of traces, each of one function, it is worth to trace all programs first.
_MANY_EVENTS = 100_000


class _Searched(NamedTuple):
    """What is known of a seeding function: what it leaves unseeded, the large cycle that it is in, and how many events its trace has."""

    found: tuple[PartlySeeded, ...]
    cycle: frozenset[str]
    events: int


@query()
def _search(project: ProgramEffects, function: str) -> _Searched:
    effects = project.effects_in(function)
    most = limits.MAX_FUNCTIONS_IN_CYCLE
    cycle = effects.run.cycles.get(function, frozenset()) if effects.end > most else frozenset()
    return _Searched(tuple(_partly_seeded(function, effects)), cycle if len(cycle) > most else frozenset(), effects.end)


def _are_all_settled(project: ProgramEffects, function: str) -> bool:
    """Whether programs settle all families for a function, whatever it draws."""
    effects = [each.effects for each in project.reaching(function)]
    return all(any(_settles(each, family) for each in effects) for family in FAMILIES)


def _partly_seeded(function: str, effects: RngEffects) -> Iterator[PartlySeeded]:
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
