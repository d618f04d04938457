"""The commands ``report`` and ``trace``.

``report`` writes the overview of a project as HTML, Markdown or JSON; ``trace`` prints the timeline of each entry point of a
file.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.call_stack import with_deep_stack
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.config.discovery import Plan, ProjectTree
from torchrepro_lint.config.roots import ConfigOptions, config_options
from torchrepro_lint.config.settings import RuleOverrides, Settings, is_at_least
from torchrepro_lint.config.target import substitution_warning, target_of
from torchrepro_lint.domain.programs import all_programs, programs_of
from torchrepro_lint.domain.timeline import Timeline, timeline
from torchrepro_lint.engine.checker import TOO_DEEP, Checker, read_manifest
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.interfaces.cli import terminal
from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.overview.survey import Survey, survey
from torchrepro_lint.interfaces.report import page_comparison, page_content, summary, timeline_json, timeline_text
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.trace.traces import Context

# The format by the suffix of the output file.
_SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".markdown": "markdown"}


class ReportArguments(NamedTuple):
    """The options of ``report``; ``None`` where not given."""

    paths: tuple[str, ...]
    output: Path | None
    output_format: str | None
    compare: Path | None
    title: str
    overrides: RuleOverrides
    config: Path | None
    isolated: bool
    extend_exclude: tuple[str, ...] | None
    ignore_noqa: bool
    jobs: int | None
    cache_dir: str | None
    no_cache: bool
    fail_on: str | None
    exit_zero: bool
    quiet: bool


def run_report(request: ReportArguments) -> int:
    """Write the report; the exit status: 1 where there are findings. Raises ``UsageError``."""
    older = page_comparison.read(request.compare) if request.compare else None
    _require_known_suffix(request)
    options = config_options(request.overrides, request.config, request.isolated, partial(_with_settings, request))
    planned = plan(request.paths or (".",), options)
    means = ReadOptions(request.jobs or cores(), not request.no_cache, request.cache_dir)
    try:
        done = survey(planned, request.title, not request.ignore_noqa, terminal.progress, means)
    finally:
        terminal.clear_status()
    overview = done.overview
    if older is not None:
        overview = overview._replace(comparison=page_comparison.compare(overview, older))
    text = _render(overview, request)
    terminal.deliver(text, request.output)
    for told in () if request.quiet else (*planned.notes, *done.notes, _summary(done, request.output)):
        terminal.note(told)
    return terminal.errors(done.errors) or int(_fails(planned, overview) and not request.exit_zero)


def _fails(planned: Plan, overview: Overview) -> bool:
    """Whether a finding is so grave that the run fails; of several projects the strictest decides."""
    floors = {tree.root.settings.fail_on for tree in planned.trees}
    return any(is_at_least(one.severity, floor) for one in overview.findings for floor in floors)


def _require_known_suffix(request: ReportArguments) -> None:
    suffix = request.output.suffix if request.output else ""
    if suffix and suffix.lower() not in _SUFFIXES and not request.output_format:
        *others, last = _SUFFIXES
        raise UsageError(
            f"{request.output}: the suffix {suffix!r} names no format; "
            f"use {', '.join(others)} or {last}, or add --output-format"
        )


def _with_settings(request: ReportArguments, settings: Settings) -> Settings:
    """The settings overridden by the options beside ``overrides``."""
    return settings._replace(
        extend_exclude=(*settings.extend_exclude, *(request.extend_exclude or ())),
        fail_on=request.fail_on or settings.fail_on,
    )


def _render(overview: Overview, request: ReportArguments) -> str:
    by_name = _SUFFIXES.get(request.output.suffix.lower(), "html") if request.output else "html"
    wanted = request.output_format or by_name
    if wanted == "json":
        from torchrepro_lint.interfaces.report import page_json

        return page_json.render(overview)
    if wanted == "markdown":
        from torchrepro_lint.interfaces.report import page_markdown

        return page_markdown.render(overview)
    from torchrepro_lint.interfaces.report import page_html

    return page_html.render(overview)


def _summary(done: Survey, output: Path | None) -> str:
    overview = done.overview
    if not overview.files and not overview.findings and not done.errors:
        told = "o Python files or notebooks found; torchrepro-lint --show-settings shows what is excluded"
        return f"{output}: n{told}" if output else f"N{told}"
    found = summary.by_severity(one.severity for one in overview.findings)
    others = page_content.others_told(overview)
    entries = summary.counted(len(overview.entries), "entry point") + (f", of which {others}" if others else "")
    gaps = summary.unfollowed(len(overview.entries), page_content.unfollowed_entries(overview))
    told = f"{entries}; {found}" + (f"; {gaps}" if gaps else "")
    return f"{output}: {told}" if output else told


_WIDEST = 140
_MOST_NAMED = 5


def run_trace(entry: str, overrides: RuleOverrides, output_format: str, color: str) -> int:
    """Print the timelines of all entry points in a file; the exit status. Raises ``UsageError``, also for no entry point."""
    tree = _tree(entry, config_options(overrides))
    target = target_of(tree.root)
    found = timelines(tree, target.version)
    if output_format == "json":
        terminal.out(timeline_json.render(found))
    else:
        width = min(shutil.get_terminal_size((100, 0)).columns, _WIDEST)
        terminal.out(timeline_text.render(found, width, terminal.uses_colour(color)))
    if note := substitution_warning(target):
        terminal.note(note)
    return 0


def timelines(tree: ProjectTree, torch: str) -> tuple[Timeline, ...]:
    """The timelines of the entry points in the one given file of a project. Raises ``UsageError`` where it has none.

    Empty timelines are left out, unless all are empty.
    """
    ((path, given),) = tree.given
    readings = read_tree(tree, terminal.progress(len(tree.files)))
    for error in readings.errors:
        raise UsageError(error)
    reading = readings.files[path]
    facts = reading.facts
    if facts is None:
        raise UsageError(
            f"{given.display}: {reading.problems[0].message if reading.problems else 'cannot be analysed'}"
        )
    checker = Checker(
        tree, (), frozenset(), (), catalogue.load(torch), honour_comments=False, manifest=read_manifest(tree)
    )
    parts = Partition(checker, readings.files)
    try:
        found = with_deep_stack(lambda: _timelines_of(checker, parts, path, facts, reading.lines))
    except RecursionError:
        raise UsageError(f"{given.display}: {TOO_DEEP}") from None
    if not found:
        others = {program.entry.path for each in parts.all() for program in all_programs(each)}
        raise UsageError(_no_entry(given.display, sorted(others)))
    return tuple(each for each in found if each.moments) or found[:1]


def _timelines_of(
    checker: Checker, parts: Partition, path: str, facts: SyntaxTree, lines: Lines
) -> tuple[Timeline, ...]:
    project = parts.of(path)
    context = Context(path, facts, lines, project, checker.catalogue, checker.tree.root.settings)
    return tuple(timeline(context, program) for program in programs_of(project, path))


def _tree(entry: str, wanted: ConfigOptions) -> ProjectTree:
    if os.path.isdir(entry):
        raise UsageError(f"{entry} is a directory; name the script that is run")
    planned: Plan = plan((entry,), wanted)
    for error in planned.errors:
        raise UsageError(error)
    if not planned.trees or not planned.trees[0].given:
        raise UsageError(f"{entry} is not a Python file or a notebook")
    for note in planned.notes:
        terminal.note(note)
    return planned.trees[0]


def _no_entry(display: str, others: list[str]) -> str:
    """The message ``model.py is not an entry point``, with the files of the project that have entry points."""
    told = f"{display} is not an entry point: it has no __main__ block, no command, and no statements of a script"
    if not others:
        return f"{told}; if it is one, add it to entry-points in the settings"
    named = ", ".join(others[:_MOST_NAMED]) + (" ..." if len(others) > _MOST_NAMED else "")
    return f"{told}; the entry points of the project are {named}"
