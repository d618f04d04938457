"""Incremental analysis of one project while its files are edited: only what changed is read and analysed again.

``LinkCache`` keeps the query database of each part of the project between revisions.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.config.discovery import GivenFile, ProjectTree
from torchrepro_lint.engine.checker import Checker, CheckResult, broken_off, check
from torchrepro_lint.engine.fixer import FixResult, fix_tree
from torchrepro_lint.engine.limits import DeadlineExceededError, deadline
from torchrepro_lint.engine.parsed_file import ParsedFile, parse_bytes, too_large
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.engine.run import gc_disabled, prepare
from torchrepro_lint.resolve.program_index import link, revise
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.decoding import Source, SourceProblem, decode
from torchrepro_lint.source.files import FileSignature, TooLarge, file_signature, is_notebook, read_program
from torchrepro_lint.syntax.nodes import Record

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.nodes import SyntaxTree


# No worker processes: who edits has threads, which must not be forked.
CACHED = ReadOptions(jobs=0, cached=True)


class DiskFiles:
    """The parsed files of a project on disk. ``files`` is by path from the root, as of the last look at each."""

    def __init__(self, tree: ProjectTree, options: ReadOptions) -> None:
        self._root = tree.root.path
        self._parser = tree.root.settings.parser
        readings = read_tree(tree, options=options)
        readings.store()
        self.files = readings.files
        self.errors: dict[str, str] = {}
        places = {path: self.absolute_path(path) for path in self.files}
        self._states = {path: readings.seen[place][0] for path, place in places.items() if place in readings.seen}
        for path in tree.files:
            if path not in self.files:
                self.reread_if_changed(path)

    def absolute_path(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self._root, *path.split("/"))

    def is_current(self, path: str) -> bool:
        """Whether a file on disk is unchanged since it was parsed."""
        return path in self.files and self._states.get(path) == self._state(path)

    def reread_if_changed(self, path: str, opened: tuple[bytes, ParsedFile] | None = None) -> bool:
        """Parse a file again if it has changed; whether it has. ``opened`` is a content that was parsed already."""
        seen = self._state(path)
        if seen is not None and path in self.files and self._states.get(path) == seen:
            return False
        known = self.files.pop(path, None)
        self._states.pop(path, None)
        try:
            self.files[path] = self._read(path, opened)
        except OSError as error:
            self.errors[path] = error.strerror or str(error)
            return known is not None
        self.errors.pop(path, None)
        if seen is not None:
            self._states[path] = seen
        return True

    def _read(self, path: str, opened: tuple[bytes, ParsedFile] | None) -> ParsedFile:
        try:
            data = read_program(self.absolute_path(path))
        except TooLarge as error:
            return too_large(error)
        return opened[1] if opened and opened[0] == data else parse_bytes(data, is_notebook(path), self._parser)

    def keep_only(self, paths: Collection[str]) -> set[str]:
        """Drop all files but these; the paths of the dropped ones."""
        gone = self.files.keys() - set(paths)
        self.files = {path: self.files[path] for path in sorted(self.files.keys() - gone)}
        return gone

    def _state(self, path: str) -> FileSignature | None:
        try:
            return file_signature(self.absolute_path(path))
        except OSError:
            return None


class LinkCache:
    """Keeps the query database of each part of a project, and updates it when files of the part change.

    ``dropped`` counts the files of databases that could not be updated.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._known: dict[Sequence[str], Names] = {}
        self._checker: Checker | None = None
        self._parts: Partition | None = None

    def parts(self, checker: Checker, files: Mapping[str, ParsedFile]) -> Partition:
        """The partition of all files as they are now."""
        found = Partition(checker, files, self, lasting=True, before=self._parts)
        there = set(found.paths)
        for paths, known in [*self._known.items()]:
            if paths not in there or not _resolves_alike(known.modules.tree, found, paths):
                self._drop(paths)
        self._checker, self._parts = checker, found
        return found

    def link(self, facts: Mapping[str, SyntaxTree], tree: ModuleTree) -> Names:
        """The names of a part, with the database of all queries: the one before, updated, or a new one."""
        assert self._checker is not None
        paths = tuple(facts)
        known = self._known.pop(paths, None)
        if known is None or not self._revised(known, facts):
            known = link(facts, tree, self._checker.catalogue.version, incremental=True, early_cutoff=True)
        self._known[paths] = known
        return known

    def _revised(self, known: Names, facts: Mapping[str, SyntaxTree]) -> bool:
        """Update a database, which counts as dropped where that fails: what is updated in part would be wrong from then on."""
        done = False
        try:
            done = revise(known, facts)
        finally:
            self.dropped += 0 if done else len(facts)
        return done

    def leave(self, paths: Sequence[str]) -> None:
        """Nothing to do: databases are kept between reports."""

    def release(self) -> None:
        """Release what the partition holds beside the databases."""
        if self._parts is not None:
            self._parts.unlink()
        for names in self._known.values():
            names.database.asker = None

    def clear(self) -> None:
        """Drop all databases."""
        for paths in [*self._known]:
            self._drop(paths)
        self._parts = None

    def _drop(self, paths: Sequence[str]) -> None:
        if self._known.pop(paths, None) is not None:
            self.dropped += len(paths)


