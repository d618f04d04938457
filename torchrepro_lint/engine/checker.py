"""The per-file rule runner: select rules, link the project, run the rules on one file, drop suppressed findings.

A rule that raises is reported as an error, and the other rules still run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.libraries import LibraryVersions
from torchrepro_lint.config.configurations import read_configurations
from torchrepro_lint.config.discovery import ProjectTree, glob_matcher
from torchrepro_lint.config.settings import Selection, is_at_least, matching_codes, require_known, selected_codes
from torchrepro_lint.config.target import console_scripts, required_libraries
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.engine.rule_groups import GroupResult, ProgramState, run_groups
from torchrepro_lint.source.suppressions import Suppression, suppressions
from torchrepro_lint.source.text import Fix, Lines, NoFix, Position, Span
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.syntax_errors import ASYNC

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.checks.rule import Finding, Rule
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.source.files import Configuration
    from torchrepro_lint.trace.traces import Traces

SYNTAX_ERROR = "TRL001"
UNUSED_SUPPRESSION = "TRL002"
# Rules whose fixes write nothing of torch, or only what all releases of torch have: seeds, cuDNN's flags, a sorted order.
_FIXED_IN_EVERY_RELEASE = frozenset(
    (UNUSED_SUPPRESSION, *(f"TRL{number}" for number in (101, 102, 103, 104, 105, 110, 201, 202, 502, 503, 504)))
)
NOT_FOLLOWED = "TRL003"
TOO_DEEP = "the analysis of this file ends at a limit: too many names, calls or expressions depend on one another"


class ProjectManifest(Record, frozen=True):
    """The project manifest: console scripts and library requirements from pyproject.toml and requirement files, and what
    its configuration files name.
    """

    scripts: tuple[str, ...]
    libraries: LibraryVersions
    configurations: tuple[Configuration, ...] = ()


class Checker(Record, frozen=True):
    """The configuration of the rules for one project.

    ``rules`` are the selected ones, ``fixable`` the codes whose fixes are offered, ``ignores`` the codes that are
    ignored in the files that a test accepts. ``table`` has all rules, selected or not; it is empty where it cannot be told
    which suppressions are unused. ``finds_gaps`` says that the programs of each file are searched for gaps.
    """

    tree: ProjectTree
    rules: tuple[Rule, ...]
    fixable: frozenset[str]
    ignores: tuple[tuple[Callable[[str], bool], frozenset[str]], ...]
    catalogue: Catalogue
    honour_comments: bool
    manifest: ProjectManifest
    table: tuple[Rule, ...] = ()
    finds_gaps: bool = True


class CheckResult(Record, frozen=True):
    """The findings in one file, by position and code; ``errors`` are faults of the tool, ``hidden`` counts the findings that
    comments suppress, ``programs`` are those that start in the file. A result that is not ``is_final`` may come out otherwise in
    another run: a rule failed, or the check took too long.
    """

    findings: tuple[Finding, ...]
    errors: tuple[str, ...] = ()
    hidden: int = 0
    programs: tuple[ProgramState, ...] = ()
    is_final: bool = True


def make_checker(tree: ProjectTree, rules: Sequence[Rule], catalogue: Catalogue, honour_comments: bool) -> Checker:
    """Resolve the settings of a tree; raises ``UsageError`` for a selector that fits no rule."""
    settings = tree.root.settings
    origin = str(tree.root.config)
    codes = selected_codes(rules, settings.selections)
    fixing = Selection(settings.fixable, (), settings.unfixable)
    require_known(rules, settings.fixable, f"fixable of {origin}")
    require_known(rules, settings.unfixable, f"unfixable of {origin}")
    ignores = []
    for pattern, selectors in settings.per_file_ignores:
        require_known(rules, selectors, f"per-file-ignores of {origin}")
        ignores.append((_path_test(tree.root.path, pattern), matching_codes(rules, selectors)))
    enabled = tuple(rule for rule in rules if rule.code in codes)
    return Checker(
        tree,
        enabled,
        selected_codes(rules, [fixing]),
        tuple(ignores),
        catalogue,
        honour_comments,
        read_manifest(tree),
        tuple(rules),
    )


def read_manifest(tree: ProjectTree) -> ProjectManifest:
    """Read the manifest of a project."""
    root = Path(tree.root.path)
    return ProjectManifest(console_scripts(root), required_libraries(root), read_configurations(tree))


def link_project(
    checker: Checker, files: Mapping[str, ParsedFile], tree: ModuleTree, before: Names | None = None
) -> Traces:
    """Link ``files`` into a project; ``tree`` is the module tree. ``before`` are the names of an earlier project, which have been
    told of all changes.
    """
    from torchrepro_lint.trace.traces import Traces

    facts = {path: parsed.facts for path, parsed in files.items() if parsed.facts is not None}
    lines: dict[str, Lines] = {}

    def position(path: str, offset: int) -> Position:
        record_read(path)
        if path not in lines:
            lines[path] = files[path].lines
        return lines[path].place(offset)

    def text(path: str) -> str:
        record_read(path)
        return files[path].text

    project = Traces(
        facts,
        checker.tree.root.settings,
        checker.catalogue,
        tree,
        checker.manifest.scripts,
        position,
        text,
        checker.manifest.libraries,
        before,
    )
    record_read = project.resolver.modules.reads.record_read
    return project


def check(checker: Checker, path: str, parsed: ParsedFile, project: Traces) -> CheckResult:
    """Run the rules on one file and drop suppressed findings."""
    from torchrepro_lint.checks.rule import Finding
    from torchrepro_lint.trace.traces import Context

    ignored = frozenset[str]().union(*(codes for test, codes in checker.ignores if test(path)))
    # Nothing but that it cannot run is said of a file that is read although Python refuses it.
    refused = _is_refused(parsed)
    rules = tuple(
        rule for rule in checker.rules if rule.code not in ignored and (not refused or rule.code == SYNTAX_ERROR)
    )
    ran = GroupResult()
    if parsed.facts is not None:
        settings = checker.tree.root.settings
        context = Context(path, parsed.facts, parsed.lines, project, checker.catalogue, settings)
        ran = run_groups(rules, context, checker.finds_gaps)
    findings, programs = ran.findings + _syntax_errors(rules, parsed), ran.programs
    if ran.too_deep:
        programs = tuple(each._replace(gap=each.gap or TOO_DEEP) for each in programs or (ProgramState(""),))
        if any(rule.code == NOT_FOLLOWED for rule in rules):
            findings += (Finding(NOT_FOLLOWED, Span(0, 0), f"{TOO_DEEP}; findings may be missing"),)
    complete = not (parsed.problems or refused or ran.errors or ran.too_deep)
    judged = complete and any(rule.code == UNUSED_SUPPRESSION for rule in rules)
    comments = suppressions(parsed.lines) if checker.honour_comments and (findings or judged) else ()
    unused = _unused(checker, rules, parsed, findings, comments) if judged else ()
    visible, hidden = _visible(checker, rules, parsed.lines, (*findings, *unused), comments)
    shown = [finding._replace(remedy=_applicable(checker, parsed, finding)) for finding in visible]
    return CheckResult(_sorted_unique(shown), ran.errors, hidden, programs, ran.is_final)


def _is_refused(parsed: ParsedFile) -> bool:
    """Whether a file has ``async`` as a name, so that no Python since 3.7 runs it; of a notebook the other cells run."""
    if ASYNC not in parsed.text or (parsed.source is not None and parsed.source.notebook is not None):
        return False
    from torchrepro_lint.syntax.parse import read_as_names  # few runs parse here

    return bool(read_as_names(parsed.text))


def broken_off(checker: Checker, parsed: ParsedFile, done: Sequence[Finding], reason: str) -> CheckResult:
    """The result for a file whose check was broken off: the findings so far, without their fixes, and one that says why."""
    from torchrepro_lint.checks.rule import Finding

    comments = suppressions(parsed.lines) if checker.honour_comments and done else ()
    visible, hidden = _visible(checker, checker.rules, parsed.lines, done, comments)
    shown = [one._replace(remedy=NoFix("the file was not checked in full")) for one in visible]
    if any(rule.code == SYNTAX_ERROR for rule in checker.rules):
        told = f"cannot be checked{' in full' if shown else ''}: {reason}"
        shown.append(Finding(SYNTAX_ERROR, Span(0, 0), told))
    return CheckResult(_sorted_unique(shown), (), hidden, is_final=False)


def _syntax_errors(rules: Iterable[Rule], parsed: ParsedFile) -> tuple[Finding, ...]:
    """The findings of a file, or of cells of a notebook, that do not parse."""
    from torchrepro_lint.checks.rule import Finding

    if all(rule.code != SYNTAX_ERROR for rule in rules):
        return ()
    return tuple(Finding(SYNTAX_ERROR, Span(each.offset, each.offset), each.message) for each in parsed.problems)


def _unused(
    checker: Checker,
    rules: Iterable[Rule],
    parsed: ParsedFile,
    found: Sequence[Finding],
    comments: Iterable[Suppression],
) -> tuple[Finding, ...]:
    """The findings of TRL002; in a notebook only of comments that are Python's there, too."""
    from torchrepro_lint.checks.unused_suppression import RulesRun, unused_suppressions

    written = parsed.written.text
    there = (one for one in comments if written[slice(*one.span)] == parsed.text[slice(*one.span)])
    run = RulesRun(checker.table, frozenset(rule.code for rule in rules), found)
    return tuple(unused_suppressions(parsed.lines, there, run)) if checker.table else ()


