"""The one place where the stages meet: discover, read, link, check, and report or fix."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.discovery import Plan, Tree
from torchrepro_lint.config.target import Target, target_of, warning
from torchrepro_lint.engine.baseline import Baseline
from torchrepro_lint.engine.checker import Checker, make_checker
from torchrepro_lint.engine.diagnostic import Diagnostic, Outcome, diagnose, order
from torchrepro_lint.engine.fixer import Fixed, Reported, fix_tree
from torchrepro_lint.engine.partition import Parts, check_tree
from torchrepro_lint.engine.read_project import ALONE, Means, Readings, read_tree
from torchrepro_lint.source.files import State

if TYPE_CHECKING:
    from torchrepro_lint.engine.store.query_store import Carried


class Progress(Protocol):
    """Is told how many files there are, then of each that was read."""

    def __call__(self, total: int) -> Callable[[], None]: ...


def run(plan: Plan, fix: bool, honour_comments: bool, progress: Progress, means: Means = ALONE) -> Outcome:
    """Lint what was planned; raises ``UsageError`` for settings that do not fit the rules."""
    return run_and_see(plan, fix, honour_comments, progress, means)[0]


def run_and_see(
    plan: Plan, fix: bool, honour_comments: bool, progress: Progress, means: Means, baseline: Baseline | None = None
) -> tuple[Outcome, dict[str, tuple[State, str]]]:
    """``run``, and how each file (by absolute path) was when it was read. What a ``baseline`` knows is not fixed."""
    prepared = [prepare(tree, honour_comments) for tree in plan.trees]
    advance = progress(sum(len(tree.files) for tree in plan.trees))
    seen: dict[str, tuple[State, str]] = {}
    with collector_off():
        outcomes = [_run_tree(checker, fix, advance, means, seen, baseline) for checker, _ in prepared]
    notes = [note for _, target in prepared if (note := warning(target))]
    outcome = Outcome(
        tuple(sorted((one for outcome in outcomes for one in outcome.diagnostics), key=order)),
        sum(outcome.files for outcome in outcomes),
        tuple(change for outcome in outcomes for change in outcome.changes),
        tuple(code for outcome in outcomes for code in outcome.settled),
        tuple(dict.fromkeys(notes)),
        (*plan.errors, *(error for outcome in outcomes for error in outcome.errors)),
    )
    return outcome, seen


def prepare(tree: Tree, honour_comments: bool) -> tuple[Checker, Target]:
    """What a tree is checked with, and for which torch."""
    target = target_of(tree.root)
    return make_checker(tree, RULES, catalogue.load(target.version), honour_comments), target


def _run_tree(
    checker: Checker,
    fix: bool,
    advance: Callable[[], None],
    means: Means,
    seen: dict[str, tuple[State, str]],
    baseline: Baseline | None,
) -> Outcome:
    readings = read_tree(checker.tree, advance, means)
    seen.update(readings.seen)
    fixed = Fixed(readings.files, {}, (), ())
    carried = None if fix else _carried(checker, readings, means)
    if fix:
        unsafe = checker.tree.root.settings.unsafe_fixes
        reported = _unknown(checker, baseline) if baseline else None
        fixed = fix_tree(checker, readings.files, unsafe, reported, means.jobs)
    parts = fixed.parts or Parts(checker, fixed.files, carried)
    found = report_on(checker, parts, means.jobs)
    if carried:
        carried.forget_others(parts.paths)
    else:
        readings.store()
    changes = tuple(fixed.changes[path] for path in sorted(fixed.changes))
    errors = (*readings.errors, *fixed.errors, *found.faults)
    count = len(checker.tree.given) - len(readings.errors)
    return Outcome(found.diagnostics, count, changes, fixed.settled, (), errors)


def _carried(checker: Checker, readings: Readings, means: Means) -> Carried | None:
    """What the last run left, where there is a cache."""
    cache = means.cache(checker.tree.root.path)
    if cache is None:
        return None
    from torchrepro_lint.engine.store.query_store import Carried

    return Carried(checker, readings, cache)


def _unknown(checker: Checker, baseline: Baseline) -> Reported:
    """Leaves out the findings that a baseline knows."""
    places = {path: given.path for path, given in checker.tree.given}
    return lambda path, lines, findings: baseline.new(places[path], lines, findings)


class Said(NamedTuple):
    """What is to be said of a tree's files, the faults of the tool, and how many findings comments suppress, by path."""

    diagnostics: tuple[Diagnostic, ...]
    faults: tuple[str, ...]
    hidden: dict[str, int]


def report_on(checker: Checker, parts: Parts, jobs: int = 1) -> Said:
    """Run the rules on the files that are given; ``parts`` are those of all files."""
    checks, files = check_tree(checker, parts, jobs), parts.files
    rules = {rule.code: rule for rule in RULES}
    hidden: dict[str, int] = {}
    diagnostics: list[Diagnostic] = []
    faults: dict[str, list[str]] = {}
    for path, given in checker.tree.given:
        if (checked := checks.get(path)) is None:
            continue
        reading = files[path]
        texts = (reading.lines, reading.written)
        diagnostics += (
            diagnose(checker.tree.root.path, given, texts, one, rules[one.code], lambda path: files[path].lines)
            for one in checked.findings
        )
        for error in checked.errors:
            faults.setdefault(error, []).append(given.display)
        if checked.hidden:
            hidden[path] = checked.hidden
    told = tuple(_fault(error, where) for error, where in sorted(faults.items()))
    return Said(tuple(diagnostics), told, hidden)


def _fault(error: str, where: list[str]) -> str:
    """A fault that many files show is one fault, and one line."""
    return f"{where[0]}: {error}" + (f" (and in {len(where) - 1} more files)" if len(where) > 1 else "")


@contextmanager
def collector_off() -> Iterator[None]:
    """Facts hold no cycles and stay to the end: looking for garbage among them costs a tenth of the time and finds none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
