"""The orchestration of a run, the one place where the stages meet: read, link, check, fix and report."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.rule import Finding, Rule, why_unfixed
from torchrepro_lint.config.discovery import GivenFile, Plan, ProjectTree
from torchrepro_lint.config.target import Target, substitution_warning, target_of
from torchrepro_lint.engine.checker import Checker, CheckResult, make_checker
from torchrepro_lint.engine.diagnostic import Baseline, Diagnostic, RunOutcome, UnfollowedProgram
from torchrepro_lint.engine.fixer import FixResult, ReportFilter, completed_fix, fix_tree
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.engine.partition import Partition, check_tree
from torchrepro_lint.engine.read_project import ONE_PROCESS, ParsedProject, ReadOptions, read_tree
from torchrepro_lint.source.files import FileSignature
from torchrepro_lint.source.text import Lines, Position
from torchrepro_lint.syntax.nodes import Record

if TYPE_CHECKING:
    from torchrepro_lint.engine.store.cache import Cache
    from torchrepro_lint.engine.store.finding_store import FindingStore
    from torchrepro_lint.engine.store.query_store import QueryStore


class Progress(Protocol):
    """Progress callback: called with the number of files, it returns a function to call after each file is read."""

    def __call__(self, total: int) -> Callable[[], None]: ...


def run(
    plan: Plan, fix: bool, honour_comments: bool, progress: Progress, options: ReadOptions = ONE_PROCESS
) -> RunOutcome:
    """Lint what was planned; raises ``UsageError`` for settings that do not fit the rules."""
    return run_with_states(plan, fix, honour_comments, progress, options)[0]


def run_with_states(
    plan: Plan,
    fix: bool,
    honour_comments: bool,
    progress: Progress,
    options: ReadOptions,
    baseline: Baseline | None = None,
) -> tuple[RunOutcome, dict[str, tuple[FileSignature, str]]]:
    """``run``, and the state and digest of each file (by absolute path) as read. Findings in ``baseline`` are not fixed."""
    prepared = [prepare(tree, honour_comments) for tree in plan.trees]
    advance = progress(sum(len(tree.files) for tree in plan.trees))
    seen: dict[str, tuple[FileSignature, str]] = {}
    with gc_disabled():
        outcomes = [_run_tree(checker, fix, advance, options, seen, baseline) for checker, _ in prepared]
    return merged_outcome(plan, outcomes, [target for _, target in prepared]), seen


def merged_outcome(plan: Plan, outcomes: Sequence[RunOutcome], targets: Sequence[Target]) -> RunOutcome:
    """The outcome of a run from those of its projects."""
    notes = [note for target in targets if (note := substitution_warning(target))]
    return RunOutcome(
        tuple(sorted((one for outcome in outcomes for one in outcome.diagnostics), key=report_order)),
        sum(outcome.files for outcome in outcomes),
        tuple(change for outcome in outcomes for change in outcome.changes),
        tuple(code for outcome in outcomes for code in outcome.settled),
        tuple(dict.fromkeys(notes)),
        (*plan.errors, *(error for outcome in outcomes for error in outcome.errors)),
        sum(outcome.programs for outcome in outcomes),
        tuple(sorted(one for outcome in outcomes for one in outcome.unfollowed)),
        all(outcome.is_final for outcome in outcomes),
    )


def prepare(tree: ProjectTree, honour_comments: bool) -> tuple[Checker, Target]:
    """The checker of a project, and its target torch."""
    target = target_of(tree.root)
    known = catalogue.load(target.asked or target.version, target.admitted, declared=target.declared)
    return make_checker(tree, RULES, known, honour_comments), target


def _run_tree(
    checker: Checker,
    fix: bool,
    advance: Callable[[], None],
    options: ReadOptions,
    seen: dict[str, tuple[FileSignature, str]],
    baseline: Baseline | None,
) -> RunOutcome:
    project_files = read_tree(checker.tree, advance, options)
    seen.update(project_files.seen)
    fixed = FixResult(project_files.files, {}, (), ())
    cache = None if fix else options.cache(checker.tree.root.path)
    store = _query_store(checker, project_files, cache) if cache else None
    if fix:
        unsafe = checker.tree.root.settings.unsafe_fixes
        wanted = _not_in_baseline(checker, baseline) if baseline else None
        fixed = fix_tree(checker, project_files.files, unsafe, wanted, options.jobs)
    partition = fixed.partition or Partition(checker, fixed.files, store)
    findings = _finding_store(checker, partition, project_files, cache) if cache else None
    checks = check_tree(checker, partition, options.jobs, findings.known() if findings else {})
    found = reported(checker, partition.files, checks)
    if findings:
        findings.update(checks)
        findings.forget_others()
    if store:
        store.forget_others(partition.paths)
    else:
        project_files.store()
    changes = tuple(fixed.changes[path] for path in sorted(fixed.changes))
    errors = (*project_files.errors, *fixed.errors, *found.faults)
    count = len(checker.tree.given) - len(project_files.errors)
    is_final = all(each.is_final for each in checks.values())
    return RunOutcome(
        found.diagnostics, count, changes, fixed.settled, (), errors, found.programs, found.unfollowed, is_final
    )


def _query_store(checker: Checker, project_files: ParsedProject, cache: Cache) -> QueryStore:
    """The query store of a project."""
    from torchrepro_lint.engine.store.query_store import QueryStore

    return QueryStore(checker, project_files, cache)


def _finding_store(
    checker: Checker, partition: Partition, project_files: ParsedProject, cache: Cache
) -> FindingStore | None:
    """The finding store of a project, if all texts are on disk."""
    if any(given.data is not None for _, given in checker.tree.given):
        return None
    from torchrepro_lint.engine.store.finding_store import FindingStore

    return FindingStore(checker, partition, project_files.digests, cache)


def _not_in_baseline(checker: Checker, baseline: Baseline) -> ReportFilter:
    """A filter that removes the findings that a baseline knows."""
    places = {path: given.path for path, given in checker.tree.given}
    return lambda path, lines, findings: baseline.new(places[path], lines, findings)


class TreeReport(Record, frozen=True):
    """The diagnostics of a project, faults of the tool, the number of findings that comments suppress, by path, the number of
    programs, and those that lead into code that is not followed.
    """

    diagnostics: tuple[Diagnostic, ...]
    faults: tuple[str, ...]
    hidden: dict[str, int]
    programs: int
    unfollowed: tuple[UnfollowedProgram, ...]


def report_on(checker: Checker, partition: Partition, jobs: int = 1) -> TreeReport:
    """Run the rules on the files to lint; ``partition`` is that of all files of the project."""
    return reported(checker, partition.files, check_tree(checker, partition, jobs))


def reported(checker: Checker, files: Mapping[str, ParsedFile], checks: Mapping[str, CheckResult]) -> TreeReport:
    """The report of a project from the result of each file."""
    rules = {rule.code: rule for rule in RULES}
    hidden: dict[str, int] = {}
    diagnostics: list[Diagnostic] = []
    faults: dict[str, list[str]] = {}
    unfollowed: list[UnfollowedProgram] = []
    for path, given in checker.tree.given:
        if (checked := checks.get(path)) is None:
            continue
        if not (checked.findings or checked.errors or checked.hidden or checked.programs):
            continue
        parsed = files[path]
        texts = (parsed.lines, parsed.written)
        diagnostics += (
            diagnose(checker.tree.root.path, given, texts, one, rules[one.code], lambda path: files[path].lines)
            for one in (_completed(files, path, each) for each in checked.findings)
        )
        for error in checked.errors:
            faults.setdefault(error, []).append(given.display)
        if checked.hidden:
            hidden[path] = checked.hidden
        unfollowed += (
            UnfollowedProgram(
                given.display,
                given.path,
                each.function,
                parsed.lines.place(each.offset),
                each.gap,
                checker.tree.root.path,
            )
            for each in checked.programs
            if each.gap
        )
    fault_lines = tuple(_fault(error, where) for error, where in sorted(faults.items()))
    programs = sum(len(each.programs) for each in checks.values())
    return TreeReport(tuple(diagnostics), fault_lines, hidden, programs, tuple(unfollowed))


def _completed(files: Mapping[str, ParsedFile], path: str, finding: Finding) -> Finding:
    """A finding with the whole of its fix."""
    return finding._replace(remedy=completed_fix(files, path, finding.fix)) if finding.fix else finding


def _fault(error: str, where: list[str]) -> str:
    """One line for a fault that any number of files show."""
    return f"{where[0]}: {error}" + (f" (and in {len(where) - 1} more files)" if len(where) > 1 else "")


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector: syntax trees hold no cycles and stay to the end, and scanning them costs a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def diagnose(
    root: str,
    given: GivenFile,
    texts: tuple[Lines, Lines],
    finding: Finding,
    rule: Rule,
    others: Callable[[str], Lines],
) -> Diagnostic:
    """The diagnostic of a finding in the project at ``root``; the paths of its steps become absolute.

    ``texts`` are the lines of the file and as they are written; ``others`` gives the lines of another file.
    """
    lines, written = texts
    elsewhere = finding.fix.elsewhere if finding.fix else ()
    start, end = lines.place(finding.span.start), lines.place(finding.span.end)
    return Diagnostic(
        given.display,
        start,
        finding.code,
        finding.message,
        given.path,
        end,
        rule.name,
        finding.severity or rule.severity,
        finding.fix,
        lines,
        tuple(step._replace(path=_absolute(root, step.path)) for step in finding.steps),
        tuple((path, _absolute(root, path), others(path)) for path, _ in elsewhere),
        finding.span,
        written,
        why_unfixed(finding, rule),
        root,
    )


def _absolute(root: str, path: str) -> str:
    return os.path.join(root, *path.split("/"))


def report_order(diagnostic: Diagnostic) -> tuple[str, int, Position, str, str]:
    """The sort key of every report: path, cell, row, column, code."""
    return diagnostic.display, diagnostic.start.cell, diagnostic.start, diagnostic.code, diagnostic.message
