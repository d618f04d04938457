"""The workspace: the folders and documents that are open in an editor, the project of each, its settings and its diagnostics.

Nothing here knows the protocol. Changes of documents are recorded at once, and analysed when a report is asked for. An open document
is the bytes that saving it would write, and goes through the same reader as a file; columns are converted between code points and the
LSP position encodings: UTF-8 bytes, UTF-16 code units, UTF-32. ``Preferences`` are the options that an editor may send.
"""

from __future__ import annotations

import gc
import io
import json
import os
import tokenize
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torchrepro_lint.config.discovery import GivenFile, ProjectTree, plan, relative_path
from torchrepro_lint.config.roots import ConfigOptions, FallbackRoot, RootFinder, fallback_root
from torchrepro_lint.config.settings import (
    READERS,
    RuleOverrides,
    boolean,
    did_you_mean,
    one_string,
    settings_table,
)
from torchrepro_lint.engine.import_closure import with_imported_files
from torchrepro_lint.engine.incremental_project import FileReport, LinkedProject
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.text import Lines

SECTION = "torchrepro-lint"


class Preferences(NamedTuple):
    """The client settings for one folder; ``delay`` is in seconds."""

    overrides: RuleOverrides = RuleOverrides()
    config: str | None = None
    isolated: bool = False
    delay: float = 0.2

    def same_findings(self, other: Preferences) -> bool:
        """Whether other settings lead to the same findings."""
        return self._replace(delay=0) == other._replace(delay=0)

    def options(self, folder: str) -> ConfigOptions:
        """The options for finding settings files; ``config`` is relative to the folder."""
        config = Path(folder, self.config) if self.config else None
        return ConfigOptions(config, self.isolated and not config, self.overrides.apply_to)


def preferences(data: Any) -> tuple[Preferences, tuple[str, ...]]:
    """The settings in an editor's JSON, and a line on each that cannot be used; keys may be in camel case.

    The settings may stand under the server's name.
    """
    if isinstance(data, dict) and isinstance(data.get(SECTION), dict):
        data = data[SECTION]
    if data is None or (isinstance(data, list) and not data):  # what Lua makes of an empty table
        data = {}
    if not isinstance(data, dict):
        return Preferences(), (f"the editor's settings of {SECTION}: expected a table",)
    values: dict[str, Any] = {}
    mistakes = []
    for key, value in data.items():
        name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in str(key)).replace("_", "-")
        reader = _READERS.get(name)
        if reader is None:
            mistakes.append(f"the editor's settings: {key}: unknown key{did_you_mean(name, _READERS)}")
        elif value is not None:
            try:
                values[name.replace("-", "_")] = reader(value)
            except (TypeError, ValueError) as error:
                mistakes.append(f"the editor's settings: {key}: {error}")
    own = {name: values.pop(name) for name in ("config", "isolated", "delay") if name in values}
    return Preferences(RuleOverrides(**values), **own), tuple(mistakes)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 60_000:
        raise ValueError("expected milliseconds, 0 to 60000")
    return value / 1000


_READERS: dict[str, Callable[[object], object]] = {
    **{key: READERS[key] for key in ("select", "extend-select", "ignore", "min-severity", "torch-version", "device")},
    "config": one_string,
    "isolated": boolean,
    "delay": _seconds,
}


_UTF8 = ("utf-8", "utf-8-sig")


class Document(NamedTuple):
    """An open file: its absolute path, the bytes that saving would write, and its URI.

    ``cells`` are the URIs of all cells of a notebook that is open as one, in order; None for a text. ``version`` is the
    editor's count of changes, where it keeps one.
    """

    path: str
    data: bytes
    uri: str
    cells: tuple[str, ...] | None = None
    version: int | None = None


class CellText(NamedTuple):
    """A notebook cell as an editor has it: its URI, whether it is code, its language, text and metadata."""

    uri: str
    is_code: bool
    language: str
    text: str
    metadata: Any = None


def encode_text(text: str) -> bytes:
    """A text in the encoding that it declares, or in UTF-8 where that fails."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data if encoding in _UTF8 else text.encode(encoding)
    except (SyntaxError, LookupError, ValueError):
        return data


def notebook_data(cells: Iterable[CellText], metadata: Any) -> bytes:
    """The JSON of a notebook with these cells."""
    found = [_cell(each) for each in cells]
    metadata = metadata if isinstance(metadata, dict) else {}
    # Editors wrap the metadata of the file.
    metadata = metadata["metadata"] if isinstance(metadata.get("metadata"), dict) else metadata
    return json.dumps({"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode("ascii")


def _cell(cell: CellText) -> dict[str, Any]:
    if not cell.is_code:
        return {"cell_type": "markdown", "metadata": {}, "source": cell.text}
    metadata = {} if cell.language == "python" else {"vscode": {"languageId": cell.language}}
    return {"cell_type": "code", "metadata": metadata, "outputs": [], "source": cell.text}


_LAST_NARROW = "\uffff"


def length_in_units(text: str, encoding: str) -> int:
    """The length of a text in the units of ``utf-8``, ``utf-16`` or ``utf-32``."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(letter > _LAST_NARROW for letter in text)


