"""Where a function can make the one generator for all its calls that need one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.rewrites.generators import known_level, needing
from torchrepro_lint.syntax.control_flow import Level
from torchrepro_lint.syntax.nodes import Loop

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project


def common(project: Project, path: str, level: Level) -> Level:
    """The first statement of the innermost block around all calls of the function that need a generator, and around
    ``level``, in no loop.
    """
    known = _KNOWN.get(project)
    if known is None:
        known = _KNOWN[project] = {}
    key = path, level.function.start if level.function else -1
    if key not in known:
        found = (known_level(project, path, start) for start in needing(project, path, level))
        levels = [each for each in found if each is not None and each.function == level.function]
        known[key] = _Place(tuple(levels), frozenset(map(id, levels)), _around(levels) if levels else level)
    place = known[key]
    return place.level if id(level) in place.known else _around((level, *place.levels))


class _Place(NamedTuple):
    """The levels of a function's calls that need a generator, by their identity, too, and what is around them all."""

    levels: tuple[Level, ...]
    known: frozenset[int]
    level: Level


_KNOWN: WeakKeyDictionary[Project, dict[tuple[str, int], _Place]] = WeakKeyDictionary()


def _around(levels: Iterable[Level]) -> Level:
    every = tuple(levels)
    first = min(every, key=lambda each: each.spots[-1].statement.start)
    depth = 1
    while depth < min(len(each.spots) for each in every):
        spot = first.spots[depth]
        if isinstance(spot.around, Loop) or any(each.spots[depth].block is not spot.block for each in every):
            break
        depth += 1
    return Level(first.function, first.spots[:depth])
