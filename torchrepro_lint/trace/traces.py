"""Entry points and traces of a linked project: where its runs start, and what each does in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.analysis import OrderFlow
from torchrepro_lint.query.memo_tables import Kept
from torchrepro_lint.resolve.program_index import IndexTables, Table
from torchrepro_lint.trace.builder import Run
from torchrepro_lint.trace.entry_points import Entry, EntryPoints
from torchrepro_lint.trace.trace import RunTables

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.loaders import Libraries
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.source.text import Position
    from torchrepro_lint.syntax.nodes import Facts


class TraceTables(IndexTables):
    """The memo tables of the program index, and those of its entry points."""

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
        self.entries: Kept[str, tuple[Entry, ...]] = Kept(reads)
        self.runs = RunTables(reads)
        self.imports: Kept[tuple[()], dict[str, list[tuple[str, str]]]] = Kept(reads)

    def _tables(self) -> Iterator[Table]:
        yield from super()._tables()
        yield from (self.entries, self.imports, self.runs)


class Traces(OrderFlow):
    """A project whose entry points are known, and that can be run from any of them.

    ``scripts`` are the targets of ``[project.scripts]``, ``started`` are globs of the files that a setting says are started.
    A run is not kept here: who works out what it does keeps both.
    """

    link: TraceTables

    def __init__(
        self,
        link: TraceTables,
        scripts: Sequence[str],
        started: Sequence[str],
        position: Callable[[str, int], Position],
        text: Callable[[str], str],
        libraries: Libraries,
    ) -> None:
        super().__init__(link, position, text, libraries)
        self._scripts = scripts
        self._started = started

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Where runs start, sorted by path."""
        return self.entry_points.all()

    @cached_property
    def entry_points(self) -> EntryPoints:
        """Where runs start, file by file."""
        return EntryPoints(self.resolver, self._scripts, self._started, self.link.entries, self.link.imports)

    @cached_property
    def entries_by_file(self) -> tuple[tuple[Entry, ...], ...]:
        """The entry points of each file that has any."""
        return tuple(entries for path in sorted(self.files) if (entries := self.entry_points.of(path)))

    def runs_from(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Run]]:
        """The runs of entry points of a file, but for those that are part of another."""
        names, tables, commands = self.resolver, self.link.runs, [each for each in entries if each.function]
        paths = {each.path for each in commands}
        begun = Run.of_module(paths.pop(), names, tables) if len(commands) > 1 and len(paths) == 1 else None
        runs = [(entry, Run.from_entry(entry, names, tables, begun)) for entry in entries]
        started = next((run.functions for entry, run in runs if entry.function is None), frozenset())
        for entry, run in runs:
            # A command that the module's own __main__ block calls is that same run.
            if entry.function is None or entry.function not in started:
                yield entry, run

    def run_in_worker(self, functions: tuple[str, ...]) -> Run:
        """The run of functions that a loader's worker calls."""
        return Run(self.resolver, self.link.runs, functions, mode="worker")

    def run_of(self, function: str) -> Run:
        """The run of one function, or of a module's top level (``path:``)."""
        return Run(self.resolver, self.link.runs, (function,), main=function.endswith(":"))
