"""Fixpoints of recursive queries: cycles are solved by tabling or over a lattice, so no answer depends on the order of questions.

``TablingSolver`` solves set equations depth first; a query that asks itself contributes nothing to itself. ``FixpointSolver`` iterates
over a lattice with join and widening. ``Budget`` bounds how many nested queries one question may ask. ``UnionFind`` and
``strongly_connected_component`` are the graph algorithms that queries use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from torchrepro_lint.query.memo_tables import (
    Compute,
    CutoffAnswer,
    DependencyIndex,
    DependencyTracker,
    RevalidatedAnswer,
    changed_answers,
    interned_names,
)


class Budget:
    """A budget for nested queries: it counts down from ``most`` while a question is open.

    The outermost question starts afresh, so that no answer depends on earlier questions.
    """

    __slots__ = ("_left", "_most", "_open")

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = 0
        self._open = 0

    def begin(self) -> None:
        """Open a question, which costs nothing itself; ``leave`` closes it."""
        if not self._open:
            self._left = self._most
        self._open += 1

    def spend(self) -> bool:
        """Spend one unit on a nested question, until ``leave``. Returns False, with nothing to leave, where none is left."""
        if self._open and self._left <= 0:
            return False
        self.begin()
        self._left -= 1
        return True

    def leave(self) -> None:
        """Close the question that was opened last."""
        self._open -= 1


_Value = TypeVar("_Value")

# A depth below which no question is open.
_NO_CYCLE = 1 << 60


class TablingSolver:
    """Tabling for recursive set equations, solved depth first: a query that asks itself breaks the cycle with the empty set.

    An answer depends on its query alone, never on what was asked before, so that the findings of a file never depend on which files
    were given. Therefore an answer that depends on a broken cycle is provisional: it is used until the query at which the
    cycle was broken has been answered, and then forgotten. A known answer of one query of a cycle is not used for
    another query of that cycle either. A query costs at most one walk over the queries that it leads to.

    A query inherits all dependencies of the queries that it asks, but only the answer's own bit of a query under early cutoff.
    When files have changed, ``revalidate`` computes such answers again and compares them.
    """

    __slots__ = (
        *("_cycles", "_dependencies", "_dropped", "_index", "_known", "_lowest", "_open", "_provisional", "_reads"),
        *("_trail", "_under_cutoff", "busy", "in_isolation"),
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
        # Answers under early cutoff (none of a cycle); those dropped and not yet revalidated, with their old values.
        self._under_cutoff: dict[Hashable, CutoffAnswer] = {}
        self._dropped: dict[Hashable, tuple[CutoffAnswer, tuple[str, ...]]] = {}
        # Open queries, each with its depth; the least depth at which a cycle was broken while the innermost is answered.
        self._open: dict[Hashable, int] = {}
        self._lowest = _NO_CYCLE
        # Provisional answers, each with the least depth that it depends on; their queries in the order of answering.
        self._provisional: dict[Hashable, tuple[tuple[str, ...], int]] = {}
        self._trail: list[Hashable] = []

    def solve(self, key: Hashable, compute: Compute, *, early_cutoff: bool = False) -> tuple[str, ...]:
        """The sorted, distinct names that ``compute`` gives for ``key``."""
        if self._reads.incremental:
            self._reads.dependencies |= self._dependencies.get(key, 0)
        known = self._known.get(key)
        if known is not None and ((cycle := self._cycles.get(key)) is None or cycle.isdisjoint(self._open)):
            return known
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return ()
        if provisional := self._provisional.get(key):
            answer, depth = provisional
            self._lowest = min(self._lowest, depth)
            return answer
        return self._compute(key, compute, early_cutoff)

    def mark_provisional(self) -> None:
        """The open queries depend on where they were asked: of their answers only the outermost one is stored."""
        if self._open:
            self._lowest = 0

    def with_finality(self, compute: Callable[[], _Value]) -> tuple[_Value, bool]:
        """What ``compute`` gives, perhaps while a query is open, and whether it is final: it depends on no broken cycle, so it
        would be the same at any other time.
        """
        outside, self._lowest = self._lowest, _NO_CYCLE
        try:
            found = compute()
            return found, self._lowest == _NO_CYCLE
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
            for slot, value in zip(self.__slots__, saved, strict=True):
                setattr(self, slot, value)

    def invalidate(self, changed: int) -> None:
        """Drop the answers that depend on anything that has changed. To be called between queries."""
        for key in self._index.take(changed):
            self._dependencies.pop(key, None)
            self._cycles.pop(key, None)
            known, cutoff = self._known.pop(key, None), self._under_cutoff.pop(key, None)
            if known is not None and cutoff is not None:
                self._dropped[key] = cutoff, known

    def revalidate(self) -> int:
        """Compute again the dropped answers under early cutoff; returns the bits of those that differ now."""
        dropped, self._dropped = self._dropped, {}
        revalidated = [
            self._compared(key, *before) for key, before in sorted(dropped.items(), key=lambda each: repr(each[0]))
        ]
        return changed_answers(revalidated, self._under_cutoff.values())

    def _compared(self, key: Hashable, old: CutoffAnswer, known: tuple[str, ...]) -> RevalidatedAnswer:
        same = self.solve(key, old.compute, early_cutoff=True) == known
        new = self._under_cutoff.get(key)
        return RevalidatedAnswer(
            old.bit, self._dependencies[key] if new is None else new.dependencies, same and new is not None
        )

    def _compute(self, key: Hashable, compute: Compute, early_cutoff: bool) -> tuple[str, ...]:
        busy, self.busy = self.busy, True
        depth = self._open[key] = len(self._open)
        outside, self._lowest = self._lowest, _NO_CYCLE
        mark = len(self._trail)
        read, self._reads.dependencies = self._reads.dependencies, 0
        try:
            found = set(compute())
            answer = interned_names(tuple(found)) if len(found) == 1 else tuple(sorted(found))
        except BaseException:
            self._forget(mark)
            raise
        finally:
            del self._open[key]
            self.busy = busy
            depends_on = self._reads.dependencies
            self._reads.dependencies |= read
            inside, self._lowest = self._lowest, min(outside, self._lowest if self._lowest < depth else _NO_CYCLE)
        if inside < depth:
            self._suspend(key, answer, mark, inside)
            early_cutoff = False
        else:
            cycle = self._forget(mark) if len(self._trail) > mark else []
            self._settle(key, answer, cycle)
            early_cutoff = early_cutoff and self._reads.early_cutoff and not cycle
        if self._reads.incremental:
            self._keep(key, depends_on)
            if early_cutoff:
                own = self._dependencies[key] = self._reads.answer(key)
                self._under_cutoff[key] = CutoffAnswer(compute, own, depends_on)
                self._reads.dependencies = read | own
        return answer

    def _keep(self, key: Hashable, depends_on: int) -> None:
        """Remember the dependencies of an answer. A known one of a cycle may be computed again in part."""
        self._dependencies[key] = self._index.put(key, depends_on | self._dependencies.get(key, 0))

    def _settle(self, key: Hashable, answer: tuple[str, ...], cycle: list[Hashable]) -> None:
        self._known[key] = answer
        if cycle:
            self._cycles[key] = frozenset(cycle)

    def _suspend(self, key: Hashable, answer: tuple[str, ...], mark: int, lowest: int) -> None:
        """Keep an answer while the query at depth ``lowest`` is open; what depended on ``key`` depends on that one, too."""
        self._provisional[key] = (answer, lowest)
        for each in self._trail[mark:]:
            known, least = self._provisional[each]
            self._provisional[each] = (known, min(least, lowest))
        self._trail.append(key)

    def _forget(self, mark: int) -> list[Hashable]:
        """Drop the provisional answers since ``mark``; returns their queries."""
        dropped = self._trail[mark:]
        del self._trail[mark:]
        for each in dropped:
            del self._provisional[each]
        return dropped


_Answer = TypeVar("_Answer")

# After so many changes an answer is widened.
_WIDENING_DELAY = 2


class FixpointSolver(Generic[_Answer]):
    """Fixpoint iteration over a lattice: the least fixpoint of recursive equations, solved depth first, in rounds.

    A query that is asked while it is being answered gets what the rounds so far have found, at first the least element. The
    outermost query of a cycle is repeated until no answer of the cycle changes; the answers inside it last for one round.
    Answers only grow in the lattice and are widened after some rounds, so the iteration ends; and they depend on the queries
    alone, not on which was asked first. The lattice is given by its least element, its join, and a widening, after which
    every answer changes only finitely often.
    """

    def __init__(
        self,
        bottom: _Answer,
        join: Callable[[_Answer, _Answer], _Answer],
        widen: Callable[[_Answer, _Answer], _Answer],
    ) -> None:
        self._bottom, self._join, self._widen = bottom, join, widen
        self._known: dict[Hashable, _Answer] = {}
        # Open queries with their depth, and what they are assumed to be while they are open.
        self._open: dict[Hashable, int] = {}
        self._assumed: dict[Hashable, _Answer] = {}
        self._changes = 0
        self._change_counts: dict[Hashable, int] = {}
        # The least depth of an open query that was asked since the innermost one was opened.
        self._lowest = _NO_CYCLE
        # Provisional answers of this round, in order, each with the least depth of an open query that it depends on.
        self._round: dict[Hashable, tuple[_Answer, int]] = {}

    @property
    def nesting(self) -> int:
        """How many queries are open."""
        return len(self._open)

    def knows(self, key: Hashable) -> bool:
        """Whether asking costs nothing."""
        return key in self._known or key in self._open or key in self._round

    def reset(self) -> None:
        """Forget the queries that were open when an exception was raised."""
        self._open, self._assumed, self._change_counts, self._round, self._lowest = {}, {}, {}, {}, _NO_CYCLE

    def solve(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        """The answer to a query."""
        if (known := self._known.get(key)) is not None:
            return known
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return self._assumed.get(key, self._bottom)
        if (provisional := self._round.get(key)) is not None:
            self._lowest = min(self._lowest, provisional[1])
            return provisional[0]
        return self._answer(key, compute)

    def _answer(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        depth = self._open[key] = len(self._open)
        outside, start = self._lowest, len(self._round)
        while True:
            self._lowest, before = _NO_CYCLE, self._changes
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
            self._suspend(key, found, start, inside)
        else:
            self._settle(key, found, start)
        return found

    def _joined(self, key: Hashable, found: _Answer) -> _Answer:
        """The join of what was found now and in the rounds before; widened where it keeps growing."""
        assumed = self._assumed.get(key, self._bottom)
        return (
            self._widen(assumed, found)
            if self._change_counts.get(key, 0) > _WIDENING_DELAY
            else self._join(assumed, found)
        )

    def _take_back(self, start: int) -> list[tuple[Hashable, _Answer, int]]:
        """Take back the provisional answers of the round since its start."""
        taken = []
        while len(self._round) > start:
            key, (found, lowest) = self._round.popitem()
            taken.append((key, found, lowest))
        return taken

    def _suspend(self, key: Hashable, found: _Answer, start: int, lowest: int) -> None:
        for each, what, least in reversed(self._take_back(start)):
            self._round[each] = (what, min(least, lowest))
        self._round[key] = (found, lowest)

    def _settle(self, key: Hashable, found: _Answer, start: int) -> None:
        for each, what, _ in self._take_back(start):
            self._known[each] = what
            self._assumed.pop(each, None)
            self._change_counts.pop(each, None)
        self._known[key] = found
        self._assumed.pop(key, None)
        self._change_counts.pop(key, None)


class UnionFind:
    """Union-find over words: at first each word is a group by itself."""

    def __init__(self, words: Iterable[str]) -> None:
        self._above = {word: word for word in words}

    def join(self, one: str, other: str) -> None:
        """Put both words in one group."""
        self._above[self._top(one)] = self._top(other)

    def together(self, one: str, other: str) -> bool:
        """Whether both are in one group."""
        return self._top(one) == self._top(other)

    def sorted(self) -> tuple[tuple[str, ...], ...]:
        """The groups, and what is in them, sorted."""
        found: dict[str, list[str]] = {}
        for word in sorted(self._above):
            found.setdefault(self._top(word), []).append(word)
        return tuple(sorted(map(tuple, found.values())))

    def sums(self, weights: Mapping[str, int]) -> Collection[int]:
        """The total weight of each group."""
        found: dict[str, int] = {}
        for word, weight in weights.items():
            top = self._top(word)
            found[top] = found.get(top, 0) + weight
        return found.values()

    def _top(self, word: str) -> str:
        above = self._above
        while above[word] != word:
            above[word] = word = above[above[word]]
        return word


class CallEdge(Protocol):
    """A call edge, stored with its callee."""

    @property
    def caller(self) -> str:
        """The calling function."""
        ...


def strongly_connected_component(callers: Mapping[str, Sequence[CallEdge]], function: str) -> frozenset[str]:
    """The strongly connected component of a function in the call graph; empty where the function cannot reach itself.

    ``callers`` has the call edges into each function.
    """
    callees: dict[str, list[str]] = {}
    queue, above = [function], {function}
    while queue:
        inner = queue.pop()
        for each in callers.get(inner, ()):
            callees.setdefault(each.caller, []).append(inner)
            if each.caller not in above:
                above.add(each.caller)
                queue.append(each.caller)
    found = _reachable(function, callees)
    return frozenset(found if function in found else ())


def _reachable(function: str, callees: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    queue = [function]
    while queue:
        for each in callees.get(queue.pop(), ()):
            if each not in found:
                found.add(each)
                queue.append(each)
    return found