def _resolves_alike(tree: ModuleTree, parts: Partition, paths: Sequence[str]) -> bool:
    """Whether the imports of some files lead to the same files in a module tree as in that of a partition."""
    if tree is parts.tree:
        return True
    facts = {path: parts.facts[path] for path in paths}
    return tree.key_of(facts) == parts.tree.key_of(facts)


class FileReport(Record, frozen=True):
    """The check result of an open file, and the parsed file that its offsets count in."""

    checked: CheckResult
    reading: ParsedFile


class LinkedProject:
    """A project under edit: its files on disk, overlaid by the texts of open documents; paths are from its root.

    ``whole`` says that all files are checked after a change, and not just those that are open.
    An open file that does not parse is analysed as it was when it last did.
    """

    _parts: Partition | None
    _reports: dict[str, FileReport]
    _fixed: dict[str, FixResult]

    def __init__(
        self, tree: ProjectTree, honour_comments: bool = True, options: ReadOptions = CACHED, whole: bool = False
    ) -> None:
        self._honour_comments, self._options = honour_comments, options
        self._open: dict[str, tuple[bytes, ParsedFile]] = {}
        self._last_parsed: dict[str, ParsedFile] = {}
        self._links = LinkCache()
        self._whole = whole
        self._dropped_files = 0
        self._invalidate()
        self.checker = self._checker(tree)
        self._disk = DiskFiles(tree, self._options)

    @property
    def dropped(self) -> int:
        """How many parsed files and files of dropped databases became garbage."""
        return self._dropped_files + self._links.dropped

    def reset_dropped(self) -> None:
        """Start counting anew, after a garbage collection."""
        self._dropped_files = self._links.dropped = 0

    @property
    def tree(self) -> ProjectTree:
        """The project as it was last refreshed."""
        return self.checker.tree

    def refresh(self, tree: ProjectTree) -> None:
        """Update settings and files that have changed on disk; raises ``UsageError``."""
        if tree.root.settings.parser != self.tree.root.settings.parser:
            self._reread(tree)
            return
        before, self.checker = self.checker, self._checker(tree)
        changed = {path for path in tree.files if self._disk.reread_if_changed(path, self._open.get(path))}
        gone = self._disk.keep_only(tree.files)
        self._dropped_files += len(changed | gone)
        # A change on disk of an open file does not count.
        if _report_inputs(before) != _report_inputs(self.checker):
            self._links.clear()
            self._invalidate()
        elif (changed | gone) - self._last_parsed.keys():
            self._invalidate()

    def _reread(self, tree: ProjectTree) -> None:
        """Parse everything again: the settings chose another parser."""
        shown, gone = self._open, len(self._disk.files)
        self.checker, self._disk = self._checker(tree), DiskFiles(tree, self._options)
        self._dropped_files += gone
        self._links.clear()
        self._invalidate()
        self._open, self._last_parsed = {}, {}
        for path, (data, _) in shown.items():
            self.open(path, data)

    def open(self, path: str, data: bytes) -> None:
        """Set the content of an open file."""
        if path in self._open and self._open[path][0] == data:
            return
        saved = self._disk.files.get(path)
        if saved is not None and path not in self._open and _is_same_as_saved(saved, decode(data, is_notebook(path))):
            self._open[path], self._last_parsed[path] = (data, saved), saved
            return
        linked = self._last_parsed.get(path, saved)
        reading = parse_bytes(data, is_notebook(path), self.tree.root.settings.parser)
        self._open[path] = data, reading
        if reading.facts is not None:
            self._last_parsed[path] = reading
        elif saved is not None and saved.facts is not None:
            self._last_parsed.setdefault(path, saved)
        if self._last_parsed.get(path) is linked is not None:
            self._reports.pop(path, None)
        else:
            self._invalidate()

    def close(self, path: str) -> None:
        """Return to what is on disk, after a file was closed."""
        if path in self._open:
            shown = self._last_parsed.get(path)
            del self._open[path]
            self._last_parsed.pop(path, None)
            self._reports.pop(path, None)
            if self._disk.reread_if_changed(path) or self._disk.files.get(path) is not shown:
                self._invalidate()

    def release(self) -> None:
        """Drop the partition; the next report makes another. Reports stay."""
        self._parts = None
        self._links.release()

    def report(self, path: str) -> FileReport | None:
        """The check result of a file; None for one that does not exist."""
        reading = self._open[path][1] if path in self._open else self._disk.files.get(path)
        if reading is None:
            return None
        if path not in self._reports:
            with gc_disabled():
                self._reports[path] = FileReport(self._checked(path, reading), reading)
        return self._reports[path]

    def _checked(self, path: str, reading: ParsedFile) -> CheckResult:
        try:
            with deadline(len(self._disk.files)):
                return check(self.checker, path, reading, self._partition().of(path))
        except DeadlineExceededError as late:  # what was being worked out is broken off
            self._drop_links()
            return broken_off(self.checker, reading, late.findings, late.reason)

    def fixed(self, path: str) -> FixResult:
        """The result of all fixes that ``--fix`` would apply to one file."""
        if path not in self._fixed:
            given = GivenFile(path, self.absolute_path(path))
            checker = self.checker._replace(tree=self.tree._replace(given=((path, given),)))
            with gc_disabled():
                self._fixed[path] = fix_tree(checker, dict(self.readings), self.tree.root.settings.unsafe_fixes)
        return self._fixed[path]

    @property
    def readings(self) -> Mapping[str, ParsedFile]:
        """The parsed files that are analysed, by path."""
        shown = {path: self._last_parsed.get(path, reading) for path, (_, reading) in self._open.items()}
        return {**self._disk.files, **shown}

    def is_current(self, path: str) -> bool:
        """Whether the analysed version of a file is the editor's, or for a file that is not open, the one on disk."""
        if path in self._open:
            return self._open[path][1].facts is not None
        return self._disk.is_current(path)

    def _partition(self) -> Partition:
        if self._parts is None:
            self._parts = self._links.parts(self.checker, self.readings)
        return self._parts

    def _drop_links(self) -> None:
        self._links.clear()
        self._parts = None

    def _checker(self, tree: ProjectTree) -> Checker:
        return prepare(tree, self._honour_comments)[0]._replace(finds_gaps=self._whole)

    def _invalidate(self) -> None:
        """Drop all results."""
        self._parts = None
        self._reports = {}
        self._fixed = {}

    def absolute_path(self, path: str) -> str:
        """The absolute path of a file."""
        return self._disk.absolute_path(path)

    def unreadable(self, path: str, display: str) -> str:
        """The error of a file that cannot be read, under the name that is shown; empty for any other."""
        error = self._disk.errors.get(path)
        return f"{display}: cannot be read: {error}" if error is not None else ""


def _is_same_as_saved(saved: ParsedFile, opened: Source | SourceProblem) -> bool:
    """Whether an open text equals what was read from disk."""
    return not saved.problems and saved.source is not None and saved.source == opened


def _report_inputs(checker: Checker) -> tuple[object, ...]:
    """The inputs of a report beside the contents of files."""
    torch = checker.catalogue
    versions = torch.version, torch.asked, torch.admitted, torch.declared
    return checker.tree.root, checker.tree.files, versions, checker.manifest
