"""Diagnostics: findings as they are reported, with their file and with rows and columns for offsets; and the outcome of
a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.engine.writing import FileChange
from torchrepro_lint.source.text import Edit, Fix, Lines, Position, Span
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.trace.call_paths import CallPathStep


class FileEdits(Record, frozen=True):
    """The edits of a fix in one file: its path in the fix (empty: the file of the finding), its absolute path, and its lines."""

    path: str
    filename: str
    lines: Lines
    edits: tuple[Edit, ...]


class Diagnostic(Record, frozen=True):
    """A reported finding. ``display`` is the path as it is printed, ``filename`` the absolute one.

    The offsets of ``span`` and ``fix`` count in ``lines``; ``written`` are the same lines as the file has them, which differ
    in a notebook. ``others`` are the other files that the fix changes: the path in the fix, the absolute path, and the lines.
    ``unfixed`` says why there is no fix, empty where there is one. The references in all texts are relative to ``root``, the
    directory of the project.
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
    unfixed: str = ""
    root: str = ""

    def edits(self) -> Iterator[FileEdits]:
        """The edits of the fix in each file that it changes: first in that of the finding, then in the others."""
        if self.fix is not None:
            elsewhere = dict(self.fix.elsewhere)
            yield FileEdits("", self.filename, self.lines, tuple(sorted(self.fix.edits)))
            for path, filename, lines in self.others:
                yield FileEdits(path, filename, lines, tuple(sorted(elsewhere[path])))


class UnfollowedProgram(NamedTuple):
    """A program that leads into code that is not followed: its file and function (empty: the module), the line of the file that
    leads to the first such place, and what is known of that. Texts are as in ``Diagnostic``.
    """

    display: str
    filename: str
    function: str
    place: Position
    message: str
    root: str


class RunOutcome(NamedTuple):
    """The outcome of a run; diagnostics are in ``report_order``.

    ``changes`` are the files that fixes changed, not yet written, ``settled`` the codes of the findings that they fix;
    ``notes`` are for the user to know, ``errors`` make the run fail. ``programs`` start in the linted files; of
    ``unfollowed`` ones nothing is clean. An outcome that is not ``is_final`` may come out otherwise in another run on the same files.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    changes: tuple[FileChange, ...]
    settled: tuple[str, ...]
    notes: tuple[str, ...]
    errors: tuple[str, ...]
    programs: int = 0
    unfollowed: tuple[UnfollowedProgram, ...] = ()
    is_final: bool = True
