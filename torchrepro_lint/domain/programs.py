"""Programs: an entry point with its trace and effect summary; and the database of memo tables of a project.

The database outlives the project: when a file changes, it drops the answers that depend on that file and keeps the
others. A program's summary by functions and files stays when its trace is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.syntax.visitor import path_of
from torchrepro_lint.trace.traces import TraceTables

if TYPE_CHECKING:
    from torchrepro_lint.domain.rng.effects import CalleeEffectTable, RngEffects
    from torchrepro_lint.resolve.program_index import Table
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.syntax.nodes import SyntaxTree
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.entry_points import Entry


class Program(NamedTuple):
    """An entry point with its trace and effect summary."""

    entry: Entry
    run: Trace
    effects: RngEffects


class ProgramSummary(NamedTuple):
    """What stays of a program without its trace: the functions that it reaches, their files, and whether it may run on
    an accelerator.
    """

    functions: frozenset[str]
    paths: frozenset[str]
    accelerated: bool


class WorkerTrace(NamedTuple):
    """The trace of functions that a loader's workers run, and its effect summary."""

    run: Trace
    effects: RngEffects


def program_summary(functions: Iterable[str], *, accelerated: bool) -> ProgramSummary:
    """The summary of a program that reaches these functions."""
    return ProgramSummary(frozenset(functions), frozenset(map(path_of, functions)), accelerated)


class Database(TraceTables):
    """The memo tables of a project: its names, and its answers by file or by entry points."""

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        tree: ModuleTree,
        torch: str,
        *,
        incremental: bool = False,
        early_cutoff: bool = False,
    ) -> None:
        super().__init__(files, tree, torch, incremental=incremental, early_cutoff=early_cutoff)
        reads = self.names.modules.reads
        self.seeding: MemoTable[tuple[str, frozenset[str]], tuple[str, ...]] = MemoTable(reads)
        self.programs: MemoTable[tuple[Entry, ...], tuple[Program, ...]] = MemoTable(reads)
        self.callee_effects: CalleeEffectTable = MemoTable(reads)
        # The summary of each program of such entry points, which outlives the program's trace.
        self.reached: MemoTable[tuple[Entry, ...], tuple[ProgramSummary, ...]] = MemoTable(reads)

    def _tables(self) -> Iterator[Table]:
        yield from super()._tables()
        yield from (self.seeding, self.programs, self.reached, self.callee_effects)
