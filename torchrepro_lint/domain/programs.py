"""Programs: entry points with their traces and effect summaries, and what is left of a program when its trace is not kept.

The memo tables of a linked project: what stays when one of its files changes, all that was not worked out from that file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.query.memo_tables import Kept
from torchrepro_lint.syntax.nodes import path_of
from torchrepro_lint.trace.traces import TraceTables

if TYPE_CHECKING:
    from torchrepro_lint.domain.rng.effects import Effects, Telling
    from torchrepro_lint.resolve.program_index import Table
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.syntax.nodes import Facts
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.entry_points import Entry


class Program(NamedTuple):
    """An entry point, what its run reaches, and what that does."""

    entry: Entry
    run: Run
    effects: Effects


class Reached(NamedTuple):
    """Of a program: the functions that it reaches, their files, and whether it may run on an accelerator."""

    functions: frozenset[str]
    paths: frozenset[str]
    accelerated: bool


class Work(NamedTuple):
    """What the workers of a loader run, and what that does."""

    run: Run
    effects: Effects


def reached(functions: Iterable[str], *, accelerated: bool) -> Reached:
    """What a program reaches, by its functions."""
    return Reached(frozenset(functions), frozenset(map(path_of, functions)), accelerated)


class Link(TraceTables):
    """The names of a project, and what it works out file by file, or entry point by entry point."""

    def __init__(
        self,
        files: Mapping[str, Facts],
        tree: ModuleTree,
        torch: str,
        *,
        keeps: bool = False,
        firm: bool = False,
    ) -> None:
        super().__init__(files, tree, torch, keeps=keeps, firm=firm)
        reads = self.names.modules.reads
        self.seeding: Kept[tuple[str, frozenset[str]], tuple[str, ...]] = Kept(reads)
        self.programs: Kept[tuple[Entry, ...], tuple[Program, ...]] = Kept(reads)
        self.telling: Telling = Kept(reads)
        # What of each program of such entries can be said without it.
        self.reached: Kept[tuple[Entry, ...], tuple[Reached, ...]] = Kept(reads)

    def _tables(self) -> Iterator[Table]:
        yield from super()._tables()
        yield from (self.seeding, self.programs, self.reached, self.telling)
