"""Command-line parser: the commands of ``torchrepro-lint``, their options and shell completion, declared with click.

Only click is imported here, so that ``--help`` is quick: a command imports what it runs. Its docstring is its help text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from torchrepro_lint import __version__
from torchrepro_lint.interfaces.cli.options import (
    CACHE_DIR,
    COLOR,
    DELETED,
    EPILOG,
    EXIT_ZERO,
    EXTEND_EXCLUDE,
    FAIL_ON,
    FURTHER_COMMANDS,
    JOBS,
    NO_CACHE,
    TORCH_VERSION,
    Arguments,
    Word,
    command,
    complete_paths,
    complete_rules,
    format_option,
    globs_option,
    no_such_option,
    option_group,
    output_option,
    shared_options,
    target_options,
    working_directory_is_deleted,
)
from torchrepro_lint.interfaces.cli.survey import SURVEY_COMMANDS, survey

_FILE = click.Path(dir_okay=False, path_type=Path)
# Equal to ``FORMATS`` of ``config.settings``, which imports more than --help needs.
FORMATS = ("full", "concise", "flake8", "json", "json-lines", "sarif", "github", "gitlab", "junit", "markdown")
# The keys of ``COMMANDS`` below.
COMPLETED_COMMANDS = ("check", "clean", "explain", "ops", "report", "rule", "schema", "server", "survey", "trace")


@command(
    ('torchrepro-lint explain "cumsum_cuda_kernel does not …"', "an error message"),
    ("torchrepro-lint explain < traceback.txt", "a traceback"),
)
@click.argument("message", required=False)
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@TORCH_VERSION
@format_option("text", "json")
def explain(message: str | None, paths: tuple[str, ...], torch_version: str | None, output_format: str) -> int:
    """Explain an error or warning of torch about determinism: what it means, which calls in PATHS (default: the current
    directory) may raise it, and what to write instead.

    MESSAGE is the text of the error in quotes, a whole traceback, or the name in the error alone. Without MESSAGE, or with -,
    standard input is read.
    """
    from torchrepro_lint.interfaces.cli.reports import run_explain

    return run_explain(message, paths, torch_version, output_format)


@command(
    ("torchrepro-lint ops", "all operations"),
    ("torchrepro-lint ops cumsum", "one, in every release"),
    ("torchrepro-lint ops --output-format html -o ops.html", "a page to browse"),
)
@click.argument("name", required=False)
@TORCH_VERSION
@format_option(
    "table",
    "json",
    "markdown",
    "html",
    told="table (default), json, markdown or html: one page with all operations and releases.",
)
@output_option("")
def ops(name: str | None, torch_version: str | None, output_format: str, output: Path | None) -> int:
    """Show how operations of torch behave under torch.use_deterministic_algorithms(True).

    Without NAME all operations are listed, as they behave in the torch version of the project. With NAME (F.interpolate,
    nn.Upsample, index_select, ...) one operation is shown in every release.
    """
    from torchrepro_lint.interfaces.cli.reports import run_ops

    return run_ops(name, torch_version, output_format, output)


@command(
    ("torchrepro-lint clean", "remove the cache of this project"),
    ("torchrepro-lint clean --all", "remove the caches of all projects"),
)
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--all", "everything", is_flag=True, help="Remove the caches of all projects, after asking.")
@click.option("-y", "--yes", is_flag=True, help="With --all: do not ask.")
@click.option("--cache-dir", metavar="DIR", help="The directory of the caches, if it is not the default one.")
def clean(paths: tuple[str, ...], everything: bool, yes: bool, cache_dir: str | None) -> int:
    """Remove the cache of the project that the current directory belongs to, or of the projects that PATHS belong to."""
    from torchrepro_lint.source.errors import UsageError

    if everything and paths:
        raise UsageError("--all cannot be combined with paths: it removes the caches of all projects")
    if yes and not everything:
        raise UsageError("--yes is for --all: the cache of one project is removed without asking")
    return _clean_all(cache_dir, yes) if everything else _clean_projects(paths or (".",), cache_dir)


def _clean_projects(paths: tuple[str, ...], cache_dir: str | None) -> int:
    from torchrepro_lint.config.discovery import plan
    from torchrepro_lint.config.roots import ConfigOptions, RootFinder, fallback_root
    from torchrepro_lint.engine.store.cache import project_cache, remove
    from torchrepro_lint.interfaces.cli.terminal import note
    from torchrepro_lint.source.errors import UsageError

    if missing := plan([path for path in paths if not os.path.lexists(path)], ConfigOptions()).errors:
        raise UsageError(missing[0])
    places = [os.path.abspath(path) for path in paths]
    finder = RootFinder(ConfigOptions(), fallback_root(places))
    roots = (finder.of(place if os.path.isdir(place) else os.path.dirname(place)).path for place in places)
    for root in dict.fromkeys(roots):
        removed = remove([project_cache(root, cache_dir)])
        note(f"Removed the cache of {root}" if removed else f"{root} has no cache")
    return 0


def _clean_all(cache_dir: str | None, yes: bool) -> int:
    from torchrepro_lint.engine.store.cache import directory, project_caches, remove
    from torchrepro_lint.interfaces.cli.terminal import note
    from torchrepro_lint.source.errors import UsageError

    place = directory(cache_dir)
    found = project_caches(place)
    told = f"{len(found)} project{'s' * (len(found) != 1)} in {place}"
    if not found:
        note(f"There are no caches in {place}")
    elif not yes and not sys.stdin.isatty():
        raise UsageError(f"--all would remove the caches of {told}; add --yes to remove them without being asked")
    elif yes or click.confirm(f"Remove the caches of {told}?", err=True):
        note(f"Removed the caches of {remove(found)} project{'s' * (len(found) != 1)}")
    else:
        note("Nothing was removed")
    return 0


@command(
    ("torchrepro-lint trace train.py", "the timeline of a script"),
    ("torchrepro-lint trace train.py --device cpu", "as it runs without a GPU"),
)
@click.argument("entry", type=click.Path(readable=False))
@target_options
@format_option("text", "json")
@COLOR
def trace(entry: str, output_format: str, color: str, **target: Any) -> int:
    """Show what a run of ENTRY does to generators, flags, environment variables and the device: in order, with the calls that
    lead there, and with what is missing.

    ENTRY is a script, a notebook, or a file that defines commands (click, typer, ...). It is read, never run.
    """
    from torchrepro_lint.config.settings import RuleOverrides
    from torchrepro_lint.interfaces.cli.reports import run_trace

    return run_trace(entry, RuleOverrides(**target), output_format, color)


@command()
# Some editors add these.
@click.option("--stdio", is_flag=True, hidden=True, expose_value=False)
@click.option("--clientProcessId", type=int, hidden=True, expose_value=False)
def server() -> int:
    """Start the language server for editors, which speaks over standard input and output.

    It needs pygls, which the extra torchrepro-lint[lsp] installs.
    """
    try:
        from torchrepro_lint.interfaces.lsp.handlers import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException("server needs pygls; install torchrepro-lint[lsp]") from None
    return serve()


@command()
@click.option(
    "--pyproject", is_flag=True, help="Print the schema of pyproject.toml instead of that of torchrepro-lint.toml."
)
def schema(pyproject: bool) -> int:
    """Print the JSON Schema of the settings, which editors use to check and complete a settings file."""
    from importlib.resources import files

    from torchrepro_lint.interfaces.cli.terminal import out

    name = "pyproject" if pyproject else "torchrepro-lint"
    out((files("torchrepro_lint.config") / f"{name}.schema.json").read_text(encoding="utf-8"))
    return 0


_output, _files, _status = option_group("Output"), option_group("Files"), option_group("Exit status")
_fixes, _known = option_group("Fixes"), option_group("Existing findings")
_settings, _more = option_group("Settings"), option_group("Miscellaneous")


@command(
    ("torchrepro-lint report -o report.html", "write the page"),
    ("torchrepro-lint report -o report.json", "the same as JSON"),
    ("torchrepro-lint report -o new.html --compare report.json", "and what changed"),
)
@click.argument("paths", nargs=-1, type=click.Path(readable=False), shell_complete=partial(complete_paths, ()))
@output_option("Output")
@_output(
    "--output-format",
    type=Word(("html", "json", "markdown")),
    metavar="FORMAT",
    help="html, json or markdown. By default the suffix of FILE decides (.html, .json or .md); without a suffix it is html.",
)
@_output("--compare", type=_FILE, metavar="OLD.json", help="Show what got better and worse since this JSON report.")
@_output("--title", default="", metavar="TEXT", help="The title of the page (default: the name of the project).")
@_output("-q", "--quiet", is_flag=True, help="Print no summary and no notes.")
@shared_options
@EXTEND_EXCLUDE
@FAIL_ON
@EXIT_ZERO
@JOBS
@CACHE_DIR
@NO_CACHE
def report(**options: Any) -> int:
    """Write a report on PATHS (default: the current directory): for each entry point what makes its run repeatable and what
    does not, its timeline, the findings with their fixes, the operations by release of torch, and what was not analysed.

    The code is read, never run. The same files give the same report.
    """
    from torchrepro_lint.config.settings import RuleOverrides
    from torchrepro_lint.interfaces.cli.reports import ReportArguments, run_report

    return run_report(ReportArguments(overrides=RuleOverrides.taken_from(options), **options))


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit with its status."""
    from torchrepro_lint.source.errors import UsageError

    given = _without_help_word(sys.argv[1:] if arguments is None else arguments)
    named = next((name for count in (2, 1) if (name := " ".join(given[:count])) in EVERY_COMMAND), "")
    called, words = (EVERY_COMMAND[named], given[len(named.split()) :]) if named else (check, given)
    if is_subcommand_completion(os.environ):
        called, named = click.Group(commands=COMMANDS), ""
    try:
        if misspelt := _misspelt_command(words) if called is check and not named else "":
            raise UsageError(misspelt)
        status = called.main(words, prog_name=f"torchrepro-lint {named}".strip(), standalone_mode=False)
    except click.NoSuchOption as error:
        status = _fail(no_such_option(error))
    except click.ClickException as error:
        status = _fail(error.format_message())
    except UsageError as error:
        status = _fail(str(error))
    except click.Abort:
        status = 130
    except OSError as error:
        status = _fail(DELETED) if working_directory_is_deleted() else _help_not_written(error)
    sys.exit(status or 0)


