"""The links of a project's parts while its files are edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.domain.programs import Link
from torchrepro_lint.engine.partition import Parts
from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.resolve.search_path import ModuleTree

if TYPE_CHECKING:
    from torchrepro_lint.engine.checker import Checker
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
