"""The command ``check``: from arguments to a run, and from its outcome to output and an exit status.

``--watch`` repeats the run after each change of a file of the projects.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from torchrepro_lint.config.discovery import GivenFile, Plan, plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Settings, parse_torch_version, settings_table
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import ReadOptions
from torchrepro_lint.engine.store.run_store import load_outcome, run_record, save_outcome
from torchrepro_lint.engine.writing import FileChange, write_all
from torchrepro_lint.interfaces.cli import adopt, terminal
from torchrepro_lint.interfaces.cli.arguments import Arguments
from torchrepro_lint.interfaces.report import diff, show, statistics, summary
from torchrepro_lint.interfaces.report.formats import renderer
from torchrepro_lint.interfaces.report.view import View, base_directory, with_shown_paths
from torchrepro_lint.source.errors import UsageError, escaped_path

if TYPE_CHECKING:
    from torchrepro_lint.engine.baseline import Baseline


STDIN = "-"


def run_check(arguments: Arguments) -> int:
    """Run once, or with ``--watch`` after each change; the exit status. Raises ``UsageError``."""
    if not arguments.watch:
        return _run(arguments)
    if _reads_stdin(arguments):
        raise UsageError("--watch cannot be combined with standard input")

    return watch(lambda: _run(arguments), lambda: (tree.root.top for tree in _plan(arguments).trees))


def _run(arguments: Arguments) -> int:
    planned = _plan(arguments)
    if arguments.show_files:
        terminal.out(show.files(planned))
        return _print_errors(planned.errors)
    if arguments.show_settings:
        from torchrepro_lint.engine.run import prepare

        terminal.out("\n".join(show.settings(*prepare(tree, True)) for tree in planned.trees))
        return _print_errors(planned.errors)
    baseline = adopt.read_baseline(arguments, _reads_stdin(arguments))
    outcome = _outcome(arguments, planned, baseline)
    if arguments.write_baseline:
        return _adopt(arguments, outcome)
    if baseline:
        outcome = adopt.new_findings(baseline, planned, outcome)
    if arguments.add_noqa:
        return _adopt(arguments, outcome)
    if arguments.diff:
        return _diff(outcome) or _print_errors(outcome.errors)
    return _finish(arguments, planned, outcome)


def _adopt(arguments: Arguments, outcome: RunOutcome) -> int:
    told, errors = adopt.accept_findings(arguments, outcome)
    if not arguments.quiet:
        terminal.note(told)
    return _print_errors(errors)


def _outcome(arguments: Arguments, planned: Plan, baseline: Baseline | None) -> RunOutcome:
    """The outcome of a run, recalled from the cache where nothing has changed; findings of the baseline are not fixed."""
    means = ReadOptions(arguments.jobs or cores(), not arguments.no_cache, arguments.cache_dir)
    honour_comments = not arguments.ignore_noqa
    changing = arguments.fix or arguments.fix_only or arguments.diff
    record = None if changing else run_record(planned, honour_comments, means)
    if record and (known := load_outcome(record)) is not None:
        return known
    from torchrepro_lint.engine.run import run_with_states  # imports all rules, which a recalled run does not need

    outcome, seen = run_with_states(planned, changing, honour_comments, terminal.progress, means, baseline)
    if record:
        save_outcome(record, seen, outcome)
    return outcome


def _plan(arguments: Arguments) -> Plan:
    if arguments.torch_version is not None:
        try:
            parse_torch_version(arguments.torch_version)
        except ValueError as error:
            raise UsageError(f"--torch-version: {error}") from None
    if arguments.config is not None and arguments.isolated:
        raise UsageError("--config and --isolated exclude each other: leave one out")
    options = ConfigOptions(arguments.config, arguments.isolated, arguments.apply_to)
    if not _reads_stdin(arguments):
        return plan(arguments.paths or (".",), options, arguments.force_exclude)
    name = arguments.stdin_filename or "stdin"
    return plan(
        (),
        options,
        arguments.force_exclude,
        GivenFile(escaped_path(name), os.path.abspath(name), sys.stdin.buffer.read()),
    )


def _reads_stdin(arguments: Arguments) -> bool:
    """Whether standard input is linted: for the path ``-``, and for ``--stdin-filename``."""
    named = arguments.stdin_filename is not None
    if arguments.paths and STDIN not in arguments.paths and named:
        raise UsageError(
            "--stdin-filename names standard input and cannot be combined with paths; leave them out, or give -"
        )
    if len(arguments.paths) > 1 and STDIN in arguments.paths:
        raise UsageError("- (standard input) cannot be combined with other paths")
    return STDIN in arguments.paths or named


def _finish(arguments: Arguments, planned: Plan, outcome: RunOutcome) -> int:
    """Write the fixed files, then the report and the summary; the exit status."""
    piped = _reads_stdin(arguments) and (arguments.fix or arguments.fix_only)
    errors = list(outcome.errors)
    if piped:
        _echo_stdin(planned, outcome)
    else:
        fixing = arguments.fix or arguments.fix_only
        linted = (given.path for tree in planned.trees for _, given in tree.given)
        written = write_all(outcome.changes, linted if fixing else ())
        errors += written.errors
        outcome = outcome._replace(settled=_applied_codes(outcome.settled, written.left))
    settings = planned.trees[0].root.settings if planned.trees else arguments.apply_to(Settings())
    if not arguments.fix_only:
        _write_report(_report(arguments, outcome, settings), arguments.output_file, piped)
    if not arguments.quiet:
        _summarise(arguments, outcome, settings)
    left = bool(outcome.diagnostics) and not arguments.fix_only
    left = left or (arguments.exit_non_zero_on_fix and bool(outcome.settled))
    return _print_errors(errors) or int(left and not arguments.exit_zero)


def _applied_codes(settled: Iterable[str], left: Iterable[FileChange]) -> tuple[str, ...]:
    """The codes of fixed findings, without those of changes that could not be written."""
    lost = Counter(code for change in left for code in change.settled)
    kept = Counter(settled) - lost
    return tuple(kept.elements())


def _summarise(arguments: Arguments, outcome: RunOutcome, settings: Settings) -> None:
    for note in outcome.notes:
        terminal.note(note)
    if outcome.settled:
        terminal.note(f"Fixed {summary.by_rule(outcome.settled)}")
    if not arguments.fix_only:
        fixed = len(outcome.settled)
        terminal.note(summary.render(outcome.diagnostics, outcome.files, fixed, settings.unsafe_fixes))


def _report(arguments: Arguments, outcome: RunOutcome, settings: Settings) -> str:
    if arguments.statistics:
        counts = statistics.count(outcome.diagnostics, settings.unsafe_fixes)
        return statistics.render_json(counts) if "json" in settings.output_format else statistics.render(counts)
    colour = arguments.output_file is None and terminal.uses_colour()
    view = View(colour, arguments.verbose, base_directory(settings.output_format, os.environ))
    shown = with_shown_paths(outcome.diagnostics, settings.output_format, view.base)
    return renderer(settings.output_format)(shown, view)


def _echo_stdin(planned: Plan, outcome: RunOutcome) -> None:
    """Write standard input, fixed, to standard output."""
    for change in outcome.changes:
        terminal.out_bytes(change.encoded(planned.stdin or b""))
    if not outcome.changes:
        terminal.out_bytes(planned.stdin or b"")


def _write_report(report: str, file: Path | None, piped: bool) -> None:
    """Write the report to a file, else to standard output; to standard error where a fixed text goes to standard output."""
    if file is not None:
        terminal.save(report, file)
    elif not piped:
        terminal.out(report)
    elif report:
        terminal.err(report)


def _diff(outcome: RunOutcome) -> int:
    for change in outcome.changes:
        terminal.out(diff.render(change, visible=sys.stdout.isatty()))
    if outcome.settled:
        terminal.note(f"Would fix {summary.by_rule(outcome.settled)}")
    return int(bool(outcome.settled))


def _print_errors(errors: tuple[str, ...] | list[str]) -> int:
    for error in errors:
        terminal.note(f"torchrepro-lint: {error}")
    return 2 if errors else 0


# Files of Python, of settings, and those that decide the target torch.
_SUFFIXES = (".py", ".ipynb", ".toml", ".txt", ".lock", ".yml", ".yaml", ".cfg", ".in")
_CLEAR = "\033[2J\033[H"
Batches = Iterable[object]


def watch(
    run: Callable[[], int], folders: Callable[[], Iterable[str]], batches: Callable[..., Batches] | None = None
) -> int:
    """Run, then again after each batch of changes below the folders, until interrupted; the status of the last run.

    A mistake in the settings is reported, and the next change awaited. Raises ``UsageError`` where watchfiles is not installed.
    """
    changes = batches or _watchfiles()
    status = _run_once(run)
    try:
        for _ in changes(*_folders(folders), watch_filter=_may_change_report, raise_interrupt=False):
            settings_table.cache_clear()
            if sys.stdout.isatty():
                terminal.out(_CLEAR)
            status = _run_once(run)
    except KeyboardInterrupt:
        pass
    return status


def _run_once(run: Callable[[], int]) -> int:
    try:
        status = run()
    except UsageError as error:
        terminal.note(f"torchrepro-lint: {error}")
        status = 2
    terminal.note("Watching for changes; end with Ctrl-C")
    return status


def _folders(folders: Callable[[], Iterable[str]]) -> list[str]:
    """The folders of the projects; the current one while their settings cannot be read."""
    try:
        return sorted(set(folders())) or [os.getcwd()]
    except UsageError:
        return [os.getcwd()]


def _may_change_report(_change: object, path: str) -> bool:
    """Whether a changed file may change the report: it has a relevant suffix and lies in no hidden folder."""
    hidden = any(part.startswith(".") and part not in (".", "..") for part in os.path.relpath(path).split(os.sep))
    return path.endswith(_SUFFIXES) and not hidden


def _watchfiles() -> Callable[..., Batches]:
    try:
        from watchfiles import watch as batches
    except ImportError:
        raise UsageError("--watch needs watchfiles; install torchrepro-lint[watch]") from None
    return batches
