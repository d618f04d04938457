"""Tabling of recursive queries: set equations with cycles, solved so that no answer depends on the order of questions.

A query that asks itself contributes nothing to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar

from torchrepro_lint import limits
from torchrepro_lint.query.early_cutoff import AnswerTable
from torchrepro_lint.query.fixpoint import NO_CYCLE, ProvisionalTrail
from torchrepro_lint.query.memo_tables import DependencyIndex, DependencyTracker, interned_names

Compute: TypeAlias = Callable[[], Iterable[str]]
_Value = TypeVar("_Value")


class TablingSolver:
    """Tabling for recursive set equations, solved depth first: a query that asks itself breaks the cycle with the empty set.

    An answer depends on its query alone, never on what was asked before, so that the findings of a file never depend on which files
    were given. Therefore an answer that depends on a broken cycle is provisional: it is used until the query at which the
    cycle was broken has been answered, and then forgotten. A known answer of one query of a cycle is not used for
    another query of that cycle either. A query costs at most one walk over the queries that it leads to.

    Two kinds of strongly connected components are solved for all their queries in one pass. If all answers of a component are
    empty, they are so wherever the cycle is broken. And a component so large that a walk for each query would take minutes
    gets its least solution, if that is found.

    A query inherits all dependencies of the queries that it asks. Under early cutoff final answers are in an ``AnswerTable``, and are
    compared where they have been computed again.
    """

    __slots__ = (
        *("_answers", "_assumed", "_cycles", "_dependencies", "_endless", "_index", "_known", "_lowest", "_open"),
        *("_placed", "_provisional", "_reads", "_trail", "busy", "in_isolation"),
    )

    def __init__(self, reads: DependencyTracker | None = None) -> None:
        self._reads = reads or DependencyTracker((), incremental=False)
        # Whether a query is being answered: what is computed meanwhile may depend on a broken cycle.
        self.busy = False
        self.in_isolation = False
        self._clear()

    def _clear(self) -> None:
        self._known: dict[Hashable, tuple[str, ...]] = {}
        # For a known answer that was found on a cycle: all queries of the cycle.
        self._cycles: dict[Hashable, frozenset[Hashable]] = {}
        # What a query adds to the dependencies of a query that asks it; empty unless incremental.
        self._dependencies: dict[Hashable, int] = {}
        self._index: DependencyIndex[Hashable] = DependencyIndex()
        # The final answers under early cutoff: those that are known, and stale ones.
        self._answers = AnswerTable(self._reads)
        # Open queries, each with its depth; the least depth at which a cycle was broken while the innermost is answered.
        self._open: dict[Hashable, int] = {}
        self._lowest = NO_CYCLE
        # Whether an open query depends on where it was asked.
        self._placed = False
        # Provisional answers, and how they are computed.
        self._provisional: dict[Hashable, tuple[tuple[str, ...], Compute]] = {}
        self._trail = ProvisionalTrail()
        # The answers so far of the large component that is being solved, with the depth of its outermost query; and the queries
        # of large components of which no solution was found.
        self._assumed: dict[Hashable, tuple[tuple[str, ...], int]] = {}
        self._endless: set[Hashable] = set()

    def solve(self, key: Hashable, compute: Compute) -> tuple[str, ...]:
        """The sorted, distinct names that ``compute`` gives for ``key``."""
        reads = self._reads
        if reads.early_cutoff:
            self._revalidate(key)
        elif reads.incremental:
            reads.dependencies |= self._dependencies.get(key, 0)
        known = self._known.get(key)
        if known is not None and ((cycle := self._cycles.get(key)) is None or cycle.isdisjoint(self._open)):
            if reads.early_cutoff:
                reads.asked.append(self._answers.of(key))
            return known
        if self._assumed and (assumed := self._assumed.get(key)):
            self._lowest = min(self._lowest, assumed[1])
            return assumed[0]
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return ()
        if provisional := self._provisional.get(key):
            self._lowest = min(self._lowest, self._trail.depth(key))
            return provisional[0]
        return self._compute(key, compute)

    def _revalidate(self, key: Hashable) -> None:
        """Find out whether a stale answer holds, unless it is being found out or answered already."""
        stored = self._answers.get(key)
        if stored is None or not stored.is_stale or key in self._open or key in self._provisional:
            return
        if self._answers.revalidated(stored):
            self._known[key] = stored.value

    def _recompute(self, key: Hashable, compute: Compute) -> None:
        """Answer a query again to see whether it comes out the same. No open query has asked for it, so what is provisional is dropped."""
        mark, before = len(self._trail.keys), (self._lowest, self._placed)
        try:
            self.solve(key, compute)
        finally:
            self._forget(mark)
            self._lowest, self._placed = before

    def mark_provisional(self) -> None:
        """The open queries depend on where they were asked: of their answers only the outermost one is stored."""
        if self._open:
            self._lowest, self._placed = 0, True

    def with_finality(self, compute: Callable[[], _Value]) -> tuple[_Value, bool]:
        """What ``compute`` gives, perhaps while a query is open, and whether it is final: it depends on no broken cycle, so it
        would be the same at any other time.
        """
        outside, self._lowest = self._lowest, NO_CYCLE
        try:
            found = compute()
            return found, self._lowest == NO_CYCLE
        finally:
            self._lowest = min(outside, self._lowest)

    def answers(self) -> Iterator[tuple[Hashable, tuple[str, ...], int]]:
        """All answers with their dependencies, except those on a cycle; nothing under early cutoff."""
        if not self._reads.early_cutoff:
            yield from (
                (key, answer, self._dependencies.get(key, 0))
                for key, answer in self._known.items()
                if key not in self._cycles
            )

    def restore(self, key: Hashable, answer: tuple[str, ...], depends_on: int) -> None:
        """Take over one of the ``answers`` of an earlier run on the same files."""
        if key not in self._known and not self._reads.early_cutoff:
            self._known[key] = answer
            if self._reads.incremental:
                self._keep(key, depends_on)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Start from an empty solver: for what is computed once for the whole project, perhaps while a query is open.

        Nothing that is computed so may build on another such computation, or their order would matter: ``in_isolation`` says so.
        """
        saved = [getattr(self, slot) for slot in self.__slots__]
        self._clear()
        self.busy = self.in_isolation = True
        try:
            with self._reads.untracked():
                yield
        finally:
            self._answers.clear()
            for slot, value in zip(self.__slots__, saved, strict=True):
                setattr(self, slot, value)

    def invalidate(self, changed: int) -> None:
        """Drop the answers that depend on anything that has changed. To be called between queries."""
        self._endless.clear()
        for key in (*self._index.take(changed), *self._answers.invalidate(changed)):
            self._dependencies.pop(key, None)
            self._known.pop(key, None)
            if self._answers.get(key) is None:
                self._cycles.pop(key, None)

    def _compute(self, key: Hashable, compute: Compute) -> tuple[str, ...]:
        busy, self.busy = self.busy, True
        depth = self._open[key] = len(self._open)
        outside, self._lowest = self._lowest, NO_CYCLE
        mark = len(self._trail.keys)
        reads = self._reads
        outer, reads.dependencies, asked = reads.dependencies, 0, len(reads.asked)
        cycle: list[Hashable] = []
        solution: Mapping[Hashable, tuple[str, ...]] = {}
        try:
            answer = _distinct(compute())
            cycle = self._trail.keys[mark:]
            if cycle and self._lowest == depth and not self._placed and key not in self._endless:
                solution = self._solution(key, compute, answer, cycle, mark)
                answer = solution.get(key, answer)
        except BaseException:
            self._forget(mark)
            raise
        finally:
            del self._open[key]
            self.busy, self._placed = busy, self._placed and bool(self._open)
            read = reads.dependencies
            reads.dependencies |= outer
            inside, self._lowest = self._lowest, min(outside, self._lowest if self._lowest < depth else NO_CYCLE)
        if inside < depth:
            self._provisional[key] = answer, compute
            self._trail.append(key, mark, inside)
            if reads.incremental and not reads.early_cutoff:
                self._keep(key, read)
            return answer
        if cycle:
            self._forget(mark)
        for each, found in (solution or {key: answer}).items():
            self._settle(each, found, [] if solution else cycle)
        if reads.early_cutoff:
            # Each answer of a cycle has read what all of them have.
            own = tuple(dict.fromkeys(reads.asked[asked:]))
            for each, found in solution.items():
                self._answers.store(each, found, read, own, None)
            stored = self._answers.store(key, answer, read, own, partial(self._recompute, key, compute))
            reads.dependencies = outer
            reads.asked[asked:] = (stored,)
        elif reads.incremental:
            for each in (*solution, key):
                self._keep(each, read)
        return answer

    def _keep(self, key: Hashable, depends_on: int) -> None:
        """Remember the dependencies of an answer. A known one of a cycle may be computed again in part."""
        self._dependencies[key] = self._index.put(key, depends_on | self._dependencies.get(key, 0))

    def _settle(self, key: Hashable, answer: tuple[str, ...], cycle: list[Hashable]) -> None:
        self._known[key] = answer
        if cycle:
            self._cycles[key] = frozenset(cycle)
        else:
            self._cycles.pop(key, None)

    def _forget(self, mark: int) -> None:
        """Drop the provisional answers since ``mark``."""
        for each in self._trail.cut(mark):
            del self._provisional[each]

    def _solution(
        self, key: Hashable, compute: Compute, answer: tuple[str, ...], others: list[Hashable], mark: int
    ) -> Mapping[Hashable, tuple[str, ...]]:
        """The answers of all queries of the component whose outermost query is ``key``, if they are found in one pass; else none."""
        found = {each: self._provisional[each][0] for each in others} | {key: answer}
        if not any(found.values()):
            return found
        if len(others) <= limits.MAX_QUERIES_SOLVED_APART:
            return {}
        equations = {each: self._provisional[each][1] for each in others} | {key: compute}
        self._forget(mark)
        return self._least_solution(equations, found, self._open[key], mark)

    def _least_solution(
        self,
        equations: Mapping[Hashable, Compute],
        start: Mapping[Hashable, tuple[str, ...]],
        depth: int,
        mark: int,
    ) -> Mapping[Hashable, tuple[str, ...]]:
        """The least solution of equations by Gauss-Seidel iteration in the order of answering; none where it does not end.

        ``start`` is below the solution: there, the cycle is broken. None either if the component turns out to be a part of another.
        """
        outer, self._assumed = self._assumed, {**self._assumed, **{each: (start[each], depth) for each in start}}
        try:
            for _ in range(limits.MAX_FIXPOINT_ROUNDS):
                changed = False
                for key, compute in equations.items():
                    found = _distinct(compute())
                    if self._lowest < depth:
                        return {}
                    changed |= found != self._assumed[key][0]
                    self._assumed[key] = found, depth
                self._forget(mark)
                if not changed:
                    return {key: self._assumed[key][0] for key in equations}
        finally:
            self._assumed = outer
        self._endless.update(equations)
        return {}


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The sorted, distinct names."""
    found = set(names)
    return interned_names(tuple(found)) if len(found) == 1 else tuple(sorted(found))
