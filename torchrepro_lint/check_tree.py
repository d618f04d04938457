"""The rules on all given files of a tree, in this process or in several that share the linked project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.checking import SYNTAX_ERROR, Checked, Checker, check, link
from torchrepro_lint.deadline import Late, deadline
from torchrepro_lint.reading import Reading
from torchrepro_lint.text import Span
from torchrepro_lint.workers import FORKS, Death, work_through

if TYPE_CHECKING:
    from torchrepro_lint.project import Project

# So many files take longer to check than processes to start.
_WORTH_PROCESSES = 48
# So many are handed over at once: neighbours ask for the same files.
_TOGETHER = 12
# After so many files that take too long, it is most likely another file that makes them do so.
_MOST_LATE = 2


def check_tree(checker: Checker, files: Mapping[str, Reading], project: Project, jobs: int = 1) -> dict[str, Checked]:
    """What is said of each given file that was read, ``project`` being what all make; the same for any number of processes.

    A file that ends the process which checks it, or takes too long, gets a ``TRL001`` that says so.
    """
    paths = [path for path, _ in checker.tree.given if path in files]
    if jobs < 2 or not FORKS or len(paths) < _WORTH_PROCESSES:
        checking = _Checking(checker, files, project)
        return {path: checking.check(path) for path in paths}
    with contextlib.suppress(Late), deadline(len(files)):
        _prepare(project)
    found = dict(_in_processes(checker, files, project, paths, jobs))
    return {path: found[path] for path in paths}


def _prepare(project: Project) -> None:
    """Work out what nearly every file asks, and each process would work out for itself."""
    from torchrepro_lint.found_calls import all_calls

    project.ask_all()
    all_calls(project)


def _in_processes(
    checker: Checker, files: Mapping[str, Reading], project: Project, paths: Sequence[str], jobs: int
) -> Iterator[tuple[str, Checked]]:
    checking = _Checking(checker, files, project)

    def work(some: Sequence[str]) -> list[Checked]:
        return [checking.check(path) for path in some]

    stretches = [paths[at : at + _TOGETHER] for at in range(0, len(paths), _TOGETHER)]
    lost: list[str] = []
    for number, answer in work_through(work, stretches, jobs, apart=True):
        if isinstance(answer, Death):
            lost += stretches[number]
        else:
            yield from zip(stretches[number], answer, strict=True)
    # One of a stretch has ended its process. Which one shows when each is checked by itself.
    for number, answer in work_through(work, [[path] for path in lost], jobs):
        dead = not_checked(checker, answer) if isinstance(answer, Death) else answer[0]
        yield lost[number], dead


class _Checking:
    """Checks one file after the other, each within its time."""

    def __init__(self, checker: Checker, files: Mapping[str, Reading], project: Project) -> None:
        self._checker = checker
        self._files = files
        self._project = project
        self._late = 0

    def check(self, path: str) -> Checked:
        """What is said of a file."""
        from torchrepro_lint.infer.kinds import kinds_of

        try:
            with deadline(len(self._files)):
                found = check(self._checker, path, self._files[path], self._project_of(path))
                kinds_of(self._project).rest()
                return found
        except Late as late:
            # What was being worked out for the project is broken off, and the file need not be the cause.
            self._late += 1
            self._project = link(self._checker, self._files)
            return not_checked(self._checker, Death(late.reason))

    def _project_of(self, path: str) -> Project:
        """All files; once that has taken too long again and again, the file alone, so that a run comes to an end."""
        return link(self._checker, {path: self._files[path]}) if self._late >= _MOST_LATE else self._project


def not_checked(checker: Checker, death: Death) -> Checked:
    """What is said of a file whose check came to no end."""
    from torchrepro_lint.rule import Finding

    found = Finding(SYNTAX_ERROR, Span(0, 0), f"cannot be checked: {death.reason}")
    return Checked((found,) if any(rule.code == SYNTAX_ERROR for rule in checker.rules) else ())