def _without_help_word(words: list[str]) -> list[str]:
    """``help rule`` as ``rule --help``, unless something is named ``help``."""
    return [*words[1:2], "--help"] if words[:1] == ["help"] and not os.path.lexists("help") else words


def is_subcommand_completion(environment: Mapping[str, str]) -> bool:
    """Whether a shell asks for completions behind the name of a command; other completions are those of ``check``."""
    words = environment.get("COMP_WORDS", "").split()
    return "_TORCHREPRO_LINT_COMPLETE" in environment and len(words) > 1 and words[1] in COMMANDS


def _misspelt_command(words: list[str]) -> str:
    """A message for a first word that is no path, but nearly the name of a command; else empty."""
    word = words[0] if words else ""
    if not word.isalpha() or os.path.lexists(word):
        return ""
    from torchrepro_lint.config.settings import nearest

    try:
        entries = sorted(os.listdir())
    except OSError:  # the current directory may have gone
        entries = []
    near = nearest(word, [*entries, *COMMANDS], cutoff=0.7)
    known = near in COMMANDS and not os.path.lexists(near)
    return f"{word}: no such command, file or directory; did you mean the command {near!r}?" if known else ""


def _fail(message: str) -> int:
    """Print one line on standard error; the exit status of an error."""
    from torchrepro_lint.interfaces.cli import terminal

    return terminal.errors([" ".join(message.split())])


