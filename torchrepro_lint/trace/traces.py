"""Traces of a project: the layer of the program that knows its entry points and what a program does from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.program_index import IndexTables, Table
from torchrepro_lint.syntax.qualified_names import is_module
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.entry_points import Entry, EntryPoints
from torchrepro_lint.trace.events import TraceMemoTables

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.loaders import LibraryVersions
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.source.text import Position
    from torchrepro_lint.syntax.nodes import SyntaxTree


class TraceTables(IndexTables):
    """The memo tables of the program index, and those of its entry points."""

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
        self.entries: MemoTable[str, tuple[Entry, ...]] = MemoTable(reads)
        self.runs = TraceMemoTables(reads)
        self.imports: MemoTable[tuple[()], dict[str, list[tuple[str, str]]]] = MemoTable(reads)

    def _tables(self) -> Iterator[Table]:
        yield from super()._tables()
        yield from (self.entries, self.imports, self.runs)


class Traces(TaintFlow):
    """A program with its entry points, and a trace from any of them.

    ``scripts`` are the targets of ``[project.scripts]``, ``started`` are globs of the files that a setting says are started.
    Traces are not remembered here: the caller keeps a trace together with what it derives from it.
    """

    database: TraceTables

    def __init__(
        self,
        database: TraceTables,
        scripts: Sequence[str],
        started: Sequence[str],
        position: Callable[[str, int], Position],
        text: Callable[[str], str],
        libraries: LibraryVersions,
    ) -> None:
        super().__init__(database, position, text, libraries)
        self._scripts = scripts
        self._started = started

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entry points, sorted by path."""
        return self.entry_points.all()

    @cached_property
    def entry_points(self) -> EntryPoints:
        """The entry points, file by file."""
        return EntryPoints(self.resolver, self._scripts, self._started, self.database.entries, self.database.imports)

    @cached_property
    def entries_by_file(self) -> tuple[tuple[Entry, ...], ...]:
        """The entry points of each file that has any."""
        return tuple(entries for path in sorted(self.files) if (entries := self.entry_points.of(path)))

    def traces_from(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Trace]]:
        """The traces of the entry points of a file, without those that are part of another."""
        names, tables, commands = self.resolver, self.database.runs, [each for each in entries if each.function]
        paths = {each.path for each in commands}
        begun = Trace.of_module(paths.pop(), names, tables) if len(commands) > 1 and len(paths) == 1 else None
        runs = [(entry, Trace.from_entry(entry, names, tables, begun)) for entry in entries]
        started = next((run.functions for entry, run in runs if entry.function is None), frozenset())
        for entry, run in runs:
            # A command that the module's own __main__ block calls is part of that trace.
            if entry.function is None or entry.function not in started:
                yield entry, run

    def trace_in_worker(self, functions: tuple[str, ...]) -> Trace:
        """The trace of functions that a loader's worker calls."""
        return Trace(self.resolver, self.database.runs, functions, mode="worker")

    def trace_of(self, function: str) -> Trace:
        """The trace of one function, or of a module's top level (``path:``)."""
        return Trace(self.resolver, self.database.runs, (function,), main=is_module(function))
