"""Adopting the tool in existing code: ``# noqa`` comments for all findings, or a baseline file that lists them.

``--add-noqa`` writes the comments as text edits; ``--baseline`` and ``--write-baseline`` read and write the file.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.config.discovery import GivenFile, Plan
from torchrepro_lint.engine.checker import SYNTAX_ERROR, UNUSED_SUPPRESSION
from torchrepro_lint.engine.diagnostic import (
    Baseline,
    Diagnostic,
    RunOutcome,
    compare_with_baseline,
    load_baseline,
    save_baseline,
)
from torchrepro_lint.engine.writing import FileChange, write_all
from torchrepro_lint.interfaces.cli.options import Arguments
from torchrepro_lint.interfaces.report import summary
from torchrepro_lint.source.decoding import SourceProblem, decode, with_edits
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import is_notebook, read_program
from torchrepro_lint.source.suppressions import joined_rows, noqa_edit


def read_baseline(arguments: Arguments, piped: bool) -> Baseline | None:
    """The baseline to compare with, if any; raises ``UsageError`` for options that exclude each other."""
    fixing = arguments.fix or arguments.fix_only or arguments.diff
    if arguments.add_noqa and (fixing or piped):
        raise UsageError("--add-noqa cannot be combined with --fix, --fix-only, --diff or standard input")
    if arguments.write_baseline and fixing:
        raise UsageError("--write-baseline cannot be combined with --fix, --fix-only or --diff: fix first")
    if arguments.baseline is None or arguments.write_baseline:
        return None
    return load_baseline(arguments.baseline)


def new_findings(known: Baseline, planned: Plan, outcome: RunOutcome) -> RunOutcome:
    """The findings that are not in a baseline, with a note on entries of it that are no longer found."""
    linted = (given.path for tree in planned.trees for _, given in tree.given)
    compared = compare_with_baseline(outcome.diagnostics, known, linted)
    stale = [f"{each.path}: {each.code} {each.line}" for each in compared.stale]
    number = sum(compared.stale.values())
    gone = f"{summary.counted(number, 'finding')} that no longer exist{'s' * (number == 1)}"
    told = f"{known.file} lists {gone}; --write-baseline would leave out: {'; '.join(stale)}"
    notes = (told,) if stale else ()
    return outcome._replace(diagnostics=compared.new, notes=(*outcome.notes, *notes))


def accept_findings(arguments: Arguments, outcome: RunOutcome) -> tuple[str, list[str]]:
    """Suppress all findings by comments, or write them to a baseline. Returns a summary line, and errors."""
    errors = list(outcome.errors)
    if arguments.add_noqa:
        changes, unread = noqa_changes(outcome.diagnostics)
        written = write_all(changes)
        errors += (*unread, *written.errors)
        done = [change for change in changes if change not in written.left]
        count = sum(len(change.settled) for change in done)
        told = f"Suppressed {summary.counted(count, 'finding')} in {summary.counted(len(done), 'file')}"
    if arguments.write_baseline:
        save_baseline(outcome.diagnostics, arguments.write_baseline)
        told = f"Wrote {summary.counted(len(outcome.diagnostics), 'finding')} to {arguments.write_baseline}"
    return told, errors


def noqa_changes(diagnostics: Iterable[Diagnostic]) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """The file changes that add ``# noqa`` comments, and an error for each file that can no longer be read.

    Syntax errors get no comment, and unused comments no further one.
    """
    by_file: dict[str, list[Diagnostic]] = {}
    for one in diagnostics:
        if one.code not in (SYNTAX_ERROR, UNUSED_SUPPRESSION):
            by_file.setdefault(one.filename, []).append(one)
    told = [_noqa_change(found) for _, found in sorted(by_file.items())]
    changes = tuple(each for each in told if isinstance(each, FileChange))
    return changes, tuple(each for each in told if isinstance(each, str))


def _noqa_change(found: list[Diagnostic]) -> FileChange | str | None:
    """The change of one file; None if it has changed since the run, an error if it cannot be read."""
    first = found[0]
    try:
        source = decode(read_program(first.filename), is_notebook(first.filename))
    except OSError as error:
        return f"{first.display}: cannot be read: {error.strerror or error}"
    if isinstance(source, SourceProblem) or source.program != first.lines.text:
        return None
    joined = joined_rows(first.lines)
    codes: dict[int, set[str]] = {}
    for one in found:
        last = joined[first.lines.position(one.span.start).row][1]
        codes.setdefault(last, set()).add(one.code)
    edits = [noqa_edit(first.lines, row, sorted(codes[row])) for row in sorted(codes)]
    given = GivenFile(first.display, first.filename)
    return FileChange(given, source, with_edits(source, edits), settled=tuple(one.code for one in found))
