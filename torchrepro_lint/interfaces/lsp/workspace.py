"""What is taken for the project of an open file where nothing marks one.

The folders and documents that are open in an editor, and what is to be said of the documents.

Nothing here knows of a protocol. Documents are taken over at once and read when a report is asked for.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

from torchrepro_lint.config.discovery import Given, Tree, plan, relative
from torchrepro_lint.config.roots import Roots, Unmarked, unmarked
from torchrepro_lint.config.settings import table
from torchrepro_lint.interfaces.lsp.documents import Document
from torchrepro_lint.interfaces.lsp.linked import Linked, Report
from torchrepro_lint.interfaces.lsp.preferences import Preferences
from torchrepro_lint.source.errors import UsageError


def surroundings(path: str, folder: str) -> Unmarked:
    """What lies around a file, or in the open folder (empty: none) that it is in.

    A script that is opened in someone's home is no reason to read all that is below: there it stands alone.
    """
    found = unmarked([folder or path])
    return found._replace(top=path) if _is_shared(found.top) else found


def _is_shared(directory: str) -> bool:
    """Whether a directory is someone's home, lies above it, or is that of temporary files."""
    home = os.path.realpath(os.path.expanduser("~"))
    place = os.path.realpath(directory)
    return os.path.join(home, "").startswith(os.path.join(place, "")) or place == os.path.realpath(
        tempfile.gettempdir()
    )


_T = TypeVar("_T")
# So many replaced files may take up memory.
_MANY = 100


