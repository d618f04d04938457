"""The commands ``survey``, ``survey show``, ``survey report`` and ``survey compare``, declared with click.

Only click is imported here, so that ``--help`` is quick; a command imports its implementation when it runs, and says what to
install where that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchrepro_lint.interfaces.cli.options import command, format_option, option_group, output_option

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.survey.dataset import Dataset, KnownRun
    from torchrepro_lint.interfaces.survey.repositories import Repository
    from torchrepro_lint.interfaces.survey.task import Task

_FOLDER = click.Path(file_okay=False, path_type=Path)
# The packages of the extra.
_EXTRA = ("dask", "distributed", "duckdb", "pyarrow")
_LIMIT = click.option(
    "--limit", type=click.IntRange(1), default=15, metavar="N", help="Rows of each table (default: 15)."
)
_work, _limits = option_group("Options"), option_group("Settings")


@contextmanager
def _extra(command: str) -> Iterator[None]:
    """Say what to install where a package of the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        raise click.ClickException(f"{command} needs {missing}; install torchrepro-lint[survey]") from None


@command(
    ("torchrepro-lint survey checkouts/* -o found", "survey the folders in checkouts/"),
    ("torchrepro-lint survey repos.txt -o found --resume", "go on with a survey of a list"),
    ("torchrepro-lint survey show found", "the most frequent rules, and more tables"),
    ("torchrepro-lint survey report found -o page.html", "the same as a page"),
    commands=(
        ("survey show DIR", "print tables of a survey, or the answer to a query in SQL"),
        ("survey report DIR", "write a page on a survey"),
        ("survey compare OLD NEW", "show what got better and worse between two surveys"),
    ),
)
@click.argument("repositories", nargs=-1, required=True, metavar="REPOS...", type=click.Path(readable=False))
@_work("-o", "--output", "folder", type=_FOLDER, required=True, metavar="DIR", help="The folder of the dataset.")
@_work("--resume", is_flag=True, help="Go on with the survey in DIR: skip what it has and what has not changed since.")
@_work(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Survey N repositories at a time; by default one for each core.",
)
@_work("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler, such as tcp://host:8786.")
@_limits("--honour-settings", is_flag=True, help="Obey the settings and the noqa comments of each repository.")
@_limits(
    "--deadline",
    type=click.FloatRange(1),
    default=300.0,
    metavar="SECONDS",
    help="Give up on a repository after so much processor time, or three times as long on the clock (default: 300).",
)
@_limits(
    "--memory",
    type=click.IntRange(256),
    default=2048,
    metavar="MB",
    help="The memory that a process may use for a repository (default: 2048).",
)
@_work("-q", "--quiet", is_flag=True, help="Print no progress and no summary.")
def survey(repositories: tuple[str, ...], folder: Path, resume: bool, quiet: bool, **options: Any) -> int:
    """Survey many repositories: report on each as a project of its own, and write the findings, the entry points with their
    controls, the gaps and the operations of all into a dataset of Parquet files.

    REPOS are folders, git repositories at a revision (path@rev), archives (.zip, .whl, .tar.gz), or text files that list such
    names, one a line. What fails costs its own row, which says why. The code is read, never run.

    It needs the extra torchrepro-lint[survey].
    """
    with _extra("survey"):
        from torchrepro_lint.interfaces.survey.dataset import Dataset
        from torchrepro_lint.interfaces.survey.repositories import named_repositories
        from torchrepro_lint.interfaces.survey.task import TaskLimits

        named = named_repositories(repositories)
        limits = TaskLimits(options["deadline"], options["memory"] << 20)
        dataset = Dataset(folder, {"honour_settings": options["honour_settings"]}, resume)
        known = dataset.known()
        tasks = list(_tasks(named, known, options["honour_settings"], limits))
        skipped, problems = _carry_out(tasks, dataset, options["jobs"], options["scheduler"], quiet)
    if not quiet:
        _summarise(folder, len(tasks), skipped, problems, dataset.made_anew)
    return 0


def _tasks(
    named: Iterable[Repository], known: dict[str, KnownRun], honour_settings: bool, limits: Any
) -> Iterator[Task]:
    """A task for each repository. What failed for want of time or memory is tried again with more of it."""
    from torchrepro_lint.interfaces.survey.task import Task

    for repository in named:
        before = known.get(repository.id)
        again = before is not None and before.failed and (before.seconds, before.memory) != limits[:2]
        yield Task(repository, before.digest if before and not again else "", honour_settings, limits)


