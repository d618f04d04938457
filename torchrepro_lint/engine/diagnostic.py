"""Diagnostics: findings as they are reported, with their file and with rows and columns for offsets; and the outcome of
a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.config.discovery import GivenFile
from torchrepro_lint.engine.writing import FileChange
from torchrepro_lint.source.text import Fix, Lines, Position, Span
from torchrepro_lint.trace.call_paths import CallPathStep


class Diagnostic(NamedTuple):
    """A reported finding. ``display`` is the path as it is printed, ``filename`` the absolute one.

    The offsets of ``span`` and ``fix`` count in ``lines``; ``written`` are the same lines as the file has them, which differ
    in a notebook. ``others`` are the other files that the fix changes: the path in the fix, the absolute path, and the lines.
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
    steps: tuple[CallPathStep, ...] = ()
    others: tuple[tuple[str, str, Lines], ...] = ()
    span: Span = Span(0, 0)
    written: Lines = Lines("")


def diagnose(
    root: str,
    given: GivenFile,
    texts: tuple[Lines, Lines],
    finding: Finding,
    rule: Rule,
    others: Callable[[str], Lines],
) -> Diagnostic:
    """The diagnostic of a finding in the project at ``root``; the paths of its steps become absolute.

    ``texts`` are the lines of the file and as they are written; ``others`` gives the lines of another file.
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


def report_order(diagnostic: Diagnostic) -> tuple[str, int, Position, str, str]:
    """The sort key of every report: path, cell, row, column, code."""
    return diagnostic.display, diagnostic.start.cell, diagnostic.start, diagnostic.code, diagnostic.message


class RunOutcome(NamedTuple):
    """The outcome of a run; diagnostics are in ``report_order``.

    ``changes`` are the files that fixes changed, not yet written, ``settled`` the codes of the findings that they fix;
    ``notes`` are for the user to know, ``errors`` make the run fail.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    changes: tuple[FileChange, ...]
    settled: tuple[str, ...]
    notes: tuple[str, ...]
    errors: tuple[str, ...]