def code_points(text: str, count: int, encoding: str) -> int:
    """The number of whole code points in the first ``count`` units of a text; all where there are fewer."""
    if encoding == "utf-32" or text.isascii():
        return min(count, len(text))
    seen = 0
    for number, letter in enumerate(text):
        seen += length_in_units(letter, encoding)
        if seen > count:
            return number
    return len(text)


def offset(lines: Lines, row: int, column: int, encoding: str) -> int:
    """The offset of a position in a text, or the nearest one; rows count from 0, columns from 0 in units."""
    if row >= len(lines):
        return len(lines.text)
    return lines.offset(row + 1, code_points(lines.line(row + 1), column, encoding) + 1)


def unmarked_project(path: str, folder: str) -> FallbackRoot:
    """The project of a file that no marker file determines: the open folder around it, or its directory."""
    return fallback_root([folder or path])


_T = TypeVar("_T")
# Replaced files that may take up memory before cycles are collected.
_COLLECT_AFTER = 100


class Workspace:
    """The open documents and their projects. ``complain`` is called with each mistake in settings, ``busy`` is entered while
    a project is read.
    """

    def __init__(
        self,
        complain: Callable[[str], None] = lambda _: None,
        busy: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._complain = complain
        self._busy = busy
        self._folders: dict[str, Preferences] = {}
        self._default = Preferences()
        self._documents: dict[str, Document] = {}
        self._project_by_path: dict[str, tuple[LinkedProject, str] | None] = {}
        self._projects: dict[tuple[str, str], LinkedProject] = {}
        self._refreshed: list[LinkedProject] | None = None
        self._dropped = 0
        # Settings files whose mistake was reported: once, until it is corrected.
        self._reported: set[str] = set()
        self._broken_settings: set[str] = set()

    @property
    def documents(self) -> Mapping[str, Document]:
        """The open documents by path."""
        return self._documents

    def configure(self, default: Preferences, folders: Mapping[str, Preferences]) -> None:
        """Set the open folders (absolute) with their settings; ``default`` is for files in none of them."""
        before = {folder: self._preferences(folder) for folder, _ in self._projects}
        self._default, self._folders = default, dict(folders)
        kept = {folder for folder, old in before.items() if old.same_findings(self._preferences(folder))}
        for key in [key for key in self._projects if key[0] not in kept]:
            self._dropped += len(self._projects.pop(key).tree.files)
        self._reported.clear()
        self.refresh()

    def update_documents(self, changes: Mapping[str, Document | None]) -> None:
        """Record documents that were opened or changed, by path; None for one that was closed."""
        for path, document in changes.items():
            if document is not None:
                self._documents[path] = document
                continue
            self._documents.pop(path, None)
            home = self._project_by_path.pop(path, None)
            if home is not None:
                home[0].close(home[1])

    def refresh(self) -> None:
        """Read what has changed on disk. Where settings are wrong now, the ones before stay in force."""
        settings_table.cache_clear()
        before, self._project_by_path, self._refreshed, self._broken_settings = self._project_by_path, {}, [], set()
        for path in self._documents:
            self._project_by_path[path] = self._guarded(partial(self._find, path), before.get(path))
        for linked in dict.fromkeys(home[0] for home in self._project_by_path.values() if home is not None):
            if linked not in self._refreshed:
                self._guarded(partial(linked.refresh, linked.tree))
        self._reported &= self._broken_settings
        self._refreshed = None
        for path, home in before.items():
            if home is not None and self._project_by_path.get(path) != home:
                home[0].close(home[1])
        self._drop_unused()

    def reports(self, wanted: Iterable[str] | None = None) -> dict[str, FileReport | None]:
        """The check results of all or some open documents; None for files that the settings exclude."""
        paths = [path for path in (self._documents if wanted is None else wanted) if path in self._documents]
        for path in self._documents:  # all of them overlay their project
            self.project_of(path)
        return {path: self._guarded(partial(self._report, path)) for path in paths}

    def release(self) -> None:
        """Release analysis results and collect garbage: something has changed, or all questions are answered.

        Results consist of reference cycles. Collecting them takes seconds in a large project unless the syntax trees, which
        stay, are frozen. Some trees are in cycles as well, so they are unfrozen once many were replaced. The server collects
        cycles at no other time.
        """
        for linked in self._projects.values():
            linked.release()
        if self._dropped + sum(linked.dropped for linked in self._projects.values()) > _COLLECT_AFTER:
            gc.unfreeze()
            self._dropped = 0
            for linked in self._projects.values():
                linked.reset_dropped()
        gc.collect()
        gc.freeze()

    def project_of(self, path: str) -> tuple[LinkedProject, str] | None:
        """The project of an open document, updated to the editor's content, and the document's path in it."""
        if path not in self._project_by_path:
            self._project_by_path[path] = self._guarded(partial(self._find, path))
        home = self._project_by_path[path]
        if home is not None:
            home[0].open(home[1], self._documents[path].data)
        return home

    def _report(self, path: str) -> FileReport | None:
        home = self.project_of(path)
        return home[0].report(home[1]) if home else None

    def _find(self, path: str) -> tuple[LinkedProject, str] | None:
        """The project of a document and its path there; during a refresh each project is refreshed once."""
        folder, root = self._place(path)
        known, name = self._projects.get((folder, root)), relative_path(path, root)
        current = self._refreshed is None or known in self._refreshed
        if known is not None and current and name in known.tree.files:
            return known, name
        tree = self._tree(path)
        if tree is None:
            return None
        if known is None:
            with self._busy():
                known = self._projects[folder, root] = LinkedProject(tree)
        else:
            known.refresh(_with_files(tree, self._names(known)))
        if self._refreshed is not None:
            self._refreshed.append(known)
        return known, name

    def _names(self, linked: LinkedProject) -> set[str]:
        """The documents that a project holds."""
        return {home[1] for home in self._project_by_path.values() if home is not None and home[0] is linked}

    def _tree(self, path: str) -> ProjectTree | None:
        """The project around a document; None where its settings exclude the document."""
        folder, preferences = self._folder(path)
        given = GivenFile(path, path, self._documents[path].data)
        options = preferences.options(folder or os.path.dirname(path))
        trees = plan((), options, True, given, unmarked_project(path, folder)).trees
        return self._with_others(trees[0], folder)._replace(given=()) if trees else None

    def _with_others(self, tree: ProjectTree, folder: str) -> ProjectTree:
        """A project that is not taken whole, with all open documents that belong to it, and what they import."""
        if not tree.partial:
            return tree
        same = [path for path in self._documents if self._place(path) == (folder, tree.root.path)]
        given = tuple(
            (relative_path(path, tree.root.path), GivenFile(path, path, self._documents[path].data)) for path in same
        )
        return with_imported_files(tree._replace(given=given, files=tuple(name for name, _ in given)))

    def _place(self, path: str) -> tuple[str, str]:
        """The open folder around a file, and the root of its project."""
        return self._folder(path)[0], self._roots(path).of(os.path.dirname(path)).path

    def _roots(self, path: str) -> RootFinder:
        folder, preferences = self._folder(path)
        return RootFinder(preferences.options(folder or os.path.dirname(path)), unmarked_project(path, folder))

    def _folder(self, path: str) -> tuple[str, Preferences]:
        """The innermost open folder around a file (empty: none) and its settings."""
        around = [each for each in self._folders if path.startswith(os.path.join(each, ""))]
        found = max(around, key=len, default="")
        return found, self._preferences(found)

    def _preferences(self, folder: str) -> Preferences:
        return self._folders.get(folder, self._default)

    def _drop_unused(self) -> None:
        """Drop projects without an open document, but for the last one, which may be opened again at once."""
        used = [home[0] for home in self._project_by_path.values() if home is not None]
        for key in [key for key, each in self._projects.items() if each not in used][:-1]:
            self._dropped += len(self._projects.pop(key).tree.files)

    def _guarded(self, work: Callable[[], _T | None], before: _T | None = None) -> _T | None:
        """The result, or the one before where settings are wrong; each mistake is reported once."""
        try:
            return work()
        except UsageError as error:
            place = str(error).partition(": ")[0]
            self._broken_settings.add(place)
            if place not in self._reported:
                self._reported.add(place)
                self._complain(f"{error}; the earlier settings stay in force" if before else str(error))
            return before


def _with_files(tree: ProjectTree, names: Iterable[str]) -> ProjectTree:
    return tree._replace(files=tuple(sorted({*tree.files, *names})))
