"""Options of the command line in groups, the help that shows them, shell completion of rules and paths, and the record of the
parsed options of ``check``.

Only click is imported here, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from torchrepro_lint.config.settings import RuleOverrides, Settings

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
SEVERITIES = ("note", "warning", "error")
# What the help of ``check`` says of the other commands, and of the exit status.
FURTHER_COMMANDS = (
    ("rule [CODE]", "explain a rule, or list all rules"),
    ("trace ENTRY", "show what a run does to generators and flags, in order"),
    ("report [PATHS]", "write a page on a project: runs, findings, operations"),
    ("survey REPOS", "report on many repositories, into a dataset"),
    ("explain MESSAGE", "explain an error of torch about determinism"),
    ("ops [NAME]", "show how operations of torch behave, release by release"),
    ("schema", "print the JSON Schema of the settings, for editors"),
    ("server", "start the language server for editors"),
    ("clean", "remove the cache of a project"),
)
EPILOG = """Exit status: 0 without findings that --fail-on counts, 1 with such findings (or, with --diff, if a fix would change
anything), 2 for an error in the command line, in the settings or in reading a file.

A directory that is named like a command is written with a slash: ./rule."""
# The order of the headings.
_GROUPS = (
    "Options",
    "Fixes",
    "Rule selection",
    "Existing findings",
    "Output",
    "Files",
    "Settings",
    "Exit status",
    "Miscellaneous",
)
_FEW = 10
_WIDEST = 26
_WIDEST_EXAMPLE = 66


class Word(_Choice):
    """One of some words; a word that is none of them gets the nearest one suggested."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word; fails with a suggestion."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            from torchrepro_lint.config.settings import did_you_mean

            words = [str(each) for each in self.choices]
            self.fail(f"{value!r} is not one of {', '.join(words)}{did_you_mean(str(value), words)}", param, ctx)


def no_such_option(error: click.NoSuchOption) -> str:
    """The message, which differs between releases of click."""
    from torchrepro_lint.config.settings import did_you_mean

    return f"no such option {error.option_name}{did_you_mean(error.option_name, error.possibilities or ())}"


class ExistingFile(click.Path):
    """A file that must exist; where it does not, a file of a similar name is suggested."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails with a suggestion."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from torchrepro_lint.config.discovery import similar_path

            self.fail(f"{error.message.rstrip('.')}{similar_path(str(value))}", param, ctx)


class GroupedOption(click.Option):
    """An option that the help lists below the heading of its ``group``."""

    def __init__(self, *args: Any, group: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.group = group


def option_group(name: str) -> Callable[..., Callable[[Any], Any]]:
    """``click.option`` for the options of a group."""
    return partial(click.option, cls=GroupedOption, group=name)


def output_option(group: str) -> Callable[[Any], Any]:
    """``--output-file`` of a command that writes a document, also under its first name ``--output``, which the help leaves out."""
    file = click.Path(dir_okay=False, path_type=Path)
    told = "Write to FILE instead of standard output."
    named = option_group(group)("-o", "--output-file", "output", type=file, metavar="FILE", help=told)
    former = click.option("--output", "output", type=file, hidden=True)
    return lambda command: named(former(command))


def format_option(*formats: str, group: str = "", told: str = "") -> Callable[[Any], Any]:
    """``--output-format`` of a command that prints the first of some formats unless another is asked for."""
    named = f"{formats[0]} (default) or {formats[1]}."
    return option_group(group)(
        "--output-format", type=Word(formats), default=formats[0], metavar="FORMAT", help=told or named
    )


class _Command(click.Command):
    """A command whose help has examples, a list of further commands, and its options by group."""

    def __init__(
        self,
        *args: Any,
        examples: Iterable[tuple[str, str]] = (),
        commands: Iterable[tuple[str, str]] = (),
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._examples = list(examples)
        self._commands = list(commands)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The text, the examples and the other commands."""
        super().format_help_text(ctx, formatter)
        _write_section(formatter, "Examples", self._examples, _WIDEST_EXAMPLE)
        _write_section(formatter, "Commands (add --help for their options)", self._commands, _WIDEST)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by group; those of no group, such as ``--help``, are the last ones. A few options need no groups."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
        grouped = len(options) > _FEW
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in options:
            group = (getattr(option, "group", "") or _GROUPS[-1]) if grouped else _GROUPS[0]
            groups.setdefault(group, []).append(option.get_help_record(ctx) or ("", ""))
        width = max((len(name) for rows in groups.values() for name, _ in rows if len(name) <= _WIDEST), default=0)
        for heading in sorted(groups, key=_GROUPS.index):
            _write_section(formatter, heading, [(f"{name:<{width}}", text) for name, text in groups[heading]], width)


def command(
    *examples: tuple[str, str], commands: Iterable[tuple[str, str]] = (), epilog: str | None = None
) -> Callable[[Callable[..., int]], click.Command]:
    """``click.command`` with examples of a command, and a list of ``commands`` that go on from it."""
    return click.command(cls=_Command, context_settings=_CONTEXT, examples=examples, commands=commands, epilog=epilog)


def _write_section(formatter: click.HelpFormatter, heading: str, rows: list[tuple[str, str]], widest: int) -> None:
    if rows:
        with formatter.section(heading):
            formatter.write_dl(rows, col_max=widest)


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions for a comma-separated list of rule codes and names."""
    from click.shell_completion import CompletionItem

    from torchrepro_lint.checks.pages import pages

    head, comma, last = incomplete.rpartition(",")
    offered = [(word, page.summary) for page in pages() for word in (page.code, page.name)]
    return [CompletionItem(f"{head}{comma}{word}", help=summary) for word, summary in offered if word.startswith(last)]


def complete_paths(
    commands: Sequence[str], context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completions for paths; for the first argument also the names of commands."""
    from click.shell_completion import CompletionItem

    first = not context.params.get("paths")
    named = [CompletionItem(name) for name in commands if first and incomplete and name.startswith(incomplete)]
    return [*named, CompletionItem(incomplete, type="file")]


