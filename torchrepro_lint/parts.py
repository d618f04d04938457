"""The parts of a project: files of which nothing said in one part depends on what stands in another."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.checking import Checker, link
from torchrepro_lint.config.discovery import source_roots
from torchrepro_lint.config.roots import join, top_folders
from torchrepro_lint.domain.project import Project
from torchrepro_lint.put_away import let_go, stay
from torchrepro_lint.query.fixpoint import UnionFind
from torchrepro_lint.reading import Reading
from torchrepro_lint.resolve.search_path import ModuleTree, places_of
from torchrepro_lint.syntax.nodes import Constant, Facts
from torchrepro_lint.syntax.visitor import bodies, expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Link

# To look for what is let go of takes a while, whatever is found.
_MUCH = 100
_WORD = re.compile(r"[^\W\d]\w*")


class Links(Protocol):
    """What is known of parts, each by its paths in order."""

    def link(self, facts: Mapping[str, Facts], tree: ModuleTree) -> Link:
        """A link of these facts with what is known of them."""

    def leave(self, paths: Sequence[str]) -> None:
        """Nothing more is asked of a part for now."""


def split(files: Mapping[str, Facts], tree: ModuleTree) -> tuple[tuple[str, ...], ...]:
    """The paths of each part, sorted; ``tree`` is that of the files.

    Two files are in one part if one imports the other, or if they lie in one of ``top_folders``. Who calls ``import_module``
    may mean what any text in the same file begins with, and a script at the root any file.
    """
    by_words = [path for path, each in files.items() if "import_module" in each.summary.calls]
    if any("/" not in path for path in by_words):
        return (tuple(sorted(files)),)
    groups = UnionFind(files)
    folders, first = top_folders(files), dict[str, str]()
    for path, facts in files.items():
        groups.join(path, first.setdefault(folders[path], path))
        for name in facts.summary.imports:
            other = tree.module(path, name)
            if other is not None:
                groups.join(path, other)
    for path in by_words:
        homes = ((tree.home_for(path, [word]), word) for word in _first_words(files[path]))
        for place in {join(home, word) for home, word in homes if home is not None}:
            for other in files:
                if other == f"{place}.py" or other.startswith(f"{place}/"):
                    groups.join(path, other)
    return groups.sorted()


def _first_words(facts: Facts) -> set[str]:
    """What the texts in a file begin with, as the name of a module would."""
    every = (
        each
        for body in bodies(facts)
        for statement in statements(body)
        for expression in expressions(statement)
        for each in within(expression)
    )
    texts = {each.value for each in every if isinstance(each, Constant) and isinstance(each.value, str)}
    return {found[0] for text in texts if (found := _WORD.match(text))}


def _lies_alike(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> bool:
    """Whether the modules lie in the same places and lead to the same others."""
    return before.keys() == after.keys() and all(
        was is after[path] or _leads(path, was) == _leads(path, after[path]) for path, was in before.items()
    )


def _leads(path: str, facts: Facts) -> tuple[object, ...]:
    by_words = "import_module" in facts.summary.calls
    return facts.summary.imports, by_words and _first_words(facts), *places_of(path, facts)


class Parts:
    """The parts of a project, each linked when it is asked for; ``lasting`` ones stay linked when they are done with.

    ``links`` has what was known of them before, and takes what is now; ``before`` are those of files of the same tree as they
    were earlier. Files without facts are a part by themselves.
    """

    def __init__(
        self,
        checker: Checker,
        files: Mapping[str, Reading],
        links: Links | None = None,
        *,
        lasting: bool = False,
        before: Parts | None = None,
    ) -> None:
        self._checker = checker
        self._links = links
        self.files = files
        self.facts = facts = {path: each.facts for path, each in sorted(files.items()) if each.facts is not None}
        if before is not None and _lies_alike(before.facts, facts):
            self.tree: ModuleTree = before.tree
            self.paths: tuple[tuple[str, ...], ...] = before.paths
        else:
            self.tree = ModuleTree(facts, source_roots(checker.tree))
            self.paths = split(facts, self.tree)
        self._number = {path: number for number, paths in enumerate(self.paths) for path in paths}
        self._linked: dict[int | None, Project] = {}
        # Of how many files what was linked was let go of: it leads back to itself, and so stays until that is looked for.
        self._rubbish = 0
        self._lasting = lasting or len(self.paths) < 2
        if self._lasting:
            for each in facts.values():
                stay(each)

    def of(self, path: str) -> Project:
        """The part of a file."""
        number = self._number.get(path)
        found = self._linked.get(number)
        if found is None:
            if self._rubbish > _MUCH:
                gc.collect()
                self._rubbish = 0
            found = self._linked[number] = self._link(self._of_number(number))
        return found

    def all(self) -> Iterator[Project]:
        """One after the other."""
        return (self.of(paths[0]) for paths in self.paths)

    def together(self, paths: Iterable[str]) -> Iterator[list[str]]:
        """Paths by their parts, in the order in which the first of each comes."""
        found: dict[int | None, list[str]] = {}
        for path in paths:
            found.setdefault(self._number.get(path), []).append(path)
        return iter(found.values())

    def weight(self, paths: Iterable[str]) -> int:
        """How much there is to be said of files, as far as their summaries tell."""
        summaries = (self.facts[path].summary for path in paths if path in self.facts)
        return sum(len(each.calls) + len(each.values) for each in summaries)

    def alone(self, path: str) -> Project:
        """A file as if there were no others."""
        return self._linked_anew([path])

    def begin_again(self, path: str) -> None:
        """What was being worked out for the part of a file was broken off: it is linked anew, from nothing."""
        number = self._number.get(path)
        self._linked[number] = self._linked_anew(self._of_number(number))

    def unlink(self) -> None:
        """Forget what is linked of all."""
        self._linked.clear()

    def done(self, path: str) -> None:
        """Nothing is asked of the part of a file for now: leave what is known of it to the next run, and let go of it."""
        number = self._number.get(path)
        paths = self._of_number(number)
        if self._links is not None:
            self._links.leave(paths)
        if not self._lasting:
            self._linked.pop(number, None)
            for each in paths:
                let_go(self.facts[each])
            self._rubbish += len(paths)

    def _of_number(self, number: int | None) -> tuple[str, ...]:
        return () if number is None else self.paths[number]

    def _link(self, paths: tuple[str, ...]) -> Project:
        facts = {path: self.facts[path] for path in paths}
        return self._linked_anew(paths, self._links.link(facts, self.tree) if self._links and paths else None)

    def _linked_anew(self, paths: Iterable[str], before: Link | None = None) -> Project:
        return link(self._checker, {path: self.files[path] for path in paths}, self.tree, before)
