"""The workspace: the folders and documents that are open in an editor, the project of each, and its diagnostics.

Nothing here knows the protocol. Changes of documents are recorded at once, and analysed when a report is asked for.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

from torchrepro_lint.config.discovery import GivenFile, ProjectTree, plan, relative_path
from torchrepro_lint.config.roots import FallbackRoot, RootFinder, fallback_root
from torchrepro_lint.config.settings import settings_table
from torchrepro_lint.engine.import_closure import with_imported_files
from torchrepro_lint.engine.incremental_project import FileReport, LinkedProject
from torchrepro_lint.interfaces.lsp.client_settings import Preferences
from torchrepro_lint.interfaces.lsp.documents import Document
from torchrepro_lint.source.errors import UsageError


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
        for linked in {id(home[0]): home[0] for home in self._project_by_path.values() if home is not None}.values():
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