def rules_option(group: str, name: str, text: str) -> Callable[[Any], Any]:
    """An option that takes a list of rules, by commas or by repetition; ``None`` where it is not given."""
    return option_group(group)(
        name, multiple=True, metavar="RULES", callback=_split_list, help=text, shell_complete=complete_rules
    )


def globs_option(group: str, name: str, text: str) -> Callable[[Any], Any]:
    """The same for a list of globs."""
    return option_group(group)(name, multiple=True, metavar="GLOBS", callback=_split_globs, help=text)


def _split_list(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    words = tuple(word.strip() for value in values for word in value.split(",") if word.strip())
    if values and not words and parameter.name == "select":
        raise click.BadParameter("no rule would run: name rules, or leave the option out")
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


def shared_options(command: Any) -> Any:
    """The options about rules, the target and the settings that several commands have."""
    return reduce(lambda each, add: add(each), reversed(_SHARED), command)


def target_options(command: Any) -> Any:
    """The options about the target alone."""
    return reduce(lambda each, add: add(each), reversed(_TARGET), command)


_RULES = "Rule selection"
_rules, _settings = option_group(_RULES), option_group("Settings")
_status, _more = option_group("Exit status"), option_group("Miscellaneous")
TORCH_VERSION = _settings(
    "--torch-version",
    metavar="X.Y",
    help='The version of torch that the code runs with, or "minimum" for the oldest one that the requirements admit.',
)
_TARGET = (
    TORCH_VERSION,
    _settings(
        "--device",
        type=Word(("auto", "cuda", "mps", "cpu")),
        metavar="DEVICE",
        help="The device that the code runs on: auto (default; what the code itself says), cuda, mps or cpu.",
    ),
    _settings(
        "--parser",
        type=Word(("auto", "libcst")),
        metavar="PARSER",
        help="auto (default; Python's own parser, and libcst for what that cannot parse) or libcst, which is slower.",
    ),
)
_SHARED = (
    rules_option(
        _RULES, "--select", "Run only these rules: codes, prefixes of codes, names or ALL, separated by commas."
    ),
    rules_option(_RULES, "--extend-select", "Run these rules in addition to the selected ones."),
    rules_option(_RULES, "--ignore", "Do not run these rules."),
    _rules(
        "--min-severity",
        type=Word(SEVERITIES),
        metavar="SEVERITY",
        help="Report only findings of this severity or above: note, warning or error.",
    ),
    _rules("--ignore-noqa", is_flag=True, help="Report findings even where a comment suppresses them."),
    _settings("--config", type=ExistingFile(), metavar="FILE", help="Use this settings file."),
    _settings("--isolated", is_flag=True, help="Ignore all settings files."),
    *_TARGET,
)
EXTEND_EXCLUDE = globs_option(
    "Files", "--extend-exclude", "Skip these files in addition to those that the settings skip."
)
COLOR = option_group("Output")(
    "--color",
    type=Word(("auto", "always", "never")),
    default="auto",
    metavar="WHEN",
    help="When to use colours: auto (default; in a terminal, unless NO_COLOR or FORCE_COLOR is set), always or never.",
)
FAIL_ON = _status(
    "--fail-on",
    type=Word(SEVERITIES),
    metavar="SEVERITY",
    help="Exit with status 1 if there are findings of this severity or above: note, warning (default) or error."
    " Findings that --min-severity leaves out do not count.",
)
EXIT_ZERO = _status("--exit-zero", is_flag=True, help="Exit with status 0 even if there are findings.")
JOBS = _more("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Use N processes; by default one for each core.")
CACHE_DIR = _more("--cache-dir", metavar="DIR", help="Keep the cache in DIR.")
NO_CACHE = _more("--no-cache", is_flag=True, help="Neither read nor write the cache.")


class Arguments(NamedTuple):
    """The options of ``check``; ``None`` where not given."""

    paths: tuple[str, ...]
    fix: bool
    fix_only: bool
    unsafe_fixes: bool | None
    diff: bool
    exit_non_zero_on_fix: bool
    overrides: RuleOverrides
    fail_on: str | None
    ignore_noqa: bool
    add_noqa: bool
    baseline: Path | None
    write_baseline: Path | None
    output_format: str | None
    output_file: Path | None
    color: str
    exit_zero: bool
    quiet: bool
    verbose: bool
    watch: bool
    statistics: bool
    config: Path | None
    isolated: bool
    exclude: tuple[str, ...] | None
    extend_exclude: tuple[str, ...] | None
    force_exclude: bool
    stdin_filename: str | None
    show_files: bool
    show_settings: bool
    jobs: int | None
    cache_dir: str | None
    no_cache: bool

    def apply_to(self, settings: Settings) -> Settings:
        """The settings overridden by the options beside ``overrides``."""
        names = ("unsafe_fixes", "output_format", "exclude", "fail_on")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return settings._replace(extend_exclude=(*settings.extend_exclude, *(self.extend_exclude or ())), **given)


DELETED = "the working directory has been deleted; change to another one first"


def working_directory_is_deleted() -> bool:
    """Whether the working directory has been deleted, or cannot be read any more: every path needs it."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False
