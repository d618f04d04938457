"""The links of a project's parts while its files are edited.

A project that stays linked while its files are edited: only what changed is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.config.discovery import Given, Tree
from torchrepro_lint.domain.programs import Link
from torchrepro_lint.engine.checker import Checked, Checker, check
from torchrepro_lint.engine.fixer import Fixed, fix_tree
from torchrepro_lint.engine.limits import Late, deadline
from torchrepro_lint.engine.partition import Parts, not_checked
from torchrepro_lint.engine.process_pool import Death
from torchrepro_lint.engine.reading import Reading, read
from torchrepro_lint.engine.run import collector_off, prepare
from torchrepro_lint.interfaces.lsp.documents import OnDisk
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.decoding import Problem, Source, decode, is_notebook

if TYPE_CHECKING:
    from torchrepro_lint.syntax.nodes import Facts


class Links:
    """Hands out a link for each part, told of what has changed where it is known already. ``dropped`` counts the files of those
    that were of no use any more.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._known: dict[Sequence[str], Link] = {}
        self._checker: Checker | None = None
        self._parts: Parts | None = None

    def parts(self, checker: Checker, files: Mapping[str, Reading]) -> Parts:
        """The parts of all files as they are now."""
        found = Parts(checker, files, self, lasting=True, before=self._parts)
        was = self._parts.tree if self._parts is not None else None
        if was is not found.tree and (was is None or was.key != found.tree.key):
            self.forget()
        for paths in self._known.keys() - set(found.paths):
            self._drop(paths)
        self._checker, self._parts = checker, found
        return found

    def link(self, facts: Mapping[str, Facts], tree: ModuleTree) -> Link:
        """The link of a part."""
        assert self._checker is not None
        paths = tuple(facts)
        known = self._known.get(paths)
        if known is None or not known.follow(facts):
            self._drop(paths)
            known = self._known[paths] = Link(facts, tree, self._checker.catalogue.version, keeps=True, firm=True)
        return known

    def leave(self, paths: Sequence[str]) -> None:
        """They stay."""

    def let_go(self) -> None:
        """Of the parts as they are now only the links stay."""
        if self._parts is not None:
            self._parts.unlink()

    def forget(self) -> None:
        """None of them is of use any more."""
        for paths in [*self._known]:
            self._drop(paths)
        self._parts = None

    def _drop(self, paths: Sequence[str]) -> None:
        if self._known.pop(paths, None) is not None:
            self.dropped += len(paths)


class Report(NamedTuple):
    """What is to be said of an open file, and the reading that offsets count in."""

    checked: Checked
    reading: Reading


