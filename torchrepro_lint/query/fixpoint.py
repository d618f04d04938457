"""Fixpoints of recursive queries over a lattice, with join and widening; no answer depends on the order of questions.

``tabling`` solves the cycles of set equations. Both remember provisional answers on a trail.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Generic, TypeVar

from torchrepro_lint import limits
from torchrepro_lint.query.early_cutoff import AnswerTable
from torchrepro_lint.query.memo_tables import DependencyIndex, DependencyTracker

# A depth below which no question is open.
NO_CYCLE = 1 << 60


class ProvisionalTrail:
    """Provisional answers in the order of answering, each with the least depth of an open query that it depends on.

    What was answered provisionally since a query was opened, that query asked for, directly or not. So if its own answer is
    provisional, all of them depend on its least depth, too: they form one segment, which is cut off as a whole.
    """

    __slots__ = ("_depths", "_places", "_starts", "keys")

    def __init__(self) -> None:
        self.keys: list[Hashable] = []
        self._places: dict[Hashable, int] = {}
        # For each segment, where it starts and its least depth.
        self._starts: list[int] = []
        self._depths: list[int] = []

    def depth(self, key: Hashable) -> int:
        """The least depth that an answer depends on."""
        return self._depths[bisect_right(self._starts, self._places[key]) - 1]

    def append(self, key: Hashable, start: int, depth: int) -> None:
        """Add a query; it and all since ``start`` depend on an open query at ``depth``."""
        self._cut_segments(start)
        self._starts.append(start)
        self._depths.append(depth)
        self._places[key] = len(self.keys)
        self.keys.append(key)

    def cut(self, start: int) -> list[Hashable]:
        """Take back the queries since ``start``."""
        self._cut_segments(start)
        taken = self.keys[start:]
        del self.keys[start:]
        for each in taken:
            del self._places[each]
        return taken

    def _cut_segments(self, start: int) -> None:
        while self._starts and self._starts[-1] >= start:
            self._starts.pop()
            self._depths.pop()


_Answer = TypeVar("_Answer")


class FixpointSolver(Generic[_Answer]):
    """Fixpoint iteration over a lattice: the least fixpoint of recursive equations, solved depth first, in rounds.

    A query that is asked while it is being answered gets what the rounds so far have found, at first the least element. The
    outermost query of a cycle is repeated until no answer of the cycle changes; the answers inside it last for one round. All of
    a cycle depend on what any of them has read.
    Answers only grow in the lattice and are widened after some rounds, so the iteration ends; and they depend on the queries
    alone, not on which was asked first. The lattice is given by its least element, its join, and a widening, after which
    every answer changes only finitely often. Under early cutoff answers are compared if it ``recomputes``: then the way to compute one
    must hold in later revisions, unless a file that it read itself has changed.
    """

    def __init__(
        self,
        bottom: _Answer,
        join: Callable[[_Answer, _Answer], _Answer],
        widen: Callable[[_Answer, _Answer], _Answer],
        reads: DependencyTracker | None = None,
        *,
        recomputes: bool = False,
    ) -> None:
        self._bottom, self._join, self._widen = bottom, join, widen
        self._recomputes = recomputes
        self._reads = reads or DependencyTracker((), incremental=False)
        # The dependencies of the known answers; empty unless incremental, or under early cutoff.
        self._dependencies: dict[Hashable, int] = {}
        self._index: DependencyIndex[Hashable] = DependencyIndex()
        self._known: dict[Hashable, _Answer] = {}
        # Under early cutoff the known answers, and stale ones.
        self._answers = AnswerTable(self._reads)
        # Open queries with their depth, and what they are assumed to be while they are open.
        self._open: dict[Hashable, int] = {}
        self._assumed: dict[Hashable, _Answer] = {}
        self._changes = 0
        self._change_counts: dict[Hashable, int] = {}
        # The least depth of an open query that was asked since the innermost one was opened.
        self._lowest = NO_CYCLE
        # Provisional answers of this round.
        self._round: dict[Hashable, _Answer] = {}
        self._trail = ProvisionalTrail()

    @property
    def nesting(self) -> int:
        """How many queries are open."""
        return len(self._open)

    def knows(self, key: Hashable) -> bool:
        """Whether asking costs nothing."""
        return key in self._known or key in self._open or key in self._round

    def reset(self) -> None:
        """Forget the queries that were open when an exception was raised."""
        self._open, self._assumed, self._change_counts, self._round, self._lowest = {}, {}, {}, {}, NO_CYCLE
        self._trail = ProvisionalTrail()

    def solve(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        """The answer to a query."""
        if (known := self._known.get(key)) is not None:
            if self._reads.early_cutoff:
                self._reads.asked.append(self._answers.of(key))
            elif self._reads.incremental:
                self._reads.dependencies |= self._dependencies[key]
            return known
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return self._assumed.get(key, self._bottom)
        if (provisional := self._round.get(key)) is not None:
            self._lowest = min(self._lowest, self._trail.depth(key))
            return provisional
        if (stored := self._answers.get(key)) is not None and self._answers.revalidated(stored):
            self._reads.asked.append(stored)
            self._known[key] = stored.value
            return stored.value  # type: ignore[no-any-return]
        return self._answer(key, compute)

    def invalidate(self, changed: int) -> None:
        """Drop the answers that depend on anything that has changed. To be called between queries."""
        for key in (*self._index.take(changed), *self._answers.invalidate(changed)):
            self._known.pop(key, None)
            self._dependencies.pop(key, None)

    def _recompute(self, key: Hashable, compute: Callable[[], _Answer]) -> None:
        """Answer a query again to see whether it comes out the same. No open query has asked for it, so what is provisional is dropped."""
        start = len(self._trail.keys)
        before = self._lowest, self._changes, {**self._assumed}, {**self._change_counts}
        try:
            self.solve(key, compute)
        finally:
            self._take_back(start)
            self._lowest, self._changes, self._assumed, self._change_counts = before

    def _answer(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        reads = self._reads
        outer, reads.dependencies, asked = reads.dependencies, 0, len(reads.asked)
        try:
            return self._iterated(key, compute, asked)
        finally:
            reads.dependencies |= outer

    def _iterated(self, key: Hashable, compute: Callable[[], _Answer], asked: int) -> _Answer:
        depth = self._open[key] = len(self._open)
        outside, start = self._lowest, len(self._trail.keys)
        while True:
            self._lowest, before = NO_CYCLE, self._changes
            found = self._joined(key, compute())
            inside = self._lowest
            if inside > depth:
                break
            if found != self._assumed.get(key, self._bottom):
                self._assumed[key] = found
                self._change_counts[key] = self._change_counts.get(key, 0) + 1
                self._changes += 1
            if inside < depth or self._changes == before:
                break
            self._take_back(start)
        del self._open[key]
        self._lowest = min(outside, inside) if inside < depth else outside
        if inside < depth:
            self._round[key] = found
            self._trail.append(key, start, inside)
        else:
            settled = (*self._take_back(start), (key, found))
            for each, answer in settled:
                self._known[each] = answer
                self._assumed.pop(each, None)
                self._change_counts.pop(each, None)
            if self._reads.incremental:
                self._record(settled, compute, asked)
        return found

    def _joined(self, key: Hashable, found: _Answer) -> _Answer:
        """The join of what was found now and in the rounds before; widened where it keeps growing."""
        assumed = self._assumed.get(key, self._bottom)
        return (
            self._widen(assumed, found)
            if self._change_counts.get(key, 0) > limits.MAX_CHANGES_BEFORE_WIDENING
            else self._join(assumed, found)
        )

    def _take_back(self, start: int) -> list[tuple[Hashable, _Answer]]:
        """Take back the provisional answers of the round since its start."""
        return [(key, self._round.pop(key)) for key in self._trail.cut(start)]

    def _record(self, settled: Sequence[tuple[Hashable, _Answer]], compute: Callable[[], _Answer], asked: int) -> None:
        """Record what the answers of a cycle depend on: the same for all, of which the last was asked first."""
        reads = self._reads
        if not reads.early_cutoff:
            for each, _ in settled:
                self._dependencies[each] = self._index.put(each, reads.dependencies)
            return
        read, own, first = reads.dependencies, tuple(dict.fromkeys(reads.asked[asked:])), settled[-1][0]
        for each, answer in settled:
            again = partial(self._recompute, each, compute) if self._recomputes and each is first else None
            self._answers.store(each, answer, read, own, again, positional=True)
        reads.dependencies = 0
        reads.asked[asked:] = (self._answers.of(first),)
