"""``torchrepro-lint check``: arguments to a run, a run to output and an exit status.

``--watch``: the same run again whenever a file of the projects changes.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from torchrepro_lint.config.discovery import Given, Plan, plan
from torchrepro_lint.config.roots import Options
from torchrepro_lint.config.settings import Settings, table, version
from torchrepro_lint.engine.diagnostic import Outcome
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import Means
from torchrepro_lint.engine.store.run_store import keep, recall, record_of
from torchrepro_lint.engine.writing import Change, write_all
from torchrepro_lint.interfaces.cli import adopt, terminal
from torchrepro_lint.interfaces.cli.arguments import Arguments
from torchrepro_lint.interfaces.report import diff, show, statistics, summary
from torchrepro_lint.interfaces.report.formats import renderer
from torchrepro_lint.interfaces.report.view import View, base
from torchrepro_lint.source.errors import UsageError, shown_name

if TYPE_CHECKING:
    from torchrepro_lint.engine.baseline import Baseline


STDIN = "-"


def run_check(arguments: Arguments) -> int:
    """Do what was asked for, once or again and again; the exit status. Raises ``UsageError``."""
    if not arguments.watch:
        return _run(arguments)
    if _piped(arguments):
        raise UsageError("--watch cannot be combined with standard input")

    return watch(lambda: _run(arguments), lambda: (tree.root.top for tree in _plan(arguments).trees))


def _run(arguments: Arguments) -> int:
    planned = _plan(arguments)
    if arguments.show_files:
        terminal.out(show.files(planned))
        return _complain(planned.errors)
    if arguments.show_settings:
        from torchrepro_lint.engine.run import prepare

        terminal.out("\n".join(show.settings(*prepare(tree, True)) for tree in planned.trees))
        return _complain(planned.errors)
    baseline = adopt.known(arguments, _piped(arguments))
    outcome = _outcome(arguments, planned, baseline)
    if arguments.write_baseline:
        return _adopt(arguments, outcome)
    if baseline:
        outcome = adopt.new(baseline, planned, outcome)
    if arguments.add_noqa:
        return _adopt(arguments, outcome)
    if arguments.diff:
        return _diff(outcome) or _complain(outcome.errors)
    return _finish(arguments, planned, outcome)


def _adopt(arguments: Arguments, outcome: Outcome) -> int:
    told, errors = adopt.adopt(arguments, outcome)
    if not arguments.quiet:
        terminal.note(told)
    return _complain(errors)


def _outcome(arguments: Arguments, planned: Plan, baseline: Baseline | None) -> Outcome:
    """What a run finds, from its record where nothing has changed since; what is known is not fixed."""
    means = Means(arguments.jobs or cores(), not arguments.no_cache, arguments.cache_dir)
    honour_comments = not arguments.ignore_noqa
    changing = arguments.fix or arguments.fix_only or arguments.diff
    record = None if changing else record_of(planned, honour_comments, means)
    if record and (known := recall(record)) is not None:
        return known
    from torchrepro_lint.engine.run import run_and_see  # and with it all rules, which a recalled run does without

    outcome, seen = run_and_see(planned, changing, honour_comments, terminal.progress, means, baseline)
    if record:
        keep(record, seen, outcome)
    return outcome


def _plan(arguments: Arguments) -> Plan:
    if arguments.torch_version is not None:
        try:
            version(arguments.torch_version)
        except ValueError as error:
            raise UsageError(f"--torch-version: {error}") from None
    if arguments.config is not None and arguments.isolated:
        raise UsageError("--config and --isolated exclude each other: leave one out")
    options = Options(arguments.config, arguments.isolated, arguments.over)
    if not _piped(arguments):
        return plan(arguments.paths or (".",), options, arguments.force_exclude)
    name = arguments.stdin_filename or "stdin"
    return plan(
        (), options, arguments.force_exclude, Given(shown_name(name), os.path.abspath(name), sys.stdin.buffer.read())
    )


def _piped(arguments: Arguments) -> bool:
    """Whether standard input is what to lint: a name for it says so, too."""
    named = arguments.stdin_filename is not None
    if arguments.paths and STDIN not in arguments.paths and named:
        raise UsageError(
            "--stdin-filename names standard input and cannot be combined with paths; leave them out, or give -"
        )
    if len(arguments.paths) > 1 and STDIN in arguments.paths:
        raise UsageError("- (standard input) cannot be combined with other paths")
    return STDIN in arguments.paths or named


def _finish(arguments: Arguments, planned: Plan, outcome: Outcome) -> int:
    """Write the fixed files, then the report and the summary."""
    piped = _piped(arguments) and (arguments.fix or arguments.fix_only)
    errors = list(outcome.errors)
    if piped:
        _pass_on(planned, outcome)
    else:
        fixing = arguments.fix or arguments.fix_only
        linted = (given.path for tree in planned.trees for _, given in tree.given)
        written = write_all(outcome.changes, linted if fixing else ())
        errors += written.errors
        outcome = outcome._replace(settled=_without(outcome.settled, written.left))
    settings = planned.trees[0].root.settings if planned.trees else arguments.over(Settings())
    if not arguments.fix_only:
        _deliver(_report(arguments, outcome, settings), arguments.output_file, piped)
    if not arguments.quiet:
        _summarise(arguments, outcome, settings)
    left = bool(outcome.diagnostics) and not arguments.fix_only
    left = left or (arguments.exit_non_zero_on_fix and bool(outcome.settled))
    return _complain(errors) or int(left and not arguments.exit_zero)


def _without(settled: Iterable[str], left: Iterable[Change]) -> tuple[str, ...]:
    """The codes of what is settled but for changes that were not made."""
    lost = Counter(code for change in left for code in change.settled)
    kept = Counter(settled) - lost
    return tuple(kept.elements())


def _summarise(arguments: Arguments, outcome: Outcome, settings: Settings) -> None:
    for note in outcome.notes:
        terminal.note(note)
    if outcome.settled:
        terminal.note(f"Fixed {summary.by_rule(outcome.settled)}")
    if not arguments.fix_only:
        fixed = len(outcome.settled)
        terminal.note(summary.render(outcome.diagnostics, outcome.files, fixed, settings.unsafe_fixes))


def _report(arguments: Arguments, outcome: Outcome, settings: Settings) -> str:
    if arguments.statistics:
        counts = statistics.count(outcome.diagnostics, settings.unsafe_fixes)
        return statistics.render_json(counts) if "json" in settings.output_format else statistics.render(counts)
    colour = arguments.output_file is None and terminal.coloured()
    view = View(colour, arguments.verbose, base(settings.output_format, os.environ))
    return renderer(settings.output_format)(outcome.diagnostics, view)


def _pass_on(planned: Plan, outcome: Outcome) -> None:
    """Standard input to standard output, fixed."""
    for change in outcome.changes:
        terminal.pass_on(change.encoded(planned.stdin or b""))
    if not outcome.changes:
        terminal.pass_on(planned.stdin or b"")


def _deliver(report: str, file: Path | None, piped: bool) -> None:
    """To the file that was asked for; else to standard output, unless a fixed text has that for itself."""
    if file is not None:
        terminal.save(report, file)
    elif not piped:
        terminal.out(report)
    elif report:
        terminal.aside(report)


def _diff(outcome: Outcome) -> int:
    for change in outcome.changes:
        terminal.out(diff.render(change, visible=sys.stdout.isatty()))
    if outcome.settled:
        terminal.note(f"Would fix {summary.by_rule(outcome.settled)}")
    return int(bool(outcome.settled))


def _complain(errors: tuple[str, ...] | list[str]) -> int:
    for error in errors:
        terminal.note(f"torchrepro-lint: {error}")
    return 2 if errors else 0


# Python, settings, and what says which torch will run.
_SUFFIXES = (".py", ".ipynb", ".toml", ".txt", ".lock", ".yml", ".yaml", ".cfg", ".in")
_CLEAR = "\033[2J\033[H"
Batches = Iterable[object]


def watch(
    run: Callable[[], int], folders: Callable[[], Iterable[str]], batches: Callable[..., Batches] | None = None
) -> int:
    """Run, then again after each batch of changes below the folders, until interrupted; the status of the last run.

    A mistake in the settings is told and waited out. Raises ``UsageError`` where watchfiles is not installed.
    """
    changes = batches or _watchfiles()
    status = _once(run)
    try:
        for _ in changes(*_folders(folders), watch_filter=_concerns, raise_interrupt=False):
            table.cache_clear()
            if sys.stdout.isatty():
                terminal.out(_CLEAR)
            status = _once(run)
    except KeyboardInterrupt:
        pass
    return status


def _once(run: Callable[[], int]) -> int:
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


def _concerns(_change: object, path: str) -> bool:
    """Whether a changed file may change the report: no hidden folder, nothing that a tool wrote for itself."""
    hidden = any(part.startswith(".") and part not in (".", "..") for part in os.path.relpath(path).split(os.sep))
    return path.endswith(_SUFFIXES) and not hidden


def _watchfiles() -> Callable[..., Batches]:
    try:
        from watchfiles import watch as batches
    except ImportError:
        raise UsageError("--watch needs watchfiles; install torchrepro-lint[watch]") from None
    return batches
