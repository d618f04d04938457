"""A finding as it is reported: with its file, and with rows and columns for offsets.

What a run found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.config.discovery import Given
from torchrepro_lint.engine.writing import Change
from torchrepro_lint.source.text import Fix, Lines, Position, Span
from torchrepro_lint.trace.contexts import Step


class Diagnostic(NamedTuple):
    """What every report is made from. ``display`` is the path as it is printed, ``filename`` the absolute one.

    ``lines`` are what the offsets of ``span`` and ``fix`` count in, ``written`` the same as the file has them; of a
    notebook they differ.
    ``others`` are the other files that the fix changes, by their path in it: the absolute one, and their lines.
    """

    display: str
    start: Position
    code: str
    message: str
    filename: str
    end: Position
    name: str
    severity: str
    fix: Fix | None
    lines: Lines
    steps: tuple[Step, ...] = ()
    others: tuple[tuple[str, str, Lines], ...] = ()
    span: Span = Span(0, 0)
    written: Lines = Lines("")


def diagnose(
    root: str, given: Given, texts: tuple[Lines, Lines], finding: Finding, rule: Rule, others: Callable[[str], Lines]
) -> Diagnostic:
    """Place a finding of the project at ``root``; the paths of its steps become absolute.

    ``texts`` are the lines of the file, and as they are written; ``others`` gives those of another file.
    """
    lines, written = texts
    elsewhere = finding.fix.elsewhere if finding.fix else ()
    start, end = lines.place(finding.span.start), lines.place(finding.span.end)
    return Diagnostic(
        given.display,
        start,
        finding.code,
        finding.message,
        given.path,
        end,
        rule.name,
        finding.severity or rule.severity,
        finding.fix,
        lines,
        tuple(step._replace(path=_absolute(root, step.path)) for step in finding.steps),
        tuple((path, _absolute(root, path), others(path)) for path, _ in elsewhere),
        finding.span,
        written,
    )


def _absolute(root: str, path: str) -> str:
    return os.path.join(root, *path.split("/"))


def order(diagnostic: Diagnostic) -> tuple[str, int, Position, str, str]:
    """The order of every report: path, cell, row, column, code."""
    return diagnostic.display, diagnostic.start.cell, diagnostic.start, diagnostic.code, diagnostic.message


class Outcome(NamedTuple):
    """What a run found, in the order of every report.

    ``changes`` are the files that fixes changed, not yet written, ``settled`` the codes of the findings that they settle;
    ``notes`` are for the user to know, ``errors`` make the run fail.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    changes: tuple[Change, ...]
    settled: tuple[str, ...]
    notes: tuple[str, ...]
    errors: tuple[str, ...]
