"""The command ``check``: from arguments to a run, and from its outcome to output and an exit status.

``--watch`` repeats the run after each change of a file of the projects.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from torchrepro_lint.config.discovery import GivenFile, Plan
from torchrepro_lint.config.roots import config_options
from torchrepro_lint.config.settings import Settings, is_at_least
from torchrepro_lint.engine.diagnostic import Baseline, RunOutcome
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.engine.process_pool import cores
from torchrepro_lint.engine.read_project import ReadOptions
from torchrepro_lint.engine.store.run_store import load_outcome, run_record, save_outcome
from torchrepro_lint.engine.writing import FileChange, write_all
from torchrepro_lint.interfaces.cli import terminal
from torchrepro_lint.interfaces.cli.options import Arguments
from torchrepro_lint.interfaces.cli.watch import watch, watched
from torchrepro_lint.interfaces.report import summary
from torchrepro_lint.interfaces.report.formats import renderer
from torchrepro_lint.interfaces.report.view import View, base_directory, with_shown_paths, with_shown_places
from torchrepro_lint.source.errors import UsageError, escaped_path

if TYPE_CHECKING:
    from torchrepro_lint.engine.session import RepeatedRun


STDIN = "-"


def run_check(arguments: Arguments) -> int:
    """Run once, or with ``--watch`` after each change; the exit status. Raises ``UsageError``."""
    if not arguments.watch:
        try:
            return _run(arguments)
        finally:
            terminal.clear_status()
    if _reads_stdin(arguments):
        raise UsageError("--watch cannot be combined with standard input")

    repeated = _Repeated(arguments)
    return watch(
        lambda: _run(arguments, repeated.outcome),
        lambda: watched((repeated.planned or _plan(arguments)).trees),
        idle=repeated.prepare,
        written=arguments.output_file,
    )


class _Repeated:
    """The runs of ``--watch``: the first one as any other; the next ones are worked out in memory, from what has changed."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        # The plan of the last run.
        self.planned: Plan | None = None
        self._known: RepeatedRun | None = None
        self._is_first = True
        self._is_settled = True

    def outcome(self, planned: Plan, baseline: Baseline | None) -> RunOutcome:
        """The outcome of the next run."""
        self.planned = planned
        if self._is_first or _changes_files(self._arguments):
            self._is_first = False
            return _outcome(self._arguments, planned, baseline)
        self._is_settled = False
        return self._run().outcome(planned)

    def prepare(self) -> None:
        """Prepare for the next change."""
        if _changes_files(self._arguments):
            return
        if self._known is None:
            self._run().outcome(_plan(self._arguments))
        elif not self._is_settled:
            self._known.settle()
            self._is_settled = True

    def _run(self) -> RepeatedRun:
        if self._known is None:
            from torchrepro_lint.engine.session import RepeatedRun  # imports all rules

            gc.disable()  # see ``RepeatedRun.settle``
            means = ReadOptions(0, not self._arguments.no_cache, self._arguments.cache_dir)
            self._known = RepeatedRun(not self._arguments.ignore_noqa, means)
        return self._known


def _changes_files(arguments: Arguments) -> bool:
    return arguments.fix or arguments.fix_only or arguments.diff


def _run(arguments: Arguments, run: Callable[[Plan, Baseline | None], RunOutcome] | None = None) -> int:
    planned = _plan(arguments)
    for note in () if arguments.quiet else planned.notes:
        terminal.note(note)
    if arguments.show_files:
        from torchrepro_lint.interfaces.report import show

        terminal.out(show.files(planned))
        for note in () if arguments.quiet else show.roots(planned):
            terminal.note(note)
        return terminal.errors(planned.errors)
    if arguments.show_settings:
        from torchrepro_lint.engine.run import prepare
        from torchrepro_lint.interfaces.report import show

        terminal.out("\n".join(show.settings(*prepare(tree, True)) for tree in planned.trees))
        return terminal.errors(planned.errors)
    baseline = _baseline(arguments)
    outcome = run(planned, baseline) if run else _outcome(arguments, planned, baseline)
    if arguments.write_baseline:
        return _adopt(arguments, outcome)
    found = len(outcome.diagnostics)
    if baseline:
        from torchrepro_lint.interfaces.cli import adopt

        outcome = adopt.new_findings(baseline, planned, outcome)
    if arguments.add_noqa:
        return _adopt(arguments, outcome)
    if arguments.diff:
        return _diff(arguments, outcome)
    return _finish(arguments, planned, outcome, found - len(outcome.diagnostics))


def _baseline(arguments: Arguments) -> Baseline | None:
    if arguments.baseline is None and not arguments.write_baseline and not arguments.add_noqa:
        return None
    from torchrepro_lint.interfaces.cli import adopt  # few runs have a baseline

    return adopt.read_baseline(arguments, _reads_stdin(arguments))


def _adopt(arguments: Arguments, outcome: RunOutcome) -> int:
    from torchrepro_lint.interfaces.cli import adopt

    told, errors = adopt.accept_findings(arguments, outcome)
    if not arguments.quiet:
        terminal.note(told)
    return terminal.errors(errors)


def _outcome(arguments: Arguments, planned: Plan, baseline: Baseline | None) -> RunOutcome:
    """The outcome of a run, recalled from the cache where nothing has changed; findings of the baseline are not fixed."""
    means = ReadOptions(arguments.jobs or cores(), not arguments.no_cache, arguments.cache_dir)
    honour_comments = not arguments.ignore_noqa
    changing = _changes_files(arguments)
    record = None if changing else run_record(planned, honour_comments, means)
    if record and (known := load_outcome(record)) is not None:
        return known
    from torchrepro_lint.engine.run import run_with_states  # imports all rules, which a recalled run does not need

    outcome, seen = run_with_states(planned, changing, honour_comments, terminal.progress, means, baseline)
    if record:
        save_outcome(record, seen, outcome)
    return outcome