class Workspace:
    """The projects of open documents, each linked once. ``complain`` is told what is wrong with settings, ``busy`` is entered
    while a project is read.
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
        self._homes: dict[str, tuple[Linked, str] | None] = {}
        self._linked: dict[tuple[str, str], Linked] = {}
        self._renewed: list[Linked] | None = None
        self._dropped = 0
        # What has been complained of, by the file with the mistake; once until it is mended.
        self._told: set[str] = set()
        self._wrong: set[str] = set()

    @property
    def documents(self) -> Mapping[str, Document]:
        """The open documents by path."""
        return self._documents

    def configure(self, default: Preferences, folders: Mapping[str, Preferences]) -> None:
        """These folders (absolute) are open, each with its settings; ``default`` is for what lies in none."""
        before = {folder: self._preferences(folder) for folder, _ in self._linked}
        self._default, self._folders = default, dict(folders)
        kept = {folder for folder, old in before.items() if old.same_findings(self._preferences(folder))}
        for key in [key for key in self._linked if key[0] not in kept]:
            self._dropped += len(self._linked.pop(key).tree.files)
        self._told.clear()
        self.look_again()

    def take(self, changes: Mapping[str, Document | None]) -> None:
        """Documents by path that were opened or changed; None for one that was closed."""
        for path, document in changes.items():
            if document is not None:
                self._documents[path] = document
                continue
            self._documents.pop(path, None)
            home = self._homes.pop(path, None)
            if home is not None:
                home[0].hide(home[1])

    def look_again(self) -> None:
        """Files or settings have changed on disk. Where settings are wrong now, those before stay in force."""
        table.cache_clear()
        before, self._homes, self._renewed, self._wrong = self._homes, {}, [], set()
        for path in self._documents:
            self._homes[path] = self._guarded(partial(self._find, path), before.get(path))
        for linked in {id(home[0]): home[0] for home in self._homes.values() if home is not None}.values():
            if linked not in self._renewed:
                self._guarded(partial(linked.look_again, linked.tree))
        self._told &= self._wrong
        self._renewed = None
        for path, home in before.items():
            if home is not None and self._homes.get(path) != home:
                home[0].hide(home[1])
        self._drop_unused()

    def reports(self, wanted: Iterable[str] | None = None) -> dict[str, Report | None]:
        """What is to be said of the open documents, or of some; None for what the settings leave out."""
        paths = [path for path in (self._documents if wanted is None else wanted) if path in self._documents]
        for path in self._documents:  # all of them are in the link
            self.home(path)
        return {path: self._guarded(partial(self._report, path)) for path in paths}

    def rest(self) -> None:
        """Let go of links: something has changed, or all is said for now.

        They consist of cycles. To look for those takes seconds in a large project, unless what stays is exempt: the facts.
        Of them some are in cycles, too, so once many were replaced, they are looked at again. A server does not look for cycles
        at any other time.
        """
        for linked in self._linked.values():
            linked.let_go()
        if self._dropped + sum(linked.dropped for linked in self._linked.values()) > _MANY:
            gc.unfreeze()
            self._dropped = 0
            for linked in self._linked.values():
                linked.collected()
        gc.collect()
        gc.freeze()

    def home(self, path: str) -> tuple[Linked, str] | None:
        """The project of an open document, which it holds as the editor has it, and its path there."""
        if path not in self._homes:
            self._homes[path] = self._guarded(partial(self._find, path))
        home = self._homes[path]
        if home is not None:
            home[0].show(home[1], self._documents[path].data)
        return home

    def _report(self, path: str) -> Report | None:
        home = self.home(path)
        return home[0].report(home[1]) if home else None

    def _find(self, path: str) -> tuple[Linked, str] | None:
        """The project of a document and its path there; while looking again, each project is looked at anew once."""
        folder, _ = self._folder(path)
        root = self._roots(path).of(os.path.dirname(path)).path
        known, name = self._linked.get((folder, root)), relative(path, root)
        current = self._renewed is None or known in self._renewed
        if known is not None and current and name in known.tree.files:
            return known, name
        tree = self._tree(path)
        if tree is None:
            return None
        if known is None:
            with self._busy():
                known = self._linked[folder, root] = Linked(tree)
        else:
            known.look_again(_with(tree, self._names(known)))
        if self._renewed is not None:
            self._renewed.append(known)
        return known, name

    def _names(self, linked: Linked) -> set[str]:
        """The documents that a project holds."""
        return {home[1] for home in self._homes.values() if home is not None and home[0] is linked}

    def _tree(self, path: str) -> Tree | None:
        """The project around a document; None where its settings leave it out."""
        folder, preferences = self._folder(path)
        given = Given(path, path, b"")
        options = preferences.options(folder or os.path.dirname(path))
        trees = plan((), options, True, given, surroundings(path, folder)).trees
        return trees[0]._replace(given=()) if trees else None

    def _roots(self, path: str) -> Roots:
        folder, preferences = self._folder(path)
        return Roots(preferences.options(folder or os.path.dirname(path)), surroundings(path, folder))

    def _folder(self, path: str) -> tuple[str, Preferences]:
        """The innermost open folder around a file; none is an empty word."""
        around = [each for each in self._folders if path.startswith(os.path.join(each, ""))]
        found = max(around, key=len, default="")
        return found, self._preferences(found)

    def _preferences(self, folder: str) -> Preferences:
        return self._folders.get(folder, self._default)

    def _drop_unused(self) -> None:
        """Let go of projects of which nothing is open, but for one: its file may be opened again at once."""
        used = [home[0] for home in self._homes.values() if home is not None]
        for key in [key for key, each in self._linked.items() if each not in used][:-1]:
            self._dropped += len(self._linked.pop(key).tree.files)

    def _guarded(self, work: Callable[[], _T | None], before: _T | None = None) -> _T | None:
        """The answer, or the one before where settings are wrong, which is told once."""
        try:
            return work()
        except UsageError as error:
            place = str(error).partition(": ")[0]
            self._wrong.add(place)
            if place not in self._told:
                self._told.add(place)
                self._complain(f"{error}; what it said before stays in force" if before else str(error))
            return before


def _with(tree: Tree, names: Iterable[str]) -> Tree:
    return tree._replace(files=tuple(sorted({*tree.files, *names})))
