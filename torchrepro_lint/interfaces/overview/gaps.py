"""Gaps of the analysis: what was not analysed, or only in part, and why; a reader must know it before trusting an overview.

``Describer`` makes the records of findings: who reaches them, which control they are about, their source and fix.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.catalogue.rows import FAMILIES
from torchrepro_lint.checks.pages import url
from torchrepro_lint.config.discovery import Exclusion, ProjectTree, relative_path
from torchrepro_lint.config.target import console_scripts
from torchrepro_lint.domain.operations.program_gaps import explained, gaps_of_run, told
from torchrepro_lint.domain.programs import Program, all_programs, programs_reaching
from torchrepro_lint.engine.checker import Checker
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.interfaces.overview.controls import (
    CONTROL_OF,
    NOT_KNOWN,
    NOT_NEEDED,
    SEEDS,
    SHORT_MESSAGES,
    STATES,
    concerns_program,
)
from torchrepro_lint.interfaces.overview.records import (
    CallPathRecord,
    Cell,
    DiffLine,
    FindingRecord,
    FixRecord,
    Gap,
    Location,
)
from torchrepro_lint.interfaces.report.excerpt import changes, excerpt
from torchrepro_lint.interfaces.report.fingerprints import fingerprints
from torchrepro_lint.source.text import Fix, Position, with_paths
from torchrepro_lint.syntax.qualified_names import in_project, split_name, top_package, without_calls
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.trace.call_paths import CallPathStep
from torchrepro_lint.trace.traces import Context

# The kinds in the order of their importance to a reader, with their titles.
GAP_KINDS: Mapping[str, str] = {
    "fault": "The tool failed here",
    "unreadable": "Files that cannot be read",
    "syntax": "Files that cannot be parsed",
    "entry": "Entry points that were not found",
    "call": "Calls that are not followed, by entry point",
    "idle": "Entry points without an event",
    "excluded": "Excluded by the settings or by git",
    "hidden": "Findings that comments hide",
    "ignored": "Findings that the settings ignore",
    "rule": "Rules that did not run",
    "package": "Packages whose code is not read",
}
# Standard modules that only some supported Pythons have: equal output under each of them.
_VERSION_DEPENDENT_MODULES = frozenset(
    {"asynchat", "asyncore", "distutils", "imp", "smtpd", "tomllib", "annotationlib", "compression"}
)
_MOST_NAMED = 5
# Folders of tools, which need no mention.
_TOOLS = ("__pycache__", "node_modules")


def gaps(
    checker: Checker, parts: Partition, hidden: Mapping[str, int], packages: Mapping[str, int], prefix: str
) -> Iterator[Gap]:
    """The gaps of one project; ``hidden`` counts by path the findings that comments suppress, ``packages`` are those of
    ``imported_packages``.
    """
    tree = checker.tree
    for path, _ in tree.given:
        if (reading := parts.files.get(path)) is not None:
            for problem in reading.problems:
                place = Location(prefix + path, *reading.lines.place(problem.offset))
                yield Gap("syntax", str(place), problem.message)
    yield from _entries(tree, parts, prefix)
    yield from _calls(tree, parts, prefix)
    yield from (Gap("excluded", prefix + path, why) for path, why in _excluded(tree))
    for path, count in sorted(hidden.items()):
        yield Gap("hidden", prefix + path, f"{count} finding{'s' * (count != 1)}, by noqa or torchrepro: ignore")
    settings = tree.root.settings
    for pattern, selectors in settings.per_file_ignores:
        yield Gap("ignored", pattern, f"per-file-ignores: {', '.join(selectors)}")
    if settings.min_severity != "note":
        yield Gap("ignored", f"below {settings.min_severity}", "min-severity")
    if packages:
        named = ", ".join(f"{name} ({packages[name]})" for name in sorted(packages))
        why = "only the tool's tables describe them; the number of files that import each one is in brackets"
        yield Gap("package", named, why)


def _entries(tree: ProjectTree, parts: Partition, prefix: str) -> Iterator[Gap]:
    entries = [entry for project in parts.all() for entry in project.entries]
    known = {entry.function or "" for entry in entries}
    for script in console_scripts(Path(tree.root.path)):
        word = f":{script.partition(':')[2].partition('.')[0]}"
        if not any(name.endswith(word) for name in known):
            yield Gap("entry", script, "pyproject.toml names it as a command, but the function was not found")
    started = {entry.path for entry in entries}
    given = dict(tree.given)
    if not started & set(given):
        why = "nothing in these files starts a run: no __main__ block, no script, no command"
        yield Gap("entry", prefix or "all of it", f"{why}; name files that are started in entry-points of the settings")
    facts = {path: each.facts for path in given if (each := parts.files.get(path)) is not None}
    tests = sorted(path for path, each in facts.items() if each is not None and is_test(path, each.summary))
    if tests:
        named = ", ".join(prefix + path for path in tests[:_MOST_NAMED])
        more = f" and {len(tests) - _MOST_NAMED} more" if len(tests) > _MOST_NAMED else ""
        yield Gap("entry", f"{named}{more}", "tests are not entry points, so their runs are not followed")


def _calls(tree: ProjectTree, parts: Partition, prefix: str) -> Iterator[Gap]:
    """The calls of each entry point that are not followed, and may run code of the project."""
    given = dict(tree.given)
    for project, program in ((each, program) for each in parts.all() for program in all_programs(each)):
        if program.entry.path in given:
            name = split_name(program.entry.function or "")[2]
            entry = f"{prefix}{program.entry.path}{':' * bool(name)}{name}"
            for gap in gaps_of_run(project, program):
                yield Gap("call", entry, with_paths(explained(project, gap), lambda path: prefix + path))


def _excluded(tree: ProjectTree) -> Iterator[tuple[str, str]]:
    """Excluded folders and Python files, but for those of tools; contents of an excluded folder are not listed."""
    settings, root = tree.root.settings, tree.root.path
    exclusion = Exclusion(root, (*settings.exclude, *settings.extend_exclude))
    waiting, found = [] if tree.partial else [tree.root.top], []
    while waiting:
        for entry in _entries_of(waiting.pop()):
            folder = entry.is_dir(follow_symlinks=False)
            if not folder and not entry.name.endswith((".py", ".ipynb")):
                continue
            if entry.name.startswith(".") or entry.name in _TOOLS:
                continue
            if not exclusion.excludes(entry.path, folder):
                if folder:
                    waiting.append(entry.path)
                continue
            why = "exclude of the settings" if exclusion.matches(entry.path, folder) else ".gitignore"
            found.append((relative_path(entry.path, root) + "/" * folder, why))
    yield from sorted(found)


def _entries_of(directory: str) -> Sequence[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return ()


def imported_packages(tree: ProjectTree, parts: Partition) -> Counter[str]:
    """The number of given files that import each third-party package; only the catalogue knows these."""
    standard = frozenset(sys.stdlib_module_names) | _VERSION_DEPENDENT_MODULES | {"torch"}
    files: Counter[str] = Counter()
    for path, _ in tree.given:
        if (reading := parts.files.get(path)) is not None and reading.facts is not None:
            modules = {each for each in reading.facts.summary.imports if not each.startswith(".")}
            own = {top_package(each) for each in modules if parts.of(path).resolver.modules.loaded(path, each)}
            files.update({top_package(each) for each in modules} - own - standard)
    return files


def rules_off(checker: Checker, every: Iterable[tuple[str, str]]) -> Iterator[Gap]:
    """The gap of rules, by code and name, that do not run in a project."""
    running = {rule.code for rule in checker.rules}
    off = [f"{code} {name}" for code, name in every if code not in running]
    if off:
        yield Gap("rule", ", ".join(off), "they are off by default or by the settings")


class RunGap(NamedTuple):
    """The first place at which a run leads into code that is not followed: its order in the run, and a sentence on it."""

    order: int
    sentence: str


def first_run_gap(context: Context, program: Program) -> RunGap | None:
    """The first gap of a run; None where all of it is followed."""
    found = gaps_of_run(context.project, program)
    if not found:
        return None
    gap = found[0]
    more = f", and {len(found) - 1} more calls are not followed" if len(found) > 2 else ""
    more = ", and 1 more call is not followed" if len(found) == 2 else more
    return RunGap(gap.order, f"{capitalised(told(context.project, gap))}{more}.")


def across_gap(cell: Cell, program: Program, gap: RunGap | None) -> Cell:
    """A cell that says that nothing is to mend, as unknown where the run leads into code that is not followed.

    A generator that is seeded before that code runs stays seeded there.
    """
    if gap is None or STATES[cell.state].rank < STATES["good"].rank or _holds_across(cell, program, gap):
        return cell
    return cell._replace(state="unknown", says=NOT_KNOWN, because=f"{gap.sentence} In what is followed: {cell.because}")


def _holds_across(cell: Cell, program: Program, gap: RunGap) -> bool:
    """Whether a state holds whatever the code does that is not followed: a setting that was found, a seed that comes before."""
    if cell.control == "workspace":
        return cell.state == "good" or cell.says == NOT_NEEDED
    if cell.control in ("cudnn", "algorithms"):
        return cell.state == "good" and cell.says != NOT_NEEDED
    first = {key: min(each.order for each in seeds) for key, seeds in program.effects.seeds.items() if seeds}
    wanted = {"cuda": ("torch",), "events": tuple(key for key in SEEDS if key in first)}.get(
        cell.control, (cell.control,)
    )
    return (
        cell.state == "good"
        and cell.control in (*SEEDS, "cuda", "events")
        and all(first.get(key, gap.order) < gap.order for key in wanted)
    )


def capitalised(text: str) -> str:
    """A text with its first letter in capitals."""
    return text[:1].upper() + text[1:]


# Rules about a program as a whole: a finding concerns the entry points of its own file.
_PROGRAM_RULES = ("TRL101", "TRL102", "TRL103", "TRL104", "TRL107", "TRL109", "TRL203")


def entry_id(prefix: str, program: Program) -> str:
    """A stable identifier of an entry point: ``entry-`` and eight hexadecimal digits."""
    text = f"{prefix}{program.entry.path}\0{program.entry.function or ''}"
    return f"entry-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


class Describer:
    """Makes the finding records of one project.

    ``contexts`` are those of its files that could be parsed, ``prefix`` is what its paths begin with among several projects.
    """

    def __init__(self, contexts: Mapping[str, Context], root: str, prefix: str) -> None:
        self._contexts = contexts
        self._root = root
        self._prefix = prefix

    def items(self, diagnostics: Sequence[Diagnostic]) -> tuple[FindingRecord, ...]:
        """One record for each diagnostic, in order."""
        marks = fingerprints(diagnostics, self._root)
        seen, found = Counter[str](), []
        for one, mark in zip(diagnostics, marks, strict=True):
            name = f"finding-{mark[:12]}"
            seen[name] += 1
            found.append(self._item(one, f"{name}-{seen[name]}" if seen[name] > 1 else name))
        return tuple(found)

    def _item(self, one: Diagnostic, name: str) -> FindingRecord:
        path = relative_path(one.filename, self._root)
        return FindingRecord(
            name,
            one.code,
            one.name,
            one.severity,
            self._place(path, one.start),
            self._text(one.message),
            self._control(path, one),
            tuple(sorted(entry_id(self._prefix, each) for each in self._programs(path, one))),
            one.lines.line(one.lines.position(one.span.start).row).strip(),
            tuple(excerpt(one)),
            tuple(self._step(step) for step in one.steps),
            self._repair(one, one.fix) if one.fix else None,
            url(one.code, one.name),
        )

    def _place(self, path: str, at: Position) -> Location:
        return Location(self._prefix + path, at.row, at.column, at.cell)

    def _text(self, text: str) -> str:
        return with_paths(text, lambda path: self._prefix + path)

    def _step(self, step: CallPathStep) -> CallPathRecord:
        return CallPathRecord(self._place(relative_path(step.path, self._root), step.place), self._text(step.text))

    def _repair(self, one: Diagnostic, fix: Fix) -> FixRecord:
        lines = (
            DiffLine(line.sign, line.number, line.text, line.where and self._prefix + line.where)
            for line in changes(one)
        )
        return FixRecord(self._text(fix.title), fix.safe, tuple(lines))

    def _programs(self, path: str, one: Diagnostic) -> Iterable[Program]:
        """The programs whose run reaches a finding."""
        if path not in self._contexts:
            return ()
        function = path + self._function(path, one.span.start)
        found: Iterable[Program] = programs_reaching(self._contexts[path].project, function)
        if one.code in _PROGRAM_RULES:
            return (each for each in found if each.entry.path == path)
        return (each for each in found if concerns_program(self._contexts[path], each, one.code, one.span))

    def _function(self, path: str, offset: int) -> str:
        """The qualified name of the innermost function around an offset."""
        around = (each for each in self._contexts[path].tree.functions if each.start <= offset < each.end)
        found = min(around, key=lambda each: each.end - each.start, default=None)
        return found.name if found else ":"

    def _control(self, path: str, one: Diagnostic) -> str:
        if one.code in CONTROL_OF or one.code not in SHORT_MESSAGES:
            return CONTROL_OF.get(one.code, "")
        told = (family.key for family in FAMILIES if family.owner in one.message)
        return next(told, "") or self._called(path, one) or "torch"

    def _called(self, path: str, one: Diagnostic) -> str:
        """The generator that the call of a finding belongs to."""
        for site in self._contexts[path].project.calls(path):
            if (site.call.start, site.call.end) == one.span:
                for name in site.names:
                    seeder = (
                        self._contexts[path].catalogue.seeder(without_calls(name)) if not in_project(name) else None
                    )
                    found = seeder.families if seeder else (_OWNERS.get(top_package(name), ""),)
                    if known := next((each for each in found if each in _OWNERS.values()), ""):
                        return known
        return ""


_OWNERS: Mapping[str, str] = {"random": "python", "numpy": "numpy", "torch": "torch"}


def as_sentence(message: str) -> str:
    """A message as a sentence; an identifier at its beginning is not capitalised."""
    word = message.partition(" ")[0]
    begun = capitalised(message) if word.isalpha() and word.islower() else message
    return begun if begun.endswith((".", "…")) else f"{begun}."
