"""Fixpoints over a lattice: answers to questions that may lead back to themselves, the least one that all of them agree on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")

_NEVER = 1 << 60
# So many changes an answer may go through before it gives up what changes.
_PATIENCE = 2


class Solver(Generic[_Answer]):
    """Solves recursive equations depth first, in rounds.

    A question that is asked while it is being answered gets what the rounds so far have found, at first nothing. The
    outermost question of a circle goes round until no answer of the circle changes; the answers within serve for one
    round. Answers only ever lose knowledge from round to round, so the rounds end; and they depend on the questions
    alone, not on which was asked first. Of the lattice it takes the least element, the join of two, and a widening join
    after which no answer changes for ever.
    """

    def __init__(
        self,
        nothing: _Answer,
        join: Callable[[_Answer, _Answer], _Answer],
        widened: Callable[[_Answer, _Answer], _Answer],
    ) -> None:
        self._nothing, self._join, self._widened = nothing, join, widened
        self._known: dict[Hashable, _Answer] = {}
        # Open questions with their depth, and what they are taken to be while they are open.
        self._open: dict[Hashable, int] = {}
        self._assumed: dict[Hashable, _Answer] = {}
        self._changes = 0
        self._times: dict[Hashable, int] = {}
        # The least depth of an open question that was asked since the innermost question was opened.
        self._lowest = _NEVER
        # Answers of this round that owe something to an open question of a depth, in their order.
        self._round: dict[Hashable, tuple[_Answer, int]] = {}

    @property
    def nesting(self) -> int:
        """How many questions are open."""
        return len(self._open)

    def knows(self, key: Hashable) -> bool:
        """Whether asking costs nothing."""
        return key in self._known or key in self._open or key in self._round

    def reset(self) -> None:
        """Forget what was open when an exception was raised."""
        self._open, self._assumed, self._times, self._round, self._lowest = {}, {}, {}, {}, _NEVER

    def solve(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        """The answer to a question."""
        if (known := self._known.get(key)) is not None:
            return known
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return self._assumed.get(key, self._nothing)
        if (provisional := self._round.get(key)) is not None:
            self._lowest = min(self._lowest, provisional[1])
            return provisional[0]
        return self._answer(key, compute)

    def _answer(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        depth = self._open[key] = len(self._open)
        outside, start = self._lowest, len(self._round)
        while True:
            self._lowest, before = _NEVER, self._changes
            found = self._met(key, compute())
            inside = self._lowest
            if inside > depth:
                break
            if found != self._assumed.get(key, self._nothing):
                self._assumed[key] = found
                self._times[key] = self._times.get(key, 0) + 1
                self._changes += 1
            if inside < depth or self._changes == before:
                break
            self._since(start)
        del self._open[key]
        self._lowest = min(outside, inside) if inside < depth else outside
        if inside < depth:
            self._suspend(key, found, start, inside)
        else:
            self._settle(key, found, start)
        return found

    def _met(self, key: Hashable, found: _Answer) -> _Answer:
        """What was found, with what the rounds before have found; what grows from round to round is given up."""
        assumed = self._assumed.get(key, self._nothing)
        return self._widened(assumed, found) if self._times.get(key, 0) > _PATIENCE else self._join(assumed, found)

    def _since(self, start: int) -> list[tuple[Hashable, _Answer, int]]:
        """Take back the answers of the round since its beginning."""
        taken = []
        while len(self._round) > start:
            key, (found, lowest) = self._round.popitem()
            taken.append((key, found, lowest))
        return taken

    def _suspend(self, key: Hashable, found: _Answer, start: int, lowest: int) -> None:
        for each, what, least in reversed(self._since(start)):
            self._round[each] = (what, min(least, lowest))
        self._round[key] = (found, lowest)

    def _settle(self, key: Hashable, found: _Answer, start: int) -> None:
        for each, what, _ in self._since(start):
            self._known[each] = what
            self._assumed.pop(each, None)
            self._times.pop(each, None)
        self._known[key] = found
        self._assumed.pop(key, None)
        self._times.pop(key, None)