def _visible(
    checker: Checker,
    rules: Sequence[Rule],
    lines: Lines,
    findings: Iterable[Finding],
    comments: Sequence[Suppression],
) -> tuple[list[Finding], int]:
    """The findings that weigh enough for the settings and that no comment hides, and how many comments hide. A comment without codes
    does not hide what is said of itself.
    """
    floor = checker.tree.root.settings.min_severity
    by_code = {rule.code: rule for rule in rules}
    severe = [one for one in findings if is_at_least(one.severity or by_code[one.code].severity, floor)]
    visible = [
        finding
        for finding in severe
        if not any(
            one.covers(lines.position(finding.span.start).row, finding.code, by_code[finding.code].name)
            and (one.codes is not None or not finding.span.start <= one.span.start < finding.span.end)
            for one in comments
        )
    ]
    return visible, len(severe) - len(visible)


def _applicable(checker: Checker, parsed: ParsedFile, finding: Finding) -> Fix | NoFix | None:
    """The fix, if the settings allow it and the file can take it: an edit of a notebook must stay in one cell."""
    fix = finding.fix
    if fix is None:
        return finding.remedy
    if finding.code not in checker.fixable:
        return NoFix(f"the settings exclude {finding.code} from fixing")
    if checker.catalogue.begins_later and finding.code not in _FIXED_IN_EVERY_RELEASE:
        return NoFix(
            f"the catalogue does not cover torch {checker.catalogue.asked}, which may lack what the fix would write"
        )
    if parsed.source is None or parsed.source.notebook is None:
        return fix
    from torchrepro_lint.source.decoding import fit_to_cells

    return fit_to_cells(parsed.source.notebook, fix) or NoFix("the edit would span two cells")


def _sorted_unique(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorted by position and code; a finding that two traces through one statement give is enabled once."""
    found = {(one.span, one.code, one.message): one for one in findings}
    return tuple(found[key] for key in sorted(found))


def _path_test(root: str, pattern: str) -> Callable[[str], bool]:
    """A test whether a path from the root matches a glob; a leading ``!`` negates it."""
    fits = glob_matcher([pattern.removeprefix("!")], root)
    wanted = not pattern.startswith("!")
    return lambda path: fits(path) is wanted
