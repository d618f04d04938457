"""Queries, and the database that holds their answers: ``@query`` memoises a function of a program, as salsa's tracked functions are.

A query is a function whose first parameter gives the database, and whose others are the key of an answer::

    @query(lru=32)
    def effects_in(project: Traces, function: str) -> RngEffects: ...

What it reads while it runs (files, words, other queries) becomes its dependencies, so a changed file drops what depends on it and no
more. An answer is a value that nobody changes, so an iterator must be made a tuple. It may depend on its key, on tracked inputs, and on
what stays the same for the life of the database, such as settings; nothing else would be noticed when it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from torchrepro_lint.query.cycles import CycleSolver, Lattice
from torchrepro_lint.query.early_cutoff import new_table
from torchrepro_lint.query.memo_tables import DependencyTracker, MemoTable
from torchrepro_lint.query.tabling import SetEquations

_Solver_co = TypeVar("_Solver_co", bound=CycleSolver, covariant=True)


class CyclePolicy(Protocol[_Solver_co]):
    """How queries are answered that may lead back to themselves: it names the solver that they share."""

    def solver(self, reads: DependencyTracker, /) -> _Solver_co:
        """A new solver."""
        ...


class QueryDefinition:
    """The definition of a query: its function, and how its answers are remembered (see ``query``)."""

    def __init__(
        self,
        function: Callable[..., Any],
        lru: int | None,
        bounded_when_watched: bool,
        cutoff: bool,
        durable: str,
        cycle: CyclePolicy[CycleSolver] | None,
    ) -> None:
        self.function = function
        self.cutoff = cutoff
        self.lru = lru
        self.bounded_when_watched = bounded_when_watched
        self.durable = durable
        self.cycle = cycle


_Part = TypeVar("_Part")
_Answer = TypeVar("_Answer")


class Database:
    """The memo tables of all queries of a program, and the tracker of what they read.

    ``changed`` has the bits of all that has changed since the durable tables were written. ``asker`` is the object of
    this revision that most queries are asked of; others stay the same from one revision to the next.
    """

    def __init__(self, reads: DependencyTracker) -> None:
        self.reads = reads
        self.tables: dict[QueryDefinition, MemoTable[tuple[Hashable, ...], Any]] = {}
        self._named: dict[str, MemoTable[Any, Any]] = {}
        self._parts: dict[Callable[[Database], Any], Any] = {}
        self._solvers: dict[CyclePolicy[CycleSolver], CycleSolver] = {}
        self.changed = 0
        if reads.early_cutoff:
            reads.lasting = self.lasting
        self.asker: Any = None

    def open(self, definition: QueryDefinition) -> MemoTable[tuple[Hashable, ...], Any]:
        """The table of a query, made when it is asked first; a durable one is then restored."""
        bounded = definition.bounded_when_watched or not self.reads.early_cutoff
        table = self.new_table(definition.lru if bounded else None, compare=definition.cutoff, cycle=definition.cycle)
        self.tables[definition] = table
        if definition.durable:
            self.reads.recall(definition.durable)
        return table

    def table_of(self, function: Callable[..., Any]) -> MemoTable[Any, Any]:
        """The table of a query by its function."""
        return self.known(function) or self.open(function.definition)  # type: ignore[attr-defined]

    def known(self, function: Callable[..., Any]) -> MemoTable[Any, Any] | None:
        """The table of a query; None if nothing was asked of it."""
        return self.tables.get(function.definition)  # type: ignore[attr-defined]

    def table(
        self,
        name: str,
        most: int | None = None,
        *,
        compare: bool | None = None,
        cycle: CyclePolicy[CycleSolver] | None = None,
    ) -> MemoTable[Any, Any]:
        """The table with a name, for answers that are found in another way than by running one function for a key. With ``compare``
        its answers are under early cutoff: compared, or not.
        """
        if name not in self._named:
            self._named[name] = (
                MemoTable(self.reads, most) if compare is None else self.new_table(most, compare=compare, cycle=cycle)
            )
        return self._named[name]

    def new_table(
        self, most: int | None = None, *, compare: bool, cycle: CyclePolicy[CycleSolver] | None = None
    ) -> MemoTable[Any, Any]:
        """A table whose answers are under early cutoff where files change: compared, or not."""
        if cycle is not None:
            return self.solver(cycle).table(most, compare=compare)
        return new_table(self.reads, most, compare=compare)

    def solver(self, cycle: CyclePolicy[_Solver_co]) -> _Solver_co:
        """The solver of all queries with a cycle policy."""
        if cycle not in self._solvers:
            self._solvers[cycle] = cycle.solver(self.reads)
        return cast("_Solver_co", self._solvers[cycle])

    def lasting(self, function: Callable[..., _Answer], of: Any, *key: Hashable) -> Callable[[], _Answer]:
        """The call of a query's function, which may be kept: in a later revision it is asked of the ``asker`` of then."""
        if type(of) is type(self.asker):
            return lambda: function(self.asker, *key)
        return partial(function, of, *key)

    def part(self, kind: Callable[[Database], _Part]) -> _Part:
        """The one object of a kind that lives as long as the database, made when it is asked for first."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast("_Part", self._parts[kind])

    def invalidate(self, changed: int) -> None:
        """Drop the answers that depend on anything that has changed, or make them stale."""
        self.reads.begin_revision(changed)
        solved = (table for solver in self._solvers.values() for table in solver.tables)
        for table in dict.fromkeys((*self.tables.values(), *self._named.values(), *solved)):
            table.invalidate(changed)


class Asker(Protocol):
    """What queries are asked of."""

    @property
    def database(self) -> Database:
        """Where the answers are."""
        ...


_Asker = TypeVar("_Asker", bound=Asker)
_Key = ParamSpec("_Key")
_Query: TypeAlias = Callable[Concatenate[_Asker, _Key], _Answer]


@overload
def query(
    *, cycle: SetEquations, lru: int | None = None, bounded_when_watched: bool = True, cutoff: bool = False
) -> Callable[[_Query[_Asker, _Key, Iterable[str]]], _Query[_Asker, _Key, tuple[str, ...]]]: ...


@overload
def query(
    *,
    lru: int | None = None,
    bounded_when_watched: bool = True,
    cutoff: bool = False,
    durable: str = "",
    cycle: Lattice[Any] | None = None,
) -> Callable[[_Query[_Asker, _Key, _Answer]], _Query[_Asker, _Key, _Answer]]: ...


def query(
    *,
    lru: int | None = None,
    bounded_when_watched: bool = True,
    cutoff: bool = False,
    durable: str = "",
    cycle: CyclePolicy[CycleSolver] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function a query.

    ``lru`` bounds the answers that are held: those used last; with ``bounded_when_watched=False`` it does not in a project that is
    watched or edited, where answers are needed again. With ``cutoff`` an answer that is computed again after a change is compared: what
    depends on it stays where it comes out the same. Its asker must be a project, or stay the same (see ``Database.lasting``).
    ``durable`` names the table under which a cache stores the answers for the next process; it is restored when the query is asked for
    the first time. ``cycle`` says how the query is answered if it leads back to itself: as an equation of sets or of a lattice.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = QueryDefinition(function, lru, bounded_when_watched, cutoff, durable, cycle)

        # The key is positional: a keyword argument raises a TypeError.
        def answer(of: Asker, /, *key: Hashable) -> Any:
            database = of.database
            return (database.tables.get(definition) or database.open(definition)).of(key, function, of)

        update_wrapper(answer, function)
        answer.definition = definition  # type: ignore[attr-defined]
        return answer

    return decorate
