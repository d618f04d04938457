"""Traces of a program's entry points and functions: the layer above names, values and order that follows what a run does.

``Context`` adds the module under check, with its text and tree: the argument of each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.query.database import Database, query
from torchrepro_lint.resolve.program_index import link
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import is_module
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.entry_points import Entry, EntryPoints
from torchrepro_lint.trace.events import TraceMemoTables

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.libraries import LibraryVersions
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.source.text import Lines
    from torchrepro_lint.syntax.nodes import SyntaxTree


class Traces(TaintFlow):
    """The modules of a project with its entry points and their traces. The queries of the domain are functions of it.

    ``tree`` holds all modules, ``files`` those that are linked; ``scripts`` are the targets of ``[project.scripts]``,
    ``libraries`` the requirements; ``position`` locates an offset for messages (row 0 without texts); ``text`` is a
    file's text, for fixes. ``names`` are those of an earlier project, after the changes of files.
    """

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        settings: Settings,
        catalogue: Catalogue,
        tree: ModuleTree | None = None,
        scripts: Sequence[str] = (),
        position: Callable[[str, int], Position] = lambda _path, _offset: Position(0, 0),
        text: Callable[[str], str] = lambda _path: "",
        libraries: LibraryVersions = (),
        names: Names | None = None,
    ) -> None:
        names = names or link(files, tree or ModuleTree(files, (".",)), catalogue.version)
        super().__init__(names, position, text, libraries)
        self.settings = settings
        self.catalogue = catalogue
        self._tables = names.database.part(TraceMemoTables)
        self._scripts = scripts

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entry points, sorted by path."""
        return self.entry_points.all()

    @cached_property
    def entry_points(self) -> EntryPoints:
        """The entry points, file by file."""
        return EntryPoints(self.resolver, self._scripts, self.settings.entry_points)

    @query(cutoff=True)
    def entries_by_file(self) -> tuple[tuple[Entry, ...], ...]:
        """The entry points of each file that has any."""
        return tuple(entries for path in sorted(self.files) if (entries := self.entry_points.of(path)))

    def traces_from(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Trace]]:
        """The traces of the entry points of a file, without those that are part of another."""
        names, tables, commands = self.resolver, self._tables, [each for each in entries if each.function]
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
        return Trace(self.resolver, self._tables, functions, mode="worker")

    def trace_of(self, function: str) -> Trace:
        """The trace of one function, or of a module's top level (``path:``)."""
        return Trace(self.resolver, self._tables, (function,), main=is_module(function))


class Context(Record, frozen=True):
    """The module under check and its project; ``path`` has slashes and is relative to the project's root."""

    path: str
    tree: SyntaxTree
    lines: Lines
    project: Traces
    catalogue: Catalogue
    settings: Settings

    @property
    def database(self) -> Database:
        """The database of the project: what a rule asks of all files may be a query, whose answer does not depend on ``path``."""
        return self.project.database
