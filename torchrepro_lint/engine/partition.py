"""The parts of a project: files of which nothing said in one part depends on what stands in another.

Which process checks which parts of a project, so that all are done at about the same time.

The rules on all given files of a tree, in this process or in several that share its parts or what is linked of one.
"""

from __future__ import annotations

import contextlib
import gc
import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchrepro_lint.config.discovery import source_roots
from torchrepro_lint.config.roots import join, top_folders
from torchrepro_lint.domain.project import Project
from torchrepro_lint.engine.checker import SYNTAX_ERROR, Checked, Checker, check, link
from torchrepro_lint.engine.limits import Late, allowed, deadline
from torchrepro_lint.engine.process_pool import FORKS, Death, work_through
from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.engine.store.file_store import let_go, stay
from torchrepro_lint.query.fixpoint import UnionFind
from torchrepro_lint.resolve.search_path import ModuleTree, places_of
from torchrepro_lint.source.errors import NO_ROOM
from torchrepro_lint.source.text import Span
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


# What share of the work on a part is asked of all its files together, by one process.
_ASKED = 0.3


class Shares(NamedTuple):
    """The numbers of the parts that each process checks by itself, one bundle for each, and of those that all check together."""

    bundles: tuple[tuple[int, ...], ...]
    shared: tuple[int, ...]


def share_out(weights: Sequence[int], jobs: int) -> Shares:
    """How parts of these weights are checked soonest by so many processes.

    What is asked of all files of the first part that all check together is worked out while the others are checked; that of
    further ones before they are.
    """
    return min(_ways(weights, jobs), key=lambda way: _time(weights, way, jobs))


def _ways(weights: Sequence[int], jobs: int) -> Iterator[Shares]:
    """No part is shared, or one, or the heaviest ones."""
    order = sorted(range(len(weights)), key=lambda each: (-weights[each], each))
    shared = [(), *((each,) for each in order), *(tuple(order[:count]) for count in range(2, len(order) + 1))]
    for some in shared[: 4 * jobs + 1]:
        yield Shares(_bundles([each for each in order if each not in some], weights, jobs), some)


def _bundles(order: Sequence[int], weights: Sequence[int], jobs: int) -> tuple[tuple[int, ...], ...]:
    """The heaviest first, each to whoever has least."""
    found: list[list[int]] = [[] for _ in range(min(jobs, len(order)))]
    loads = [0] * len(found)
    for each in order:
        least = loads.index(min(loads))
        found[least].append(each)
        loads[least] += weights[each]
    return tuple(map(tuple, found))


def _time(weights: Sequence[int], way: Shares, jobs: int) -> float:
    """How long that takes, about."""
    bundles = [sum(weights[each] for each in bundle) for bundle in way.bundles]
    asked = [weights[each] * _ASKED for each in way.shared]
    first = max((*bundles, *asked[:1], (sum(bundles) + sum(asked[:1])) / jobs), default=0)
    return first + sum(asked[1:]) + sum(weights[each] for each in way.shared) * (1 - _ASKED) / jobs


# So many files take longer to check than processes to start.
_WORTH_PROCESSES = 48
# So many are handed over at once: neighbours ask for the same files.
_TOGETHER = 12
# After so many files that take too long, it is most likely another file that makes them do so.
_MOST_LATE = 2
# Seconds that processes may take for all that they do.
_ENDLESS = 86_400.0


def check_tree(checker: Checker, parts: Parts, jobs: int = 1) -> dict[str, Checked]:
    """What is said of each given file that was read, ``parts`` being those of all; the same for any number of processes.

    A file that ends the process which checks it, or takes too long, gets a ``TRL001`` that says so.
    """
    paths = [path for path, _ in checker.tree.given if path in parts.files]
    checking = _Checking(checker, parts)
    together = list(parts.together(paths))
    if jobs < 2 or not FORKS or len(paths) < _WORTH_PROCESSES:
        found = dict(checking.parts(together))
    else:
        found = dict(_in_processes(checker, checking, parts, together, jobs))
    return {path: found[path] for path in paths}


