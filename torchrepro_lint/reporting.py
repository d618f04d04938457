"""``torchrepro-lint report``: a project at a glance, as a page, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint import terminal
from torchrepro_lint.arguments import Over
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import Options
from torchrepro_lint.config.settings import Settings, version
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import Means
from torchrepro_lint.overview import comparing
from torchrepro_lint.overview.records import Overview
from torchrepro_lint.overview.survey import survey
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
        from torchrepro_lint.report import page_json

        return page_json.render(overview)
    if wanted == "markdown":
        from torchrepro_lint.report import page_markdown

        return page_markdown.render(overview)
    from torchrepro_lint.report import page_html

    return page_html.render(overview)


def _summary(overview: Overview, output: Path | None) -> str:
    entries, findings = len(overview.entries), len(overview.findings)
    told = f"{entries} entry point{'s' * (entries != 1)}, {findings} finding{'s' * (findings != 1)}"
    return f"{told}: {output}" if output else told
