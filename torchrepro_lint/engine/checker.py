"""The later stages: link the project, run the rules on a file, drop what is suppressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.loaders import Libraries
from torchrepro_lint.config.discovery import Tree, globs
from torchrepro_lint.config.settings import SEVERITIES, Selection, matching, require_known, selected
from torchrepro_lint.config.target import console_scripts, libraries
from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.source.errors import Fault, guarded
from torchrepro_lint.source.suppressions import suppressions
from torchrepro_lint.source.text import Fix, Lines, Position, Span

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.checks.rule import Finding, Rule
    from torchrepro_lint.domain.programs import Link
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.search_path import ModuleTree

SYNTAX_ERROR = "TRL001"
_DEEP = "nested too deeply to analyse: hundreds of names, calls or expressions lead to one another"


class Papers(NamedTuple):
    """What a project's pyproject.toml and lists of requirements say of its commands and of the libraries that it uses."""

    scripts: tuple[str, ...]
    libraries: Libraries


class Checker(NamedTuple):
    """What the files of one tree are checked with.

    ``rules`` are the selected ones, ``fixable`` the codes whose fixes are offered, ``ignores`` the codes that are
    ignored in the files that a test accepts. ``papers`` are what the project's own files say.
    """

    tree: Tree
    rules: tuple[Rule, ...]
    fixable: frozenset[str]
    ignores: tuple[tuple[Callable[[str], bool], frozenset[str]], ...]
    catalogue: Catalogue
    honour_comments: bool
    papers: Papers


class Checked(NamedTuple):
    """What is found in one file, by place and code; ``errors`` are faults of the tool, ``hidden`` counts the findings that
    comments suppress.
    """

    findings: tuple[Finding, ...]
    errors: tuple[str, ...] = ()
    hidden: int = 0


def make_checker(tree: Tree, rules: Sequence[Rule], catalogue: Catalogue, honour_comments: bool) -> Checker:
    """Resolve the settings of a tree; raises ``UsageError`` for a selector that fits no rule."""
    settings = tree.root.settings
    origin = str(tree.root.config)
    codes = selected(rules, settings.selections)
    fixing = Selection(settings.fixable, (), settings.unfixable)
    require_known(rules, settings.fixable, f"fixable of {origin}")
    require_known(rules, settings.unfixable, f"unfixable of {origin}")
    ignores = []
    for pattern, selectors in settings.per_file_ignores:
        require_known(rules, selectors, f"per-file-ignores of {origin}")
        ignores.append((_test(tree.root.path, pattern), matching(rules, selectors)))
    kept = tuple(rule for rule in rules if rule.code in codes)
    return Checker(tree, kept, selected(rules, [fixing]), tuple(ignores), catalogue, honour_comments, read_papers(tree))


def read_papers(tree: Tree) -> Papers:
    """What the papers of a project say, read anew."""
    root = Path(tree.root.path)
    return Papers(console_scripts(root), libraries(root))


def link(checker: Checker, files: Mapping[str, Reading], tree: ModuleTree, before: Link | None = None) -> Project:
    """The project that the facts of all ``files`` make, of those in the ``tree``; ``before`` is the link of an earlier one that
    was told of all changes.
    """
    from torchrepro_lint.domain.project import Project

    facts = {path: reading.facts for path, reading in files.items() if reading.facts is not None}
    lines: dict[str, Lines] = {}

    def position(path: str, offset: int) -> Position:
        if path not in lines:
            lines[path] = files[path].lines
        return lines[path].place(offset)

    def text(path: str) -> str:
        return files[path].text

    return Project(
        facts,
        checker.tree.root.settings,
        checker.catalogue,
        tree,
        checker.papers.scripts,
        position,
        text,
        checker.papers.libraries,
        before,
    )


def check(checker: Checker, path: str, reading: Reading, project: Project) -> Checked:
    """All that is to be said about one file."""
    ignored = frozenset[str]().union(*(codes for test, codes in checker.ignores if test(path)))
    rules = tuple(rule for rule in checker.rules if rule.code not in ignored)
    raw = _run(checker, rules, path, reading, project)
    table = {rule.code: rule for rule in rules}
    floor = SEVERITIES.index(checker.tree.root.settings.min_severity)
    lines = reading.lines
    hiding = suppressions(lines) if checker.honour_comments and raw.findings else ()
    heavy = [
        finding
        for finding in raw.findings
        if SEVERITIES.index(finding.severity or table[finding.code].severity) >= floor
    ]
    findings = [
        finding._replace(fix=_fix(reading, finding.fix) if finding.code in checker.fixable else None)
        for finding in heavy
        if not any(
            one.covers(lines.position(finding.span.start).row, finding.code, table[finding.code].name) for one in hiding
        )
    ]
    return Checked(_in_order(findings), raw.errors, len(heavy) - len(findings))


def _fix(reading: Reading, fix: Fix | None) -> Fix | None:
    """The fix, where the file can take it: an edit of a notebook must not leave its cell."""
    if fix is None or reading.source is None or reading.source.notebook is None:
        return fix
    from torchrepro_lint.source.notebook import fitted

    return fitted(reading.source.notebook, fix)


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By place and code; what is said twice, by two runs through one statement, is kept once."""
    found = {(one.span, one.code, one.message): one for one in findings}
    return tuple(found[key] for key in sorted(found))


def _run(checker: Checker, rules: Sequence[Rule], path: str, reading: Reading, project: Project) -> Checked:
    """Everything that the rules say; a rule that breaks is an error, and the others go on."""
    from torchrepro_lint.checks.rule import Finding
    from torchrepro_lint.domain.project import Context

    if reading.facts is None:
        assert reading.problem is not None
        place = Span(reading.problem.offset, reading.problem.offset)
        found = Finding(SYNTAX_ERROR, place, reading.problem.message)
        return Checked((found,) if any(rule.code == SYNTAX_ERROR for rule in rules) else ())
    settings = checker.tree.root.settings
    context = Context(path, reading.facts, reading.lines, project, checker.catalogue, settings)
    findings: list[Finding] = []
    errors: list[str] = []
    deep = False
    for rule in rules:
        answer = guarded(lambda rule=rule: tuple(rule.check(context)))  # type: ignore[misc]
        if isinstance(answer, Fault) and answer.recursion:
            deep = True
        elif isinstance(answer, Fault):
            errors.append(f"{rule.code} broke off: {answer.message}")
        else:
            findings += answer
    if deep and SYNTAX_ERROR in {rule.code for rule in rules}:
        findings.append(Finding(SYNTAX_ERROR, Span(0, 0), _DEEP))
    return Checked(tuple(findings), tuple(errors))


def _test(root: str, pattern: str) -> Callable[[str], bool]:
    """Whether a path from the root fits a glob; a leading ``!`` turns the answer round."""
    fits = globs([pattern.removeprefix("!")], root)
    wanted = not pattern.startswith("!")
    return lambda path: fits(path) is wanted