def _plan(arguments: Arguments) -> Plan:
    options = config_options(arguments.overrides, arguments.config, arguments.isolated, arguments.apply_to)
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
        raise UsageError("--stdin-filename is for standard input: leave out the paths, or write - instead of them")
    if len(arguments.paths) > 1 and STDIN in arguments.paths:
        raise UsageError("- (standard input) cannot be combined with other paths")
    return STDIN in arguments.paths or named


def _finish(arguments: Arguments, planned: Plan, outcome: RunOutcome, known: int) -> int:
    """Write the fixed files, then the report and the summary, which says how many more findings the baseline lists
    (``known``); the exit status.
    """
    piped = _reads_stdin(arguments) and (arguments.fix or arguments.fix_only)
    errors, unwritten = list(outcome.errors), 0
    if piped:
        _echo_stdin(planned, outcome)
    else:
        fixing = arguments.fix or arguments.fix_only
        linted = (given.path for tree in planned.trees for _, given in tree.given)
        written = write_all(outcome.changes, linted if fixing else ())
        errors += written.errors
        unwritten = sum(len(change.settled) for change in written.left)
        outcome = outcome._replace(settled=_applied_codes(outcome.settled, written.left))
    settings = planned.trees[0].root.settings if planned.trees else arguments.apply_to(Settings())
    if not arguments.fix_only:
        _write_report(_report(arguments, outcome, settings, piped), arguments.output_file, piped)
    if not arguments.quiet:
        _summarise(arguments, outcome, settings, unwritten, known)
    fails = _fails(planned, outcome) and not arguments.fix_only
    fails = fails or (arguments.exit_non_zero_on_fix and bool(outcome.settled))
    return terminal.errors(errors) or int(fails and not arguments.exit_zero)


def _fails(planned: Plan, outcome: RunOutcome) -> bool:
    """Whether a finding is so grave that the settings of its project make the run fail."""
    floors = {given.path: tree.root.settings.fail_on for tree in planned.trees for _, given in tree.given}
    return any(is_at_least(one.severity, floors[one.filename]) for one in outcome.diagnostics)


def _applied_codes(settled: Iterable[str], left: Iterable[FileChange]) -> tuple[str, ...]:
    """The codes of fixed findings, without those of changes that could not be written."""
    lost = Counter(code for change in left for code in change.settled)
    kept = Counter(settled) - lost
    return tuple(kept.elements())


def _summarise(arguments: Arguments, outcome: RunOutcome, settings: Settings, unwritten: int, known: int) -> None:
    for note in outcome.notes:
        terminal.note(note)
    if outcome.settled:
        terminal.note(f"Fixed {summary.by_rule(outcome.settled)}")
    if not arguments.fix_only and (outcome.files or not outcome.errors):
        fixed = len(outcome.settled)
        unsafe = settings.unsafe_fixes
        gaps = summary.unfollowed(outcome.programs, len(outcome.unfollowed))
        terminal.note(summary.render(outcome.diagnostics, outcome.files, fixed, unsafe, unwritten, known, gaps))


def _report(arguments: Arguments, outcome: RunOutcome, settings: Settings, piped: bool) -> str:
    """The text of the report. On a terminal it is ``full`` unless another format is asked for."""
    if arguments.statistics:
        from torchrepro_lint.interfaces.report import statistics

        counts = statistics.count(outcome.diagnostics, settings.unsafe_fixes)
        as_json = "json" in (settings.output_format or "")
        return statistics.render_json(counts) if as_json else statistics.render(counts)
    stream = sys.stderr if piped else sys.stdout
    to_terminal = arguments.output_file is None and terminal.is_terminal(stream)
    name = settings.output_format or ("full" if to_terminal else "concise")
    colour = arguments.output_file is None and terminal.uses_colour(arguments.color, stream)
    base = base_directory(name, os.environ)
    unfollowed = with_shown_places(outcome.unfollowed, name, base)
    width = terminal.width() if to_terminal else 0
    view = View(colour, arguments.verbose, base, width, outcome.programs, unfollowed)
    return renderer(name)(with_shown_paths(outcome.diagnostics, name, base), view)


def _echo_stdin(planned: Plan, outcome: RunOutcome) -> None:
    """Write standard input, fixed, to standard output."""
    for change in outcome.changes:
        terminal.out_bytes(change.encoded(planned.stdin or b""))
    if not outcome.changes:
        terminal.out_bytes(planned.stdin or b"")


def _write_report(report: str, file: Path | None, piped: bool) -> None:
    """Write the report to a file, else to standard output; to standard error where a fixed text goes to standard output."""
    if file is not None or not piped:
        terminal.deliver(report, file)
    elif report:
        terminal.err(report)


def _diff(arguments: Arguments, outcome: RunOutcome) -> int:
    """Print what fixes would change; the exit status is 1 if they would change anything."""
    from torchrepro_lint.interfaces.report import diff

    for change in outcome.changes:
        terminal.out(diff.render(change, terminal.is_terminal(), terminal.uses_colour(arguments.color)))
    if not arguments.quiet:
        for note in outcome.notes:
            terminal.note(note)
        left = sum(one.fix is not None and not one.fix.safe for one in outcome.diagnostics)
        if outcome.settled:
            more = f"; {left} more with --unsafe-fixes" if left else ""
            terminal.note(f"Would fix {summary.by_rule(outcome.settled)}{more}")
        else:
            terminal.note(f"No safe fixes; {left} with --unsafe-fixes" if left else "Nothing to fix")
    return terminal.errors(outcome.errors) or int(bool(outcome.settled) and not arguments.exit_zero)
