"""The rules on all given files of a tree, in this process or in several that share the linked project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.checking import SYNTAX_ERROR, Checked, Checker, check
from torchrepro_lint.reading import Reading
from torchrepro_lint.text import Span
from torchrepro_lint.workers import FORKS, Death, work_through

if TYPE_CHECKING:
    from torchrepro_lint.project import Project

# So many files take longer to check than processes to start.
_WORTH_PROCESSES = 48
# So many are handed over at once: neighbours ask for the same files.
_TOGETHER = 12


def check_tree(checker: Checker, files: Mapping[str, Reading], project: Project, jobs: int = 1) -> dict[str, Checked]:
    """What is said of each given file that was read, ``project`` being what all make; the same for any number of processes.

    A file that ends the process which checks it gets a ``TRL001`` that says so.
    """
    paths = [path for path, _ in checker.tree.given if path in files]
    if jobs < 2 or not FORKS or len(paths) < _WORTH_PROCESSES:
        return {path: check(checker, path, files[path], project) for path in paths}
    _prepare(project)
    found = dict(_in_processes(checker, files, project, paths, jobs))
    return {path: found[path] for path in paths}


def _prepare(project: Project) -> None:
    """Work out what nearly every file asks, and each process would work out for itself."""
    from torchrepro_lint.gradients import forward_callers

    _ = project.programs, project.seeds_workers, project.worker_seeds, forward_callers(project)


def _in_processes(
    checker: Checker, files: Mapping[str, Reading], project: Project, paths: Sequence[str], jobs: int
) -> Iterator[tuple[str, Checked]]:
    def work(some: Sequence[str]) -> list[Checked]:
        return [check(checker, path, files[path], project) for path in some]

    stretches = [paths[at : at + _TOGETHER] for at in range(0, len(paths), _TOGETHER)]
    lost: list[str] = []
    for number, answer in work_through(work, stretches, jobs, apart=True):
        if isinstance(answer, Death):
            lost += stretches[number]
        else:
            yield from zip(stretches[number], answer, strict=True)
    # One of a stretch has ended its process. Which one shows when each is checked by itself.
    for number, answer in work_through(work, [[path] for path in lost], jobs):
        dead = _dead(checker, answer) if isinstance(answer, Death) else answer[0]
        yield lost[number], dead


def _dead(checker: Checker, death: Death) -> Checked:
    from torchrepro_lint.rule import Finding

    found = Finding(SYNTAX_ERROR, Span(0, 0), f"cannot be checked: {death.reason}")
    return Checked((found,) if any(rule.code == SYNTAX_ERROR for rule in checker.rules) else ())
