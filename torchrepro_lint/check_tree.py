"""The rules on all given files of a tree, in this process or in several that share its parts or what is linked of one."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.checking import SYNTAX_ERROR, Checked, Checker, check
from torchrepro_lint.deadline import Late, allowed, deadline
from torchrepro_lint.parts import Parts
from torchrepro_lint.sharing_out import share_out
from torchrepro_lint.source.errors import NO_ROOM
from torchrepro_lint.source.text import Span
from torchrepro_lint.workers import FORKS, Death, work_through

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project

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
