"""Beginning to use the tool in code that has findings: comments that suppress them, or a file that knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.arguments import Arguments
from torchrepro_lint.config.discovery import Plan
from torchrepro_lint.engine.diagnostic import Outcome
from torchrepro_lint.engine.writing import write_all
from torchrepro_lint.report import summary
from torchrepro_lint.source.errors import UsageError

if TYPE_CHECKING:
    from torchrepro_lint.engine.baseline import Baseline


def known(arguments: Arguments, piped: bool) -> Baseline | None:
    """The findings that are known; raises ``UsageError`` where what is asked for makes no sense together."""
    fixing = arguments.fix or arguments.fix_only or arguments.diff
    if arguments.add_noqa and (fixing or piped):
        raise UsageError("--add-noqa cannot be combined with fixing or with standard input")
    if arguments.write_baseline and fixing:
        raise UsageError("--write-baseline cannot be combined with fixing: fix first")
    if arguments.baseline is None or arguments.write_baseline:
        return None
    from torchrepro_lint.engine import baseline

    return baseline.read(arguments.baseline)


def new(known: Baseline, planned: Plan, outcome: Outcome) -> Outcome:
    """What a baseline does not know, with a note on what it knows and is no longer there."""
    from torchrepro_lint.engine import baseline

    linted = (given.path for tree in planned.trees for _, given in tree.given)
    compared = baseline.compare(outcome.diagnostics, known, linted)
    stale = [f"{each.path}: {each.code} {each.line}" for each in compared.stale]
    notes = (f"{known.file}: no longer found, write it anew: {'; '.join(stale)}",) if stale else ()
    return outcome._replace(diagnostics=compared.new, notes=(*outcome.notes, *notes))


def adopt(arguments: Arguments, outcome: Outcome) -> tuple[str, list[str]]:
    """Take what is found for given: in comments, or in a file. Returns what was done, and errors."""
    errors = list(outcome.errors)
    if arguments.add_noqa:
        from torchrepro_lint.annotate import annotated

        changes, unread = annotated(outcome.diagnostics)
        written = write_all(changes)
        errors += (*unread, *written.errors)
        done = [change for change in changes if change not in written.left]
        count = sum(len(change.settled) for change in done)
        told = f"Suppressed {summary.counted(count, 'finding')} in {summary.counted(len(done), 'file')}"
    if arguments.write_baseline:
        from torchrepro_lint.engine import baseline

        baseline.write(outcome.diagnostics, arguments.write_baseline)
        told = f"Wrote {summary.counted(len(outcome.diagnostics), 'finding')} to {arguments.write_baseline}"
    return told, errors
