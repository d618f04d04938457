"""The commands ``report``, ``trace``, ``explain`` and ``ops``.

``report`` writes the overview of a project as HTML, Markdown or JSON; ``trace`` prints the timeline of each entry point of a file.
``explain`` maps an error message of torch to its meaning and to the calls that may raise it; ``ops`` prints how operations behave, as a
table, JSON, Markdown or HTML.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.call_stack import with_deep_stack
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.catalogue.catalogue import error_names
from torchrepro_lint.catalogue.errors import Explanation, ParsedErrors, explain, parse_errors
from torchrepro_lint.catalogue.release_history import History, find_operations, histories, history
from torchrepro_lint.config.discovery import Plan, ProjectTree
from torchrepro_lint.config.roots import ConfigOptions, config_options
from torchrepro_lint.config.settings import RuleOverrides, Settings, is_at_least
from torchrepro_lint.config.target import substitution_warning, target_here, target_of
from torchrepro_lint.domain.programs import all_programs, programs_of
from torchrepro_lint.domain.timeline import Timeline, timeline
from torchrepro_lint.engine.checker import TOO_DEEP, Checker, read_manifest
from torchrepro_lint.engine.error_sites import ErrorSite, find_error_sites
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.interfaces.cli import terminal
from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.overview.survey import Survey, survey
from torchrepro_lint.interfaces.report import (
    explanation,
    page_comparison,
    page_content,
    summary,
    timeline_json,
    timeline_text,
)
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


# --- the catalogue ----------------------------------------------------------------------------------------------------


def run_explain(message: str | None, paths: Sequence[str], torch_version: str | None, output_format: str) -> int:
    """Explain an error message of torch; the exit status. Raises ``UsageError``, also for an unknown error name."""
    told = parse_errors(_text(message))
    if told.unknown or not told.names:
        raise UsageError(_unknown(told))
    planned = plan(paths or (".",), config_options(RuleOverrides(torch_version=torch_version)))
    target = target_of(planned.trees[0].root) if planned.trees else target_here(torch_version)
    explained = [explain(name, target.version) for name in told.names]
    places, errors = _places(planned, explained, told)
    render = explanation.render_json if output_format == "json" else explanation.render
    text = render(list(zip(explained, places, strict=True)), target)
    if output_format == "json":
        terminal.out(text)
    else:
        terminal.out_wrapped(text)
    for note in (*planned.notes, substitution_warning(target)):
        if note:
            terminal.note(note)
    return terminal.errors((*planned.errors, *errors))


def _text(message: str | None) -> str:
    if message not in (None, "-"):
        return str(message)
    if message is None and sys.stdin.buffer.isatty():
        raise UsageError("nothing to explain: give the error's message in quotes, or a traceback on standard input")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _unknown(told: ParsedErrors) -> str:
    name = " and ".join(repr(one) for one in told.unknown if one)
    if not name:
        return "found no error of torch about determinism in the text"
    near = difflib.get_close_matches(told.unknown[0], sorted({one.name for one in error_names()}), 3)
    return f"no error of torch about determinism is named {name}" + (
        f"; did you mean {' or '.join(near)}?" if near else ""
    )


def _places(
    planned: Plan, explained: Sequence[Explanation], told: ParsedErrors
) -> tuple[list[list[ErrorSite]], list[str]]:
    """The error sites of each explanation in all projects, each for its own target torch, and errors."""
    advance = terminal.progress(sum(len(tree.files) for tree in planned.trees))
    found = [
        find_error_sites(
            tree, [explain(one.name, target_of(tree.root).version) for one in explained], told.frames, advance
        )
        for tree in planned.trees
    ]
    places = [[place for each in found for place in each.places[index]] for index in range(len(explained))]
    return places, [error for each in found for error in each.errors]


def run_ops(name: str | None, torch_version: str | None, output_format: str, output: Path | None) -> int:
    """Print all operations in the target torch, or those of a name in every release; the exit status.

    Raises ``UsageError`` for an unknown name, and for an output file that cannot be written.
    """
    shown = histories() if name is None else tuple(history(operation) for operation in find_operations(name))
    target = target_here(torch_version)
    if note := substitution_warning(target):
        terminal.note(note)
    width = terminal.width() if output is None and terminal.is_terminal() else 0
    chosen = torch_version is not None
    text = _render_operations(shown, target.version, output_format, every=name is not None, chosen=chosen, width=width)
    if output is None and output_format == "table":
        terminal.out_wrapped(text)
    else:
        terminal.deliver(text, output)
    return 0


def _render_operations(
    shown: Sequence[History], version: str, output_format: str, *, every: bool, chosen: bool, width: int
) -> str:
    """``every`` asks for all releases rather than for one; ``chosen`` says that the user named the release.

    ``width`` are the columns of the terminal that a table is for, 0 where there is none.
    """
    if output_format == "html":
        from torchrepro_lint.interfaces.report import ops_html

        # The page has all releases; it must not depend on the project that it was made in.
        return ops_html.render(shown, version if chosen else None)
    if output_format == "json":
        from torchrepro_lint.interfaces.report import ops_json

        return ops_json.render(shown, version, every=every)
    if output_format == "markdown":
        from torchrepro_lint.interfaces.report import ops_markdown

        return ops_markdown.render_all(shown, version) if every else ops_markdown.render(shown, version)
    from torchrepro_lint.interfaces.report import ops_table

    return ops_table.render_all(shown, version) if every else ops_table.render(shown, version, width)