def _in_processes(
    checker: Checker, checking: _Checking, parts: Parts, together: Sequence[Sequence[str]], jobs: int
) -> Iterator[tuple[str, Checked]]:
    shares = share_out([parts.weight(paths) for paths in together], jobs)
    bundles = [[together[number] for number in numbers] for numbers in shares.bundles]
    shared = [together[number] for number in shares.shared]
    again: list[Sequence[str]] = []
    lost: list[str] = []

    def prepare() -> None:
        if shared:
            _prepare(parts, shared[0])

    # Who takes too long for one file ends itself.
    for number, answer in work_through(checking.bundle, bundles, jobs, deadline=_ENDLESS, meanwhile=prepare):
        if isinstance(answer, Death):
            again += bundles[number]
        else:
            yield from answer
    for number, paths in enumerate((*shared, *again)):
        if 0 < number < len(shared):
            _prepare(parts, paths)
        some = _stretches(paths)
        for each, told in work_through(checking.all, some, jobs, apart=True):
            if isinstance(told, Death):
                lost += some[each]
            else:
                yield from zip(some[each], told, strict=True)
        parts.done(paths[0])
    # One of a stretch has ended its process. Which one shows when each is checked by itself.
    for number, last in work_through(checking.check, lost, jobs):
        yield lost[number], not_checked(checker, last) if isinstance(last, Death) else last


def _stretches(paths: Sequence[str]) -> list[Sequence[str]]:
    return [paths[at : at + _TOGETHER] for at in range(0, len(paths), _TOGETHER)]


def _prepare(parts: Parts, paths: Sequence[str]) -> None:
    """Work out what nearly every file of a part asks, and each process would work out for itself."""
    with contextlib.suppress(Late, MemoryError), deadline(len(parts.files)):
        project = parts.of(paths[0])
        project.ask_all()
        _ = project.all_calls


class _Checking:
    """Checks one file after the other, each within its time."""

    def __init__(self, checker: Checker, parts: Parts) -> None:
        self._checker = checker
        self._parts = parts
        self._late = 0
        self._limit = 0.0

    def all(self, paths: Iterable[str]) -> list[Checked]:
        """What is said of files."""
        return [self.check(path) for path in paths]

    def parts(self, some: Iterable[Sequence[str]]) -> list[tuple[str, Checked]]:
        """What is said of the files of parts, each linked when it is its turn."""
        found: list[tuple[str, Checked]] = []
        for paths in some:
            found += zip(paths, self.all(paths), strict=True)
            self._parts.done(paths[0])
        return found

    def bundle(self, some: Iterable[Sequence[str]]) -> list[tuple[str, Checked]]:
        """The same in a process of its own, which ends where nothing else stops what takes too long."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._limit = 2 * allowed(len(self._parts.files))
        try:
            return self.parts(some)
        finally:  # who asked for it may be busy for longer
            signal.setitimer(signal.ITIMER_REAL, 0)

    def check(self, path: str) -> Checked:
        """What is said of a file."""
        from torchrepro_lint.dataflow.types.inference import kinds_of

        reading = self._parts.files[path]
        if self._limit:
            signal.setitimer(signal.ITIMER_REAL, self._limit)
        try:
            with deadline(len(self._parts.files)):
                project = self._project_of(path)
                found = check(self._checker, path, reading, project)
                kinds_of(project).rest()
                return found
        except (Late, MemoryError) as error:
            # What was being worked out for the part is broken off, and the file need not be the cause.
            self._late += 1
            self._parts.begin_again(path)
            return not_checked(self._checker, Death(error.reason if isinstance(error, Late) else NO_ROOM))

    def _project_of(self, path: str) -> Project:
        """The part of a file; once that has taken too long again and again, the file alone, so that a run comes to an end."""
        return self._parts.alone(path) if self._late >= _MOST_LATE else self._parts.of(path)


def not_checked(checker: Checker, death: Death) -> Checked:
    """What is said of a file whose check came to no end."""
    from torchrepro_lint.checks.rule import Finding

    found = Finding(SYNTAX_ERROR, Span(0, 0), f"cannot be checked: {death.reason}")
    return Checked((found,) if any(rule.code == SYNTAX_ERROR for rule in checker.rules) else ())
