"""Fixpoints of recursive queries over a lattice, with join and widening; no answer depends on the order of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from torchrepro_lint import limits
from torchrepro_lint.query.cycles import NO_CYCLE, Asked, Compute, CycleSolver
from torchrepro_lint.query.memo_tables import DependencyTracker

_Answer = TypeVar("_Answer")


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