class Linked:
    """The files of a project, those on disk under the unsaved texts of open ones; paths are from the project's root.

    An open file that does not parse stands in the link as it was when it last did.
    """

    _parts: Parts | None
    _reports: dict[str, Report]
    _fixed: dict[str, Fixed]

    def __init__(self, tree: Tree) -> None:
        self._open: dict[str, tuple[bytes, Reading]] = {}
        self._good: dict[str, Reading] = {}
        self._links = Links()
        self._let_go = 0
        self._forget()
        self.checker = self._checker(tree)
        self._disk = OnDisk(tree)

    @property
    def dropped(self) -> int:
        """Of how many files on disk a reading was let go, or what was linked."""
        return self._let_go + self._links.dropped

    def collected(self) -> None:
        """What was dropped takes no memory any more."""
        self._let_go = self._links.dropped = 0

    @property
    def tree(self) -> Tree:
        """The project as it was last looked at."""
        return self.checker.tree

    def look_again(self, tree: Tree) -> None:
        """Take over settings and files that have changed on disk; raises ``UsageError``."""
        if tree.root.settings.parser != self.tree.root.settings.parser:
            self._read_anew(tree)
            return
        before, self.checker = self.checker, self._checker(tree)
        changed = {path for path in tree.files if self._disk.look_at(path, self._open.get(path))}
        gone = self._disk.keep(tree.files)
        self._let_go += len(changed | gone)
        # What is on disk under an open file does not count.
        if _asked_for(before) != _asked_for(self.checker):
            self._links.forget()
            self._forget()
        elif (changed | gone) - self._good.keys():
            self._forget()

    def _read_anew(self, tree: Tree) -> None:
        """Everything is read by another parser."""
        shown, gone = self._open, len(self._disk.files)
        self.checker, self._disk = self._checker(tree), OnDisk(tree)
        self._let_go += gone
        self._links.forget()
        self._forget()
        self._open, self._good = {}, {}
        for path, (data, _) in shown.items():
            self.show(path, data)

    def show(self, path: str, data: bytes) -> None:
        """An open file has this content."""
        if path in self._open and self._open[path][0] == data:
            return
        saved = self._disk.files.get(path)
        if saved is not None and path not in self._open and _is_saved(saved, decode(data, is_notebook(path))):
            self._open[path], self._good[path] = (data, saved), saved
            return
        linked = self._good.get(path, saved)
        reading = read(data, is_notebook(path), self.tree.root.settings.parser)
        self._open[path] = data, reading
        if reading.facts is not None:
            self._good[path] = reading
        elif saved is not None and saved.facts is not None:
            self._good.setdefault(path, saved)
        if self._good.get(path) is linked is not None:
            self._reports.pop(path, None)
        else:
            self._forget()

    def hide(self, path: str) -> None:
        """A file is open no more; what is on disk counts."""
        if path in self._open:
            shown = self._good.get(path)
            del self._open[path]
            self._good.pop(path, None)
            self._reports.pop(path, None)
            if self._disk.look_at(path) or self._disk.files.get(path) is not shown:
                self._forget()

    def let_go(self) -> None:
        """Forget what is linked: the next report makes another. What has been reported is still known."""
        self._parts = None
        self._links.let_go()

    def report(self, path: str) -> Report | None:
        """All that is to be said about a file; None for one that is not there."""
        reading = self._open[path][1] if path in self._open else self._disk.files.get(path)
        if reading is None:
            return None
        if path not in self._reports:
            with collector_off():
                self._reports[path] = Report(self._checked(path, reading), reading)
        return self._reports[path]

    def _checked(self, path: str, reading: Reading) -> Checked:
        try:
            with deadline(len(self._disk.files)):
                return check(self.checker, path, reading, self._linked().of(path))
        except Late as late:  # what was being worked out is broken off
            self._links.forget()
            self._parts = None
            return not_checked(self.checker, Death(late.reason))

    def fixed(self, path: str) -> Fixed:
        """A file with all fixes in that ``--fix`` would apply to it alone."""
        if path not in self._fixed:
            given = Given(path, self.place(path))
            checker = self.checker._replace(tree=self.tree._replace(given=((path, given),)))
            with collector_off():
                self._fixed[path] = fix_tree(checker, dict(self.readings), self.tree.root.settings.unsafe_fixes)
        return self._fixed[path]

    @property
    def readings(self) -> Mapping[str, Reading]:
        """What is linked, by path."""
        shown = {path: self._good.get(path, reading) for path, (_, reading) in self._open.items()}
        return {**self._disk.files, **shown}

    def is_current(self, path: str) -> bool:
        """Whether what is linked of a file is what the editor shows, or what is on disk."""
        if path in self._open:
            return self._open[path][1].facts is not None
        return self._disk.is_current(path)

    def _linked(self) -> Parts:
        if self._parts is None:
            self._parts = self._links.parts(self.checker, self.readings)
        return self._parts

    def _checker(self, tree: Tree) -> Checker:
        return prepare(tree, honour_comments=True)[0]

    def _forget(self) -> None:
        """What was worked out no longer holds."""
        self._parts = None
        self._reports = {}
        self._fixed = {}

    def place(self, path: str) -> str:
        """The absolute path of a file."""
        return self._disk.place(path)


def _is_saved(saved: Reading, opened: Source | Problem) -> bool:
    """Whether an open text is what was read from disk."""
    return saved.problem is None and saved.source is not None and saved.source == opened


def _asked_for(checker: Checker) -> tuple[object, ...]:
    """What decides, beside the contents of files, what is reported."""
    return checker.tree.root, checker.tree.files, checker.catalogue.version, checker.papers
