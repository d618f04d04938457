"""The one place where the stages meet: discover, read, link, check, and report or fix."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from torchrepro_lint import catalogue
from torchrepro_lint.checking import Checker, check, link, make_checker
from torchrepro_lint.checks import RULES
from torchrepro_lint.diagnostic import Diagnostic, diagnose, order
from torchrepro_lint.files import Plan, Tree
from torchrepro_lint.fixer import Fixed, fix_tree
from torchrepro_lint.reading import Reading, read_tree
from torchrepro_lint.resources import documented_versions
from torchrepro_lint.target import Target, find_target
from torchrepro_lint.writing import Change


class Progress(Protocol):
    """Is told how many files there are, then of each that was read."""

    def __call__(self, total: int) -> Callable[[], None]: ...


class Outcome(NamedTuple):
    """What a run found, in the order of every report.

    ``changes`` are the files that fixes changed, not yet written, ``settled`` the codes of the findings that they settle;
    ``notes`` are for the user to know, ``errors`` make the run fail.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    changes: tuple[Change, ...]
    settled: tuple[str, ...]
    notes: tuple[str, ...]
    errors: tuple[str, ...]


def run(plan: Plan, fix: bool, honour_comments: bool, progress: Progress) -> Outcome:
    """Lint what was planned; raises ``UsageError`` for settings that do not fit the rules."""
    prepared = [prepare(tree, honour_comments) for tree in plan.trees]
    advance = progress(sum(len(tree.files) for tree in plan.trees))
    with _collector_off():
        outcomes = [_run_tree(checker, fix, advance) for checker, _ in prepared]
    notes = [note for _, target in prepared if (note := _note(target))]
    return Outcome(
        tuple(sorted((one for outcome in outcomes for one in outcome.diagnostics), key=order)),
        sum(outcome.files for outcome in outcomes),
        tuple(change for outcome in outcomes for change in outcome.changes),
        tuple(code for outcome in outcomes for code in outcome.settled),
        tuple(dict.fromkeys(notes)),
        (*plan.errors, *(error for outcome in outcomes for error in outcome.errors)),
    )


def prepare(tree: Tree, honour_comments: bool) -> tuple[Checker, Target]:
    """What a tree is checked with, and for which torch."""
    target = target_of(tree)
    return make_checker(tree, RULES, catalogue.load(target.version), honour_comments), target


def target_of(tree: Tree) -> Target:
    """The torch that a project will run."""
    return find_target(Path(tree.root.path), tree.root.settings.torch_version, documented_versions())


def _run_tree(checker: Checker, fix: bool, advance: Callable[[], None]) -> Outcome:
    readings = read_tree(checker.tree, advance)
    fixed = Fixed(readings.files, {}, (), ())
    if fix:
        fixed = fix_tree(checker, readings.files, checker.tree.root.settings.unsafe_fixes)
    diagnostics, faults = _report(checker, fixed.files)
    changes = tuple(fixed.changes[path] for path in sorted(fixed.changes))
    errors = (*readings.errors, *fixed.errors, *faults)
    count = len(checker.tree.given) - len(readings.errors)
    return Outcome(tuple(diagnostics), count, changes, fixed.settled, (), errors)


def _report(checker: Checker, files: dict[str, Reading]) -> tuple[list[Diagnostic], list[str]]:
    rules = {rule.code: rule for rule in RULES}
    project = link(checker, files)
    diagnostics: list[Diagnostic] = []
    faults: dict[str, list[str]] = {}
    for path, given in checker.tree.given:
        if (reading := files.get(path)) is None:
            continue
        checked = check(checker, path, reading, project)
        texts = (reading.lines, reading.written)
        diagnostics += (
            diagnose(checker.tree.root.path, given, texts, one, rules[one.code], lambda path: files[path].lines)
            for one in checked.findings
        )
        for error in checked.errors:
            faults.setdefault(error, []).append(given.display)
    return diagnostics, [_fault(error, where) for error, where in sorted(faults.items())]


def _fault(error: str, where: list[str]) -> str:
    """A fault that many files show is one fault, and one line."""
    return f"{where[0]}: {error}" + (f" (and in {len(where) - 1} more files)" if len(where) > 1 else "")


def _note(target: Target) -> str | None:
    if target.asked is None:
        return None
    return f"torch {target.asked} ({target.decided_by}) is not in the catalogue; torch {target.version} is used instead"


@contextmanager
def _collector_off() -> Iterator[None]:
    """Facts hold no cycles and stay to the end: looking for garbage among them costs a tenth of the time and finds none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