def _carry_out(
    tasks: list[Task], dataset: Dataset, jobs: int | None, scheduler: str | None, quiet: bool
) -> tuple[int, list[tuple[str, str]]]:
    """Do all tasks, and add their results to the dataset; the number of unchanged repositories, and which failed, and why."""
    from torchrepro_lint.engine.process_pool import cores
    from torchrepro_lint.interfaces.cli.terminal import clear_status, progress
    from torchrepro_lint.interfaces.survey.scheduling import cluster_results, local_results

    results = cluster_results(tasks, scheduler) if scheduler else local_results(tasks, jobs or cores())
    advance = progress(len(tasks), "repositories surveyed", "Writing the dataset ...", quiet=quiet)
    skipped, problems = 0, []
    try:
        for result in results:
            advance()
            if result.run["status"] == "unchanged":
                skipped += 1
                continue
            dataset.add(result)
            if result.run["status"] == "failed":
                problems.append((result.run["reason"], result.run["repository"]))
        dataset.complete()
    finally:
        dataset.flush()
        clear_status()
    return skipped, problems


def _summarise(folder: Path, every: int, skipped: int, problems: list[tuple[str, str]], anew: bool) -> None:
    from torchrepro_lint.interfaces.cli.terminal import note
    from torchrepro_lint.interfaces.report.summary import counted

    if anew:
        note(f"{folder} was made with another version or other options, so nothing of it is used again")
    told = f", of which {skipped} {'has' if skipped == 1 else 'have'} not changed" if skipped else ""
    note(
        f"{folder}: {every} {'repository' if every == 1 else 'repositories'}{told}; {len(problems)} could not be surveyed"
    )
    reasons = sorted({reason for reason, _ in problems})
    for reason in reasons:
        named = sorted(repository for why, repository in problems if why == reason)
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        note(f"{counted(len(named), 'failure')} ({reason}): {named[0]}{more}")


@command(
    ("torchrepro-lint survey show found", "the tables"),
    ("torchrepro-lint survey show found --sql 'FROM runs'", "the answer to a query"),
)
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--sql", metavar="QUERY", help="Print the answer to a query over the tables of the dataset, by DuckDB.")
@_LIMIT
@format_option("text", "json")
def show(folder: Path, sql: str | None, limit: int, output_format: str) -> int:
    """Print tables of the survey in DIR: the most frequent rules, the share of entry points that are reproducible, by release of
    torch and by framework, and why repositories failed.
    """
    from torchrepro_lint.interfaces.cli.terminal import out

    with _extra("survey show"):
        from torchrepro_lint.interfaces.report import survey_tables
        from torchrepro_lint.interfaces.report.survey_queries import SurveyTables

        with SurveyTables(folder) as tables:
            found = (tables.asked(sql),) if sql is not None else tables.shown(limit)
    out(survey_tables.render(found, output_format))
    return 0


@command(("torchrepro-lint survey report found -o page.html", "write the page"))
@click.argument("folder", metavar="DIR", type=_FOLDER)
@output_option("")
@click.option("--title", default="", metavar="TEXT", help="The title of the page.")
def page(folder: Path, output: Path | None, title: str) -> int:
    """Write one page of HTML on the survey in DIR: distributions, the best and the worst repositories, and what failed."""
    from torchrepro_lint.interfaces.cli.terminal import deliver

    with _extra("survey report"):
        from torchrepro_lint.interfaces.report import survey_html
        from torchrepro_lint.interfaces.report.survey_queries import SurveyTables

        with SurveyTables(folder) as tables:
            text = survey_html.render(tables.summary(), title)
    deliver(text, output)
    return 0


@command(("torchrepro-lint survey compare before after", "what changed"))
@click.argument("old", type=_FOLDER)
@click.argument("new", type=_FOLDER)
@_LIMIT
@format_option("text", "json")
def compare(old: Path, new: Path, limit: int, output_format: str) -> int:
    """Show what got better and worse from the survey in OLD to that in NEW: entry points, controls and findings by repository.

    A repository is the same in both if its path is, or else its name, where each survey has only one of that name.
    """
    from torchrepro_lint.interfaces.cli.terminal import out

    with _extra("survey compare"):
        from torchrepro_lint.interfaces.report import survey_tables
        from torchrepro_lint.interfaces.report.survey_queries import compared

        found = compared(old, new, limit)
    out(survey_tables.render(found, output_format))
    return 0


# By the two words that call them; ``./show`` is a repository of that name.
SURVEY_COMMANDS: dict[str, click.Command] = {
    "survey compare": compare,
    "survey report": page,
    "survey show": show,
}
