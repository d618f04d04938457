"""Cycles of queries, and their fixpoints: a solver answers queries that may lead back to themselves depth first, and
shares what the two kinds need.

A query that is asked while it is open, and so leads back to itself, breaks the cycle: the kind of solver says what it is then assumed to
be. An answer that depends on that is provisional: it lasts until the query at which the cycle was broken has been answered, and no table
remembers it. ``tabling`` solves set equations, ``FixpointSolver`` equations over a lattice, with join and widening; no answer depends
on the order of questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping
from copy import copy
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from torchrepro_lint import limits
from torchrepro_lint.query.early_cutoff import new_table
from torchrepro_lint.query.memo_tables import MISSING, DependencyTracker, MemoTable

_Answer = TypeVar("_Answer")

# A depth below which no query is open.
NO_CYCLE = 1 << 60
# A query, by the table of its answers, and its key.
Asked: TypeAlias = tuple[MemoTable[Any, Any], Hashable]
Compute: TypeAlias = Callable[[], Any]


class Provisional(NamedTuple):
    """A provisional answer, how it is computed (None outside of the equations), what its query read, and its number on the trail."""

    answer: Any
    compute: Compute | None
    read: int
    number: int


class ProvisionalTrail:
    """Provisional answers in the order of answering, each with the least depth of an open query that it depends on.

    What was answered provisionally since a query was opened, that query asked for, directly or not. So if its own answer is
    provisional, all of them depend on its least depth, too: they form one segment, which is cut off as a whole.
    """

    __slots__ = ("_depths", "_starts", "answers", "queries")

    def __init__(self) -> None:
        self.queries: list[Asked] = []
        self.answers: dict[Asked, Provisional] = {}
        # For each segment, where it starts and its least depth.
        self._starts: list[int] = []
        self._depths: list[int] = []

    def depth(self, answer: Provisional) -> int:
        """The least depth that an answer depends on."""
        return self._depths[bisect_right(self._starts, answer.number) - 1]

    def append(self, query: Asked, start: int, depth: int, answer: Any, compute: Compute | None, read: int) -> None:
        """Add a query; it and all since ``start`` depend on an open query at ``depth``."""
        self._cut_segments(start)
        self._starts.append(start)
        self._depths.append(depth)
        # One outside of the equations is never open, so that it may have been asked again, and answered, while it was answered.
        known = self.answers.get(query)
        self.answers[query] = Provisional(answer, compute, read, len(self.queries) if known is None else known.number)
        if known is None:
            self.queries.append(query)

    def since(self, start: int) -> dict[Asked, Any]:
        """The answers since ``start`` to queries of the equations."""
        found = ((each, self.answers[each]) for each in self.queries[start:])
        return {query: known.answer for query, known in found if known.compute is not None}

    def equations(self, start: int) -> dict[Asked, Compute]:
        """How these are computed."""
        found = ((each, self.answers[each].compute) for each in self.queries[start:])
        return {query: compute for query, compute in found if compute is not None}

    def cut(self, start: int) -> None:
        """Drop the answers since ``start``."""
        self._cut_segments(start)
        for each in self.queries[start:]:
            del self.answers[each]
        del self.queries[start:]

    def _cut_segments(self, start: int) -> None:
        while self._starts and self._starts[-1] >= start:
            self._starts.pop()
            self._depths.pop()


class CycleSolver(ABC):
    """A solver of queries that may lead back to themselves; those that may lead to one another share it.

    Their answers depend on the queries alone, never on which was asked first. So a final answer is remembered in the table of its query,
    and a provisional one on the trail. All queries that become final together depend on what any of them has read.
    """

    # Whether the keys are parts of files; see ``VerifiedTable``.
    positional: ClassVar[bool]
    # What is as before once an answer was computed only to be compared.
    _kept: ClassVar[tuple[str, ...]] = ("_lowest",)

    def __init__(self, reads: DependencyTracker | None = None) -> None:
        self._reads = reads or DependencyTracker((), incremental=False)
        self.tables: list[MemoTable[Any, Any]] = []
        self.begin()

    def begin(self) -> None:
        """Begin with no open query."""
        # Open queries, each with its depth; the least depth at which a cycle was broken while the innermost is answered.
        self._open: dict[Asked, int] = {}
        self._lowest = NO_CYCLE
        self._trail = ProvisionalTrail()

    def table(self, most: int | None = None, *, compare: bool = True) -> MemoTable[Any, Any]:
        """A new table, whose answers this solver computes; see ``new_table``."""
        self.tables.append(new_table(self._reads, most, self.solve, compare=compare, positional=self.positional))
        return self.tables[-1]

    def clear(self) -> None:
        """Drop the answers of all tables. To be called between queries."""
        for each in self.tables:
            each.clear()

    @property
    def nesting(self) -> int:
        """How many queries are open."""
        return len(self._open)

    def knows(self, table: MemoTable[Any, Any], key: Hashable) -> bool:
        """Whether asking costs nothing."""
        query = table, key
        return query in self._open or query in self._trail.answers or table.knows(key)

    def solve(self, table: MemoTable[Any, Any], key: Any, compute: Compute, /) -> Any:
        """The answer for a key that its table does not know."""
        query = table, key
        if (known := self._looked_up(query)) is not MISSING:
            return known
        reads, trail = self._reads, self._trail
        depth = self._open[query] = len(self._open)
        outside, self._lowest, start = self._lowest, NO_CYCLE, len(trail.queries)
        outer, reads.dependencies, mark = reads.dependencies, 0, len(reads.asked)
        try:
            answer, final = self._evaluate(query, compute, depth, start)
            if final:
                if len(trail.queries) > start:
                    trail.cut(start)
                self._settle(query, final, compute, mark)
            else:
                trail.append(query, start, self._lowest, answer, compute, reads.dependencies)
            return answer
        except BaseException:
            trail.cut(start)
            raise
        finally:
            del self._open[query]
            reads.dependencies |= outer
            self._lowest = min(outside, self._lowest) if self._lowest < depth and depth else outside

    @abstractmethod
    def _evaluate(self, query: Asked, compute: Compute, depth: int, start: int) -> tuple[Any, Mapping[Asked, Any]]:
        """The answer to an open query, and all answers that are final with it, its own as the last; none where it is provisional.
        ``start`` is where the trail was when it was opened.
        """

    def _assumption(self, _query: Asked) -> Any:
        """What an open query that leads back to itself is assumed to be: the empty set."""
        return ()

    def _looked_up(self, query: Asked) -> Any:
        """The answer to a query that needs no evaluation, or ``MISSING``."""
        if (depth := self._open.get(query)) is not None:
            self._lowest = min(self._lowest, depth)
            return self._assumption(query)
        if (provisional := self._trail.answers.get(query)) is not None:
            self._lowest = min(self._lowest, self._trail.depth(provisional))
            self._reads.dependencies |= provisional.read
            return provisional.answer
        return self._remembered(query)

    def _remembered(self, query: Asked) -> Any:
        """A final answer that is remembered, or ``MISSING``; its table may have a stale one."""
        table, key = query
        if not self._reads.early_cutoff or (known := table.find(key, MISSING)) is MISSING:
            return MISSING
        table.record(key)
        return known

    def _settle(self, query: Asked, final: Mapping[Asked, Any], compute: Compute, mark: int) -> None:
        """Remember the answers that are final together with that to ``query``, the last of them."""
        depends_on = self._reads.since(mark)
        if not self._reads.early_cutoff:
            for (table, key), answer in final.items():
                table.put(key, answer, depends_on)
            return
        *others, (table, key) = final
        for there, its_key in others:
            there.put(its_key, final[there, its_key], depends_on)
        table.put(key, final[table, key], depends_on, partial(self._apart, partial(query[0].of, query[1], compute)))
        table.fold(key, mark)

    def _apart(self, again: Compute) -> None:
        """Answer a query again to see whether it comes out the same. No open query has asked for it, so what is provisional is dropped."""
        start, before = len(self._trail.queries), {slot: copy(getattr(self, slot)) for slot in self._kept}
        try:
            again()
        finally:
            self._trail.cut(start)
            for slot, value in before.items():
                setattr(self, slot, value)


class Lattice(Generic[_Answer]):
    """The cycle policy of queries whose answers are elements of a lattice, given by its least element, its join, and a widening, after
    which every answer changes only finitely often. Queries that may lead to one another share one: it names the solver of a database.
    """

    def __init__(
        self,
        bottom: _Answer,
        join: Callable[[_Answer, _Answer], _Answer],
        widen: Callable[[_Answer, _Answer], _Answer],
    ) -> None:
        self.bottom, self.join, self.widen = bottom, join, widen

    def solver(self, reads: DependencyTracker) -> FixpointSolver[_Answer]:
        """A new solver."""
        return FixpointSolver(self, reads)


class FixpointSolver(CycleSolver, Generic[_Answer]):
    """Fixpoint iteration over a lattice: the least fixpoint of recursive equations, solved depth first, in rounds.

    A query that is asked while it is being answered gets what the rounds so far have found, at first the least element. The
    outermost query of a cycle is repeated until no answer of the cycle changes; the answers inside it last for one round.
    Answers only grow in the lattice and are widened after some rounds, so the iteration ends.
    """

    positional: ClassVar[bool] = True
    _kept: ClassVar[tuple[str, ...]] = ("_lowest", "_changes", "_assumed", "_change_counts")

    def __init__(self, lattice: Lattice[_Answer], reads: DependencyTracker | None = None) -> None:
        self._bottom, self._join, self._widen = lattice.bottom, lattice.join, lattice.widen
        super().__init__(reads)

    def begin(self) -> None:
        """See ``CycleSolver``."""
        super().begin()
        # What queries on a cycle are assumed to be, until its outermost one is answered, and how often that has changed.
        self._assumed: dict[Asked, _Answer] = {}
        self._change_counts: dict[Asked, int] = {}
        self._changes = 0

    def _assumption(self, query: Asked) -> _Answer:
        return self._assumed.get(query, self._bottom)

    def _evaluate(self, query: Asked, compute: Compute, depth: int, start: int) -> tuple[Any, Mapping[Asked, Any]]:
        if not depth:
            # Whatever is left of a query that failed.
            self._assumed, self._change_counts = {}, {}
        outside = self._changes
        while True:
            self._lowest, before = NO_CYCLE, self._changes
            assumed, count = self._assumed.get(query, self._bottom), self._change_counts.get(query, 0)
            # Where an answer keeps growing, it is widened.
            grown = self._widen if count > limits.MAX_CHANGES_BEFORE_WIDENING else self._join
            found = grown(assumed, compute())
            if self._lowest > depth:
                break
            if found != assumed:
                self._assumed[query], self._change_counts[query] = found, count + 1
                self._changes += 1
            if self._lowest < depth:
                return found, {}
            if self._changes == before:
                break
            self._trail.cut(start)
        # What is final now changes no more: it is no reason to repeat a cycle around it.
        self._changes = outside
        final = {**self._trail.since(start), query: found}
        for each in final if self._assumed else ():
            self._assumed.pop(each, None)
            self._change_counts.pop(each, None)
        return found, final
