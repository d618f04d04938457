"""Tabling of recursive queries: set equations with cycles, solved so that no answer depends on the order of questions.

A query that asks itself contributes nothing to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from torchrepro_lint import limits
from torchrepro_lint.query.cycles import NO_CYCLE, Asked, Compute, CycleSolver
from torchrepro_lint.query.memo_tables import MISSING, DependencyTracker, MemoTable

_Value = TypeVar("_Value")
_Names = tuple[str, ...]

# Below every depth: an answer depends on where its query was asked.
_PLACED = -1


# The queries of a cycle.
_Cycle: TypeAlias = frozenset[Asked]


class _OnCycle(NamedTuple):
    """A final answer that was found on a cycle, or depends on some, with these. Where their queries change, so may the answers of what
    asked for it: it may itself be on the cycle now.
    """

    answer: Any
    cycles: frozenset[_Cycle]


class SetEquations:
    """The cycle policy of queries that give names, in any order, and whose answers are sets of them. Queries that may lead to one another
    share one: it names the solver of a database.
    """

    def solver(self, reads: DependencyTracker) -> TablingSolver:
        """A new solver."""
        return TablingSolver(reads)


class TablingSolver(CycleSolver):
    """Tabling for recursive set equations, solved depth first: a query that asks itself breaks the cycle with the empty set.

    An answer depends on its query alone, never on what was asked before, so that the findings of a file never depend on which files
    were given. Therefore an answer that depends on a broken cycle is forgotten once the query at which the cycle was broken has been
    answered, and a known answer of one query of a cycle is not used for another query of that cycle. A query costs at most one walk
    over the queries that it leads to.

    Two kinds of strongly connected components are solved for all their queries in one pass. If all answers of a component are
    empty, they are so wherever the cycle is broken. And a component so large that a walk for each query would take minutes
    gets its least solution, if that is found.
    """

    positional: ClassVar[bool] = False
    _kept: ClassVar[tuple[str, ...]] = ("_lowest", "_used_cycles")

    def __init__(self, reads: DependencyTracker | None = None) -> None:
        super().__init__(reads)
        self.in_isolation = False
        # The answers of queries on cycles, which only queries outside of the cycle use.
        self._on_cycles = self.table()

    def begin(self) -> None:
        """See ``CycleSolver``."""
        super().begin()
        # The cycles on which answers that were used were found: they may be others where a query of the cycle is open. Cycles that
        # have the same queries are one.
        self._used_cycles: frozenset[_Cycle] = frozenset()
        self._cycles: dict[_Cycle, _Cycle] = {}
        self._cycles_revision = self._reads.revision
        # The answers so far of the large component that is being solved, with the depth of its outermost query; and the queries
        # of large components of which no solution was found, with the revision.
        self._assumed: dict[Asked, tuple[_Names, int]] = {}
        self._endless: dict[Asked, int] = {}

    def mark_provisional(self) -> None:
        """The open queries depend on where they were asked: of their answers only the outermost one is stored."""
        if self._open:
            self._lowest = _PLACED

    def final_answer(self, table: MemoTable[Any, Any], key: Hashable, compute: Callable[[], _Value]) -> _Value:
        """The answer of a table outside of the equations, asked for perhaps while a query is open: remembered if it is final. If it depends
        on cycles, it holds where no query of these is open, and a provisional answer as long as the trail has it.
        """
        if self.in_isolation:
            return compute()
        query: Asked = table, key
        if (known := table.find(key, MISSING)) is not MISSING:
            table.record(key)
            return known  # type: ignore[no-any-return]
        if (known := self._looked_up(query)) is not MISSING:
            return known  # type: ignore[no-any-return]
        reads, start = self._reads, len(self._trail.queries)
        outer, reads.dependencies, mark = reads.dependencies, 0, len(reads.asked)
        lowest, self._lowest = self._lowest, NO_CYCLE
        used, self._used_cycles = self._used_cycles, frozenset()
        try:
            found, cycles = compute(), self._used_cycles
            if self._lowest != NO_CYCLE:
                self._trail.append(query, start, self._lowest, found, None, reads.dependencies)
            else:
                again = partial(self._apart, partial(self.final_answer, table, key, compute))
                there: MemoTable[Any, Any] = self._on_cycles if cycles else table
                its_key = query if cycles else key
                there.put(its_key, _OnCycle(found, cycles) if cycles else found, reads.since(mark), again)
                there.fold(its_key, mark)
            return found
        finally:
            reads.dependencies |= outer
            self._lowest = min(lowest, self._lowest)
            self._used_cycles |= used

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Start without answers: for what is computed once for the whole project, perhaps while a query is open.

        Nothing that is computed so may build on another such computation, or their order would matter: ``in_isolation`` says so.
        """
        own = ("_open", "_trail", "_assumed", "_endless", "_cycles", "in_isolation", *self._kept)
        tables = tuple(self.tables)
        before: list[tuple[object, str, Any]] = [(self, slot, getattr(self, slot)) for slot in own]
        before += [(each, slot, getattr(each, slot)) for each in tables for slot in each.answers]
        self.begin()
        for each in tables:
            each.begin()
        self.in_isolation = True
        try:
            with self._reads.untracked():
                yield
        finally:
            self.clear()
            for owner, slot, value in before:
                setattr(owner, slot, value)

    def _looked_up(self, query: Asked) -> Any:
        if self._assumed and (assumed := self._assumed.get(query)) is not None:
            answer, depth = assumed
            self._lowest = min(self._lowest, depth)
            return answer
        return super()._looked_up(query)

    def _remembered(self, query: Asked) -> Any:
        found = self._found_on_cycle(query)
        return super()._remembered(query) if found is MISSING else found

    def _found_on_cycle(self, query: Asked) -> Any:
        """A remembered answer that depends on cycles of which no query is open, or ``MISSING``."""
        known = self._on_cycles.find(query)
        if known is None or not all(each.isdisjoint(self._open) for each in known.cycles):
            return MISSING
        self._used_cycles |= known.cycles
        self._on_cycles.record(query)
        return known.answer

    def _evaluate(self, query: Asked, compute: Compute, depth: int, start: int) -> tuple[Any, Mapping[Asked, Any]]:
        before = self._used_cycles
        answer = tuple(sorted(set(compute())))
        self._used_cycles = before
        others = self._trail.since(start)
        if others and self._lowest == depth and self._endless.get(query) != self._reads.revision:
            solution = self._solution(query, compute, {**others, query: answer}, start)
            if solution:
                return solution[query], solution
        if self._lowest < depth and depth:
            return answer, {}
        if not others:
            return answer, {query: answer}
        if self._cycles_revision != self._reads.revision:  # cycles of older ones go with their answers
            self._cycles_revision, self._cycles = self._reads.revision, {}
        cycle = frozenset((*others, query))
        cycles = frozenset((self._cycles.setdefault(cycle, cycle),))
        self._used_cycles |= cycles
        return answer, {(self._on_cycles, query): _OnCycle(answer, cycles)}

    def _solution(
        self, query: Asked, compute: Compute, found: Mapping[Asked, _Names], start: int
    ) -> Mapping[Asked, _Names]:
        """The answers of all queries of the component whose outermost query is open, ``found`` in one pass; else none."""
        if not any(found.values()):
            return found
        if len(found) <= limits.MAX_QUERIES_SOLVED_APART + 1:
            return {}
        equations = {**self._trail.equations(start), query: compute}
        self._trail.cut(start)
        return self._least_solution(equations, found, self._open[query], start)

    def _least_solution(
        self, equations: Mapping[Asked, Compute], below: Mapping[Asked, _Names], depth: int, start: int
    ) -> Mapping[Asked, _Names]:
        """The least solution of equations by Gauss-Seidel iteration in the order of answering; none where it does not end.

        It starts ``below`` the solution: there, the cycle is broken. None either if the component turns out to be a part of another.
        """
        outer, self._assumed = self._assumed, {**self._assumed, **{each: (below[each], depth) for each in below}}
        try:
            for _ in range(limits.MAX_FIXPOINT_ROUNDS):
                changed = False
                for query, compute in equations.items():
                    found = tuple(sorted(set(compute())))
                    if self._lowest < depth:
                        return {}
                    if len(found) > limits.MAX_FIXPOINT_NAMES:
                        self._endless.update(dict.fromkeys(equations, self._reads.revision))
                        return {}
                    changed |= found != self._assumed[query][0]
                    self._assumed[query] = found, depth
                self._trail.cut(start)
                if not changed:
                    return {query: self._assumed[query][0] for query in equations}
        finally:
            self._assumed = outer
        self._endless.update(dict.fromkeys(equations, self._reads.revision))
        return {}