def _help_not_written(error: OSError) -> int:
    """Handle an ``OSError`` of click: its help may still be buffered. Raises errors that standard output did not cause."""
    from torchrepro_lint.interfaces.cli.terminal import out
    from torchrepro_lint.source.errors import UsageError

    try:
        out("")
    except UsageError as known:
        return _fail(str(known))
    raise error


@command(
    ("torchrepro-lint src/", "report the findings in src/"),
    ("torchrepro-lint src/ --diff --unsafe-fixes", "show what all fixes would change"),
    ("torchrepro-lint src/ --fix", "apply the safe fixes"),
    ("torchrepro-lint rule TRL302", "explain a rule"),
    commands=FURTHER_COMMANDS,
    epilog=EPILOG,
)
@click.argument(
    "paths", nargs=-1, type=click.Path(readable=False), shell_complete=partial(complete_paths, COMPLETED_COMMANDS)
)
@_fixes("--fix", is_flag=True, help="Apply the safe fixes, and report the findings that are left.")
@_fixes("--fix-only", is_flag=True, help="Apply the safe fixes, and do not report the findings that are left.")
@_fixes(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="With --fix, --fix-only or --diff: include the unsafe fixes, which may change the speed or the numbers of a run.",
)
@_fixes("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@shared_options
@_known("--add-noqa", is_flag=True, help="Add a noqa comment for each finding instead of reporting it.")
@_known("--baseline", type=_FILE, metavar="FILE", help="Report only the findings that FILE does not list.")
@_known("--write-baseline", type=_FILE, metavar="FILE", help="Write all findings to FILE instead of reporting them.")
@_output(
    "--output-format",
    type=Word(FORMATS),
    metavar="FORMAT",
    help="full (default in a terminal), concise (default elsewhere; one line for each finding, as flake8 prints it, and"
    " also called flake8), json, json-lines, sarif, github, gitlab, junit or markdown.",
)
@_output(
    "-o", "--output-file", type=_FILE, metavar="FILE", help="Write the findings to FILE instead of standard output."
)
@COLOR
@_output("--statistics", is_flag=True, help="Print the number of findings of each rule instead of the findings.")
@_output("-v", "--verbose", is_flag=True, help="Print the calls that lead to each cause, too; full always does.")
@_output("-q", "--quiet", is_flag=True, help="Print findings only: no summary, no notes.")
@globs_option("Files", "--exclude", "Skip these files instead of those that the settings skip.")
@EXTEND_EXCLUDE
@_files("--force-exclude", is_flag=True, help="Skip excluded files even if the command line names them.")
@_files("--stdin-filename", metavar="PATH", help="The name of the file that standard input holds.")
@_files("--show-files", is_flag=True, help="Print the files that would be linted, and do nothing else.")
@_settings("--show-settings", is_flag=True, help="Print the settings and the torch version, and do nothing else.")
@FAIL_ON
@EXIT_ZERO
@_status("--exit-non-zero-on-fix", is_flag=True, help="Exit with status 1 if anything was fixed.")
@_more("--watch", is_flag=True, help="Run again whenever a file changes (needs the extra torchrepro-lint[watch]).")
@JOBS
@CACHE_DIR
@NO_CACHE
@click.version_option(__version__, "-V", "--version", message="torchrepro-lint %(version)s", help="Print the version.")
def check(**options: Any) -> int:
    """Find what makes PyTorch training irreproducible.

    PATHS are files and directories (default: the current directory), or - for standard input. The code is read, never run.
    """
    from torchrepro_lint.config.settings import RuleOverrides
    from torchrepro_lint.interfaces.cli.check import run_check

    return run_check(Arguments(overrides=RuleOverrides.taken_from(options), **options))


@command(
    ("torchrepro-lint rule TRL302", "the page of a rule, by its code"),
    ("torchrepro-lint rule dataloader-generator", "or by its name"),
    ("torchrepro-lint rule TRL3", "a table of all TRL3xx rules"),
)
@click.argument("wanted", metavar="[CODE|NAME|PREFIX]", required=False, shell_complete=complete_rules)
@format_option("text", "json", told="text (default; a page is Markdown) or json.")
def rule(wanted: str | None, output_format: str) -> int:
    """Explain a rule: what it reports, why that matters, and what its fix does. Without an argument, list all rules."""
    from torchrepro_lint.checks.pages import render
    from torchrepro_lint.interfaces.cli.terminal import is_terminal, out, width

    out(render(wanted, output_format, width() if is_terminal() else 0))
    return 0


COMMANDS = {str(each.name): each for each in (check, clean, explain, ops, report, rule, schema, server, survey, trace)}
# Also those that two words call.
EVERY_COMMAND: dict[str, click.Command] = dict(sorted({**COMMANDS, **SURVEY_COMMANDS}.items()))
