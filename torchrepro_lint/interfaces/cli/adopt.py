"""Beginning to use the tool in code that has findings: comments that suppress them, or a file that knows them.

Comments ``# noqa`` for the findings that there are, written into the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.config.discovery import Given, Plan
from torchrepro_lint.engine.checker import SYNTAX_ERROR
from torchrepro_lint.engine.diagnostic import Diagnostic, Outcome
from torchrepro_lint.engine.writing import Change, write_all
from torchrepro_lint.interfaces.cli.arguments import Arguments
from torchrepro_lint.interfaces.report import summary
from torchrepro_lint.source.decoding import Problem, decode, edited, is_notebook
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import program
from torchrepro_lint.source.suppressions import joined_rows
from torchrepro_lint.source.text import Edit, Lines, Span

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


_CODES = re.compile(r"# noqa:\s?(?:[A-Z]+[0-9]+[,\s]*)+", re.IGNORECASE)


def annotated(diagnostics: Iterable[Diagnostic]) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """The changes that suppress findings, line by line, and an error for each file that can no longer be read; what cannot
    be parsed cannot be annotated.
    """
    by_file: dict[str, list[Diagnostic]] = {}
    for one in diagnostics:
        if one.code != SYNTAX_ERROR:
            by_file.setdefault(one.filename, []).append(one)
    told = [_change(found) for _, found in sorted(by_file.items())]
    changes = tuple(each for each in told if isinstance(each, Change))
    return changes, tuple(each for each in told if isinstance(each, str))


def _change(found: list[Diagnostic]) -> Change | str | None:
    """The change of a file, if it is still the one in which these were found; or why it cannot be read."""
    first = found[0]
    try:
        source = decode(program(first.filename), is_notebook(first.filename))
    except OSError as error:
        return f"{first.display}: cannot be read: {error.strerror or error}"
    if isinstance(source, Problem) or source.program != first.lines.text:
        return None
    joined = joined_rows(first.lines)
    codes: dict[int, set[str]] = {}
    for one in found:
        # flake8 looks for the comment at the end of the line that goes on over strings and backslashes.
        last = joined[first.lines.position(one.span.start).row][1]
        codes.setdefault(last, set()).add(one.code)
    edits = [_edit(first.lines, row, sorted(codes[row])) for row in sorted(codes)]
    given = Given(first.display, first.filename)
    return Change(given, source, edited(source, edits), settled=tuple(one.code for one in found))


def _edit(lines: Lines, row: int, codes: list[str]) -> Edit:
    """Add codes to a comment that lists some, else write one at the end of the row."""
    line, start = lines.line(row), lines.offset(row)
    listed = _CODES.search(line)
    if listed is not None:
        end = start + len(line[: listed.end()].rstrip(", \t"))
        return Edit(Span(end, end), f",{','.join(codes)}")
    end = start + len(line.rstrip())
    return Edit(Span(end, start + len(line)), f"  # noqa: {','.join(codes)}")
