"""Command-line parser: the commands of ``torchrepro-lint``, their options and shell completion, declared with click.

Only click is imported here; a command imports its implementation when it runs, so that ``--help`` is quick. The docstring of
a command is its help text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from torchrepro_lint import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@click.command(context_settings=_CONTEXT)
@click.argument("message", required=False)
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--torch-version", metavar="X.Y", help='The torch that the code runs with, or "minimum".')
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
def explain(message: str | None, paths: tuple[str, ...], torch_version: str | None, output_format: str) -> int:
    """Say what torch's error or warning about determinism means, where in PATHS (the current directory by default) it
    may come from, and what to write instead.

    MESSAGE is the error's text in quotes, a whole traceback, or the bare name; - or nothing reads standard input.
    """
    from torchrepro_lint.interfaces.cli.catalogue_commands import run_explain
    from torchrepro_lint.source.errors import UsageError

    try:
        return run_explain(message, paths, torch_version, output_format)
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings=_CONTEXT)
@click.argument("name", required=False)
@click.option("--torch-version", metavar="X.Y", help='The torch to look at, or "minimum".')
@click.option("--output-format", type=click.Choice(("table", "json", "markdown", "html")), default="table")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def ops(name: str | None, torch_version: str | None, output_format: str, output: Path | None) -> int:
    """Show how operations behave under torch.use_deterministic_algorithms(True) in the target torch.

    With NAME (F.interpolate, nn.Upsample, index_select, ...) one operation over all releases. HTML is one page of all
    operations and releases.
    """
    from torchrepro_lint.interfaces.cli.catalogue_commands import run_ops
    from torchrepro_lint.source.errors import UsageError

    try:
        return run_ops(name, torch_version, output_format, output)
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings=_CONTEXT)
@click.option("--cache-dir", metavar="PATH", help="The directory to clean, instead of the user's cache.")
def clean(cache_dir: str | None) -> int:
    """Remove what was kept of earlier runs, of all projects."""
    from torchrepro_lint.engine.store.cache import clean, directory
    from torchrepro_lint.interfaces.cli.terminal import note

    removed = clean(cache_dir)
    note(f"Removed the caches of {removed} project{'s' * (removed != 1)} below {directory(cache_dir)}")
    return 0


@click.command(context_settings=_CONTEXT)
@click.argument("entry", type=click.Path(readable=False))
@click.option("--torch-version", metavar="X.Y", help='The torch that the code runs with, or "minimum".')
@click.option("--device", type=click.Choice(("auto", "cuda", "mps", "cpu")), help="The device it will run on.")
@click.option("--parser", type=click.Choice(("auto", "libcst")), help="What reads the code; libcst is the reference.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
def trace(entry: str, torch_version: str | None, device: str | None, parser: str | None, output_format: str) -> int:
    """Show what a run of ENTRY does to generators, flags, environment variables and the device, in order, with the calls
    that lead there, and what is missing.

    ENTRY is a script, a notebook, or a file with commands of click and the like. It is read, never run.
    """
    from torchrepro_lint.interfaces.cli.arguments import RuleOverrides
    from torchrepro_lint.interfaces.cli.reports import run_trace
    from torchrepro_lint.source.errors import UsageError

    try:
        return run_trace(entry, RuleOverrides(torch_version=torch_version, device=device, parser=parser), output_format)
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings=_CONTEXT)
# Some editors add these.
@click.option("--stdio", is_flag=True, hidden=True, expose_value=False)
@click.option("--clientProcessId", type=int, hidden=True, expose_value=False)
def server() -> int:
    """Serve an editor as a language server, over standard input and output; needs the extra lsp."""
    try:
        from torchrepro_lint.interfaces.lsp.handlers import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException("server needs pygls; install torchrepro-lint[lsp]") from None
    return serve()


# The keys of ``COMMANDS`` below.
COMPLETED_COMMANDS = ("check", "clean", "explain", "ops", "report", "rule", "server", "trace")


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions for a comma-separated list of rule codes and names."""
    from click.shell_completion import CompletionItem

    from torchrepro_lint.checks.pages import pages

    head, comma, last = incomplete.rpartition(",")
    offered = [(word, page.summary) for page in pages() for word in (page.code, page.name)]
    return [CompletionItem(f"{head}{comma}{word}", help=summary) for word, summary in offered if word.startswith(last)]


