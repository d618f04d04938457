"""The command ``report``. As in ``cli``, only click is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchrepro_lint.completion import complete_paths
from torchrepro_lint.listing import listing

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("paths", nargs=-1, type=click.Path(readable=False), shell_complete=complete_paths)
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write to a file, whole or not at all.")
@click.option(
    "--output-format",
    type=click.Choice(("html", "json", "markdown")),
    help="By default what the name of the file says, else HTML.",
)
@click.option(
    "--compare", type=_FILE, metavar="OLD.json", help="Show what got better and worse since this JSON report."
)
@click.option("--title", default="", metavar="TEXT", help="What the page is called, instead of the project's name.")
@click.option("--torch-version", metavar="X.Y", help='The torch that the code will run with, or "minimum".')
@click.option("--device", type=click.Choice(("auto", "cuda", "mps", "cpu")), help="The device it will run on.")
@click.option("--parser", type=click.Choice(("auto", "libcst")), help="What reads the code; libcst is the reference.")
@listing("--select", "Rules to run instead of the selected ones: codes, prefixes, names, ALL.")
@listing("--extend-select", "Rules to run as well.")
@listing("--ignore", "Rules not to run.")
@click.option("--min-severity", type=click.Choice(("note", "warning", "error")), help="Leave out what matters less.")
@click.option("--ignore-noqa", is_flag=True, help="Report what comments suppress, too.")
@listing("--extend-exclude", "Globs to leave out as well.", rules=False)
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The settings file to use."
)
@click.option("--isolated", is_flag=True, help="Ignore all settings files.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes to use; one per core by default.")
@click.option("--cache-dir", metavar="PATH", help="Where to keep what was read for the next run.")
@click.option("--no-cache", is_flag=True, help="Read everything anew and keep nothing.")
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 when there are findings.")
@click.option("-q", "--quiet", is_flag=True, help="Print no summary and no notes.")
def report(**options: Any) -> int:
    """Write one page on PATHS (the current directory by default): each entry point against what makes a run repeatable,
    its timeline, the findings with their fixes, the operations by release of torch, and what was not analysed.

    The code is read, never run. The same files give the same page. The exit status is 1 where there are findings.
    """
    from torchrepro_lint.arguments import Over
    from torchrepro_lint.reporting import Request, run_report
    from torchrepro_lint.source.errors import UsageError

    over = Over(*(options.pop(name) for name in Over._fields))
    excluded = options.pop("extend_exclude") or ()
    try:
        return run_report(Request(over=over, extend_exclude=excluded, **options))
    except UsageError as error:
        raise click.ClickException(str(error)) from None
