"""``torchrepro-lint report``: a project at a glance, as a page, Markdown or JSON.

``torchrepro-lint trace``: an entry point to its timeline.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.config.discovery import Plan, Tree, plan
from torchrepro_lint.config.roots import Options
from torchrepro_lint.config.settings import Settings, version
from torchrepro_lint.config.target import options, target_of, warning
from torchrepro_lint.domain.project import Context
from torchrepro_lint.domain.timeline import Timeline, timeline
from torchrepro_lint.engine.checker import Checker, read_papers
from torchrepro_lint.engine.partition import Parts
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import Means, read_tree
from torchrepro_lint.interfaces.cli import terminal
from torchrepro_lint.interfaces.cli.arguments import Over
from torchrepro_lint.interfaces.overview import comparing
from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.overview.survey import survey
from torchrepro_lint.interfaces.report import timeline_json, timeline_text
from torchrepro_lint.source.errors import UsageError

# The format that a file's name asks for.
_SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".markdown": "markdown"}


class Request(NamedTuple):
    """The options of the command line; ``None`` is what was not given."""

    paths: tuple[str, ...]
    output: Path | None
    output_format: str | None
    compare: Path | None
    title: str
    over: Over
    config: Path | None
    isolated: bool
    extend_exclude: tuple[str, ...]
    ignore_noqa: bool
    jobs: int | None
    cache_dir: str | None
    no_cache: bool
    exit_zero: bool
    quiet: bool


def run_report(request: Request) -> int:
    """Write what was asked for; the exit status: 1 where there are findings. Raises ``UsageError``."""
    if request.over.torch_version is not None:
        _require_version(request.over.torch_version)
    older = comparing.read(request.compare) if request.compare else None
    planned = plan(request.paths or (".",), Options(request.config, request.isolated, _settings(request)))
    means = Means(request.jobs or cores(), not request.no_cache, request.cache_dir)
    done = survey(planned, request.title, not request.ignore_noqa, terminal.progress, means)
    overview = done.overview
    if older is not None:
        overview = overview._replace(comparison=comparing.compare(overview, older))
    text = _rendered(overview, request)
    if request.output is None:
        terminal.out(text)
    else:
        terminal.save(text, request.output)
    for told in () if request.quiet else (*done.notes, _summary(overview, request.output)):
        terminal.note(told)
    for error in done.errors:
        terminal.note(f"torchrepro-lint: {error}")
    return 2 if done.errors else int(bool(overview.findings) and not request.exit_zero)


def _require_version(text: str) -> None:
    try:
        version(text)
    except ValueError as error:
        raise UsageError(f"--torch-version: {error}") from None


def _settings(request: Request) -> Callable[[Settings], Settings]:
    def override(settings: Settings) -> Settings:
        settings = request.over.applied(settings)
        return settings._replace(extend_exclude=(*settings.extend_exclude, *request.extend_exclude))

    return override


def _rendered(overview: Overview, request: Request) -> str:
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


def _summary(overview: Overview, output: Path | None) -> str:
    entries, findings = len(overview.entries), len(overview.findings)
    told = f"{entries} entry point{'s' * (entries != 1)}, {findings} finding{'s' * (findings != 1)}"
    return f"{told}: {output}" if output else told


_WIDEST = 140
_MOST_NAMED = 5


def run_trace(entry: str, over: Over, output_format: str) -> int:
    """Print the timelines of all entry points in a file; the exit status. Raises ``UsageError``, also for no entry point."""
    tree = _tree(entry, _options(over))
    target = target_of(tree.root)
    found = timelines(tree, target.version)
    if output_format == "json":
        terminal.out(timeline_json.render(found))
    else:
        width = min(shutil.get_terminal_size((100, 0)).columns, _WIDEST)
        terminal.out(timeline_text.render(found, width, terminal.coloured()))
    if note := warning(target):
        terminal.note(note)
    return 0


def timelines(tree: Tree, torch: str) -> tuple[Timeline, ...]:
    """The timelines of the entry points in the one file that a tree is given, without those in which
    nothing happens, unless that is so in all. Raises ``UsageError`` where it has none.
    """
    ((path, given),) = tree.given
    readings = read_tree(tree, terminal.progress(len(tree.files)))
    for error in readings.errors:
        raise UsageError(error)
    reading = readings.files[path]
    if reading.facts is None:
        raise UsageError(f"{given.display}: {reading.problem.message if reading.problem else 'cannot be analysed'}")
    checker = Checker(tree, (), frozenset(), (), catalogue.load(torch), honour_comments=False, papers=read_papers(tree))
    parts = Parts(checker, readings.files)
    project = parts.of(path)
    programs = project.programs_of(path)
    if not programs:
        others = {program.entry.path for each in parts.all() for program in each.programs}
        raise UsageError(_no_entry(given.display, sorted(others)))
    context = Context(path, reading.facts, reading.lines, project, checker.catalogue, checker.tree.root.settings)
    found = tuple(timeline(context, program) for program in programs)
    return tuple(each for each in found if each.moments) or found[:1]


def _options(over: Over) -> Options:
    return options(over.torch_version)._replace(overrides=over.applied)


def _tree(entry: str, wanted: Options) -> Tree:
    if os.path.isdir(entry):
        raise UsageError(f"{entry} is a directory; name the file that is started")
    planned: Plan = plan((entry,), wanted)
    for error in planned.errors:
        raise UsageError(error)
    if not planned.trees or not planned.trees[0].given:
        raise UsageError(f"{entry} is no Python file")
    return planned.trees[0]


def _no_entry(display: str, others: list[str]) -> str:
    """``model.py is no entry point``, and which files of the project are some."""
    told = (
        f"{display} is no entry point: nothing in it starts a run (a __main__ block, a script's statements, a command)"
    )
    if not others:
        return f"{told}; name it in entry-points of the settings if it is started"
    named = ", ".join(others[:_MOST_NAMED]) + (" ..." if len(others) > _MOST_NAMED else "")
    return f"{told}; these are: {named}"