def complete_paths(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions for paths; for the first argument also the names of commands."""
    from click.shell_completion import CompletionItem

    first = not context.params.get("paths")
    commands = [
        CompletionItem(name) for name in COMPLETED_COMMANDS if first and incomplete and name.startswith(incomplete)
    ]
    return [*commands, CompletionItem(incomplete, type="file")]


def list_option(name: str, text: str, rules: bool = True) -> Callable[[Any], Any]:
    """An option that takes a list, by commas or by repetition: of rules, else of globs. ``None`` where it is not given."""
    return click.option(
        name,
        multiple=True,
        metavar="A,B,…",
        callback=_split_list if rules else _split_globs,
        help=text,
        shell_complete=complete_rules if rules else None,
    )


def _split_list(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    words = tuple(word.strip() for value in values for word in value.split(",") if word.strip())
    if values and not words and parameter.name == "select":
        raise click.BadParameter("nothing would run: name rules, or leave the option out")
    return words if values else None


def _split_globs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    from torchrepro_lint.config.settings import require_glob

    words = _split_list(context, parameter, values)
    try:
        for word in words or ():
            require_glob(word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return words


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
@list_option("--select", "Rules to run instead of the selected ones: codes, prefixes, names, ALL.")
@list_option("--extend-select", "Rules to run as well.")
@list_option("--ignore", "Rules not to run.")
@click.option("--min-severity", type=click.Choice(("note", "warning", "error")), help="Leave out what matters less.")
@click.option("--ignore-noqa", is_flag=True, help="Report what comments suppress, too.")
@list_option("--extend-exclude", "Globs to leave out as well.", rules=False)
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
    from torchrepro_lint.interfaces.cli.arguments import RuleOverrides
    from torchrepro_lint.interfaces.cli.reports import ReportArguments, run_report
    from torchrepro_lint.source.errors import UsageError

    overrides = RuleOverrides(*(options.pop(name) for name in RuleOverrides._fields))
    excluded = options.pop("extend_exclude") or ()
    try:
        return run_report(ReportArguments(overrides=overrides, extend_exclude=excluded, **options))
    except UsageError as error:
        raise click.ClickException(str(error)) from None


# Equal to ``FORMATS`` of ``config.settings``, which imports more than --help needs.
FORMATS = ("full", "concise", "flake8", "json", "json-lines", "sarif", "github", "gitlab", "junit", "markdown")
_EPILOG = """\b
Other commands (their first word comes first; ./rule is a folder of that name):
  torchrepro-lint rule [CODE|NAME]   print a rule's page, or a table of all rules
  torchrepro-lint explain MESSAGE    say what torch's error about determinism means and where it comes from
  torchrepro-lint clean              remove what was kept of earlier runs
  torchrepro-lint ops [NAME]         show how torch's operations behave, release by release
  torchrepro-lint report [PATHS]     write one page on a project: entry points, timelines, findings, operations
  torchrepro-lint trace ENTRY        show what a run does to generators, flags and variables, in order
  torchrepro-lint server             serve an editor as a language server

Exit status: 0 nothing left to report, 1 findings left, 2 a usage, configuration or input error."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit with its status."""
    given = sys.argv[1:] if arguments is None else arguments
    named = given[0] if given and given[0] in COMMANDS else ""
    command, words = (COMMANDS[named], given[1:]) if named else (check, given)
    if is_subcommand_completion(os.environ):
        command, named = click.Group(commands=COMMANDS), ""
    try:
        status = command.main(words, prog_name=f"torchrepro-lint {named}".strip(), standalone_mode=False)
    except click.ClickException as error:
        status = _fail(error.format_message())
    except click.Abort:
        status = 130
    except OSError as error:
        status = _help_not_written(error)
    sys.exit(status or 0)


def is_subcommand_completion(environment: Mapping[str, str]) -> bool:
    """Whether a shell asks for completions behind the name of a command; other completions are those of ``check``."""
    words = environment.get("COMP_WORDS", "").split()
    return "_TORCHREPRO_LINT_COMPLETE" in environment and len(words) > 1 and words[1] in COMMANDS


def _fail(message: str) -> int:
    """Print one line on standard error; the exit status of an error."""
    from torchrepro_lint.interfaces.cli.terminal import note

    note(f"torchrepro-lint: {' '.join(message.split())}")
    return 2


def _help_not_written(error: OSError) -> int:
    """Handle an ``OSError`` of click: its help may still be buffered. Raises errors that standard output did not cause."""
    from torchrepro_lint.interfaces.cli.terminal import out
    from torchrepro_lint.source.errors import UsageError

    try:
        out("")
    except UsageError as known:
        return _fail(str(known))
    raise error


@click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("paths", nargs=-1, type=click.Path(readable=False), shell_complete=complete_paths)
@click.option("--fix", is_flag=True, help="Apply the safe fixes and report what is left.")
@click.option("--fix-only", is_flag=True, help="Apply the fixes as --fix does, and do not report what is left.")
@click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="With --fix: apply the unsafe fixes, too.")
@click.option(
    "--diff", is_flag=True, help="Show what --fix would change, write nothing; status 1 if there is anything."
)
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with status 1 when something was fixed.")
@list_option("--select", "Rules to run instead of the selected ones: codes, prefixes, names, ALL.")
@list_option("--extend-select", "Rules to run as well.")
@list_option("--ignore", "Rules not to run.")
@click.option("--min-severity", type=click.Choice(("note", "warning", "error")), help="Leave out what matters less.")
@click.option("--ignore-noqa", is_flag=True, help="Report what comments suppress, too.")
@click.option("--add-noqa", is_flag=True, help="Write a noqa comment for each finding, and report none.")
@click.option("--baseline", type=_FILE, metavar="FILE", help="Report only what FILE does not know.")
@click.option("--write-baseline", type=_FILE, metavar="FILE", help="Write what is found to FILE, and report nothing.")
@click.option("--torch-version", metavar="X.Y", help='The torch that the code will run with, or "minimum".')
@click.option("--device", type=click.Choice(("auto", "cuda", "mps", "cpu")), help="The device it will run on.")
@click.option("--parser", type=click.Choice(("auto", "libcst")), help="What reads the code; libcst is the reference.")
@click.option("--output-format", type=click.Choice(FORMATS), help="The format of findings.")
@click.option(
    "-o", "--output-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the findings to a file."
)
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 when there are findings.")
@click.option("-v", "--verbose", is_flag=True, help="Add the way from the entry point to each cause, a step a line.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings only: no summary, no notes.")
@click.option("--watch", is_flag=True, help="Run again whenever a file changes; needs the extra watch.")
@click.option("--statistics", is_flag=True, help="Print how often each rule fired instead of the findings.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The settings file to use."
)
@click.option("--isolated", is_flag=True, help="Ignore all settings files.")
@list_option("--exclude", "Globs to leave out instead of those of the settings.", rules=False)
@list_option("--extend-exclude", "Globs to leave out as well.", rules=False)
@click.option("--force-exclude", is_flag=True, help="Leave out excluded files even where they are given by name.")
@click.option("--stdin-filename", metavar="PATH", help="The name of what - reads from standard input.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes to use; one per core by default.")
@click.option(
    "--cache-dir", metavar="PATH", help="Where to keep what was read for the next run, instead of the user's cache."
)
@click.option("--no-cache", is_flag=True, help="Read everything anew and keep nothing.")
@click.option("--show-files", is_flag=True, help="Print the files that would be linted.")
@click.option("--show-settings", is_flag=True, help="Print the settings in force and the target torch.")
@click.version_option(__version__, message="torchrepro-lint %(version)s")
def check(**options: Any) -> int:
    """Find what makes PyTorch training irreproducible in PATHS (the current directory by default; - is standard input).

    The code is read, never run.
    """
    from torchrepro_lint.interfaces.cli.arguments import Arguments
    from torchrepro_lint.interfaces.cli.check import run_check
    from torchrepro_lint.source.errors import UsageError

    try:
        return run_check(Arguments(**options))
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("wanted", metavar="[CODE|NAME]", required=False, shell_complete=complete_rules)
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", help="Text is Markdown.")
def rule(wanted: str | None, output_format: str) -> int:
    """Print the page of a rule; without an argument, a table of all rules."""
    from torchrepro_lint.checks.pages import render
    from torchrepro_lint.interfaces.cli.terminal import out
    from torchrepro_lint.source.errors import UsageError

    try:
        out(render(wanted, output_format))
    except UsageError as error:
        raise click.ClickException(str(error)) from None
    return 0


COMMANDS: dict[str, click.Command] = {
    "check": check,
    "clean": clean,
    "explain": explain,
    "ops": ops,
    "report": report,
    "rule": rule,
    "server": server,
    "trace": trace,
}
