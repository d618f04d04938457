"""What a run does from where it imports a module until that has run, for other runs that come to the same import.

Programs of one project import much the same modules, and after an edit they do so again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from torchrepro_lint.happenings import Happening, Step, Target, Waiting
from torchrepro_lint.syntax.events import Event
from torchrepro_lint.syntax.nodes import Small


class Entered(Small, frozen=True):
    """A function that is entered, and from where: a function, and which of its events."""

    function: str
    caller: str
    event: Event


class Stretch(NamedTuple):
    """A part of a run in which nothing waits when it begins.

    ``asked`` are the targets that it came to, ``known`` those of them that had been entered before: in a run of which the same
    is true it goes the same way. ``way`` leads to where it begins, and ``seen`` are the targets that it enters first.
    """

    asked: frozenset[Target]
    known: frozenset[Target]
    way: tuple[Step, ...]
    happenings: tuple[Happening, ...]
    entered: tuple[Entered, ...]
    seen: tuple[Target, ...]
    waiting: tuple[tuple[int | str, Waiting], ...]

    def fits(self, seen: Collection[Target]) -> bool:
        """Whether it goes the same way where these targets have been entered."""
        return all((each in seen) is (each in self.known) for each in self.asked)

    def happens(self, way: tuple[Step, ...]) -> Iterator[Happening]:
        """Its happenings where another way leads to its beginning."""
        start, ways = len(self.way), dict[int, tuple[Step, ...]]()
        for each in self.happenings:
            old = each.way
            new = ways.get(id(old))
            if new is None:
                new = ways[id(old)] = (*way, *old[start:])
            yield Happening(each.action, new)

    def waits(self, way: tuple[Step, ...]) -> Iterator[tuple[int | str, Waiting]]:
        """What is left waiting, likewise."""
        for key, each in self.waiting:
            yield key, each._replace(way=(*way, *each.way[len(self.way) :]))
