"""Diagnostics: findings as they are reported, with their file and with rows and columns for offsets; the outcome of a run; and
the baseline, which lists the findings that were known when a project began to use the tool.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.engine.writing import FileChange, write_atomically
from torchrepro_lint.source.errors import OUT_OF_MEMORY, UsageError
from torchrepro_lint.source.files import read_named_file
from torchrepro_lint.source.text import Edit, Fix, Lines, Position, Span
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.trace.call_paths import CallPathStep

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding


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


# --- the baseline --------------------------------------------------------------------------------------------------------

# The form of a baseline file.
_BASELINE_VERSION = 1


class BaselineEntry(Record, frozen=True):
    """What identifies a known finding: its file (with slashes, from the baseline's folder), its rule, and its line, stripped."""

    path: str
    code: str
    line: str


class BaselineComparison(Record, frozen=True):
    """The new findings, and stale entries: those that no finding matches any more, with how often."""

    new: tuple[Diagnostic, ...]
    stale: dict[BaselineEntry, int]


class Baseline(Record, frozen=True):
    """The entries of a baseline file, each with how often."""

    file: Path
    known: Counter[BaselineEntry]

    def new(self, path: str, lines: Lines, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings of a file (absolute) that the baseline lacks, in their order."""
        left = Counter(self.known)
        return tuple(one for one in findings if not _consumes(left, _entry(self.file, path, one.code, lines, one.span)))


def load_baseline(file: Path) -> Baseline:
    """Read what ``save_baseline`` wrote. Raises ``UsageError`` where that is not possible."""
    return Baseline(file, _read(file))


def compare_with_baseline(
    diagnostics: Iterable[Diagnostic], baseline: Baseline, given: Iterable[str]
) -> BaselineComparison:
    """Remove the findings that a baseline knows; of equal ones as many as it has.

    ``given`` are the files (absolute) that were linted: entries of other files are stale only if the file is gone.
    """
    left = Counter(baseline.known)
    new = tuple(one for one in diagnostics if not _consumes(left, _entry_of(one, baseline.file)))
    folder = _folder(baseline.file)
    linted = {os.path.relpath(path, folder).replace(os.sep, "/") for path in given}
    stale = {
        known: count
        for known, count in sorted(left.items())
        if count and (known.path in linted or not os.path.lexists(os.path.join(folder, known.path)))
    }
    return BaselineComparison(new, stale)


def save_baseline(diagnostics: Iterable[Diagnostic], file: Path) -> None:
    """Write all findings to a baseline file. Raises ``UsageError`` where that is not possible."""
    counts = Counter(_entry_of(one, file) for one in diagnostics)
    rows = [
        {"path": known.path, "code": known.code, "line": known.line, "count": count}
        for known, count in sorted(counts.items())
    ]
    text = json.dumps({"version": _BASELINE_VERSION, "findings": rows}, indent=2) + "\n"
    try:
        write_atomically(text.encode("ascii"), file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


def _read(file: Path) -> Counter[BaselineEntry]:
    try:
        data = json.loads(read_named_file(file).decode("utf-8"))
        if data["version"] != _BASELINE_VERSION:
            raise UsageError(
                f"{file}: written by another version of torchrepro-lint; write it again with --write-baseline"
            )
        found: Counter[BaselineEntry] = Counter()
        for row in data["findings"]:
            found[BaselineEntry(str(row["path"]), str(row["code"]), str(row["line"]))] += int(row["count"])
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except MemoryError:
        raise UsageError(f"{file}: cannot be read: {OUT_OF_MEMORY}") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise UsageError(f"{file}: not a file that --write-baseline wrote") from None
    return found


def _consumes(left: Counter[BaselineEntry], known: BaselineEntry) -> bool:
    """Whether an entry is left; if so, one less is."""
    if not left[known]:
        return False
    left[known] -= 1
    return True


def _entry_of(one: Diagnostic, file: Path) -> BaselineEntry:
    return _entry(file, one.filename, one.code, one.lines, one.span)


def _entry(file: Path, path: str, code: str, lines: Lines, span: Span) -> BaselineEntry:
    line = lines.line(lines.position(span.start).row)
    return BaselineEntry(os.path.relpath(path, _folder(file)).replace(os.sep, "/"), code, line.strip())


def _folder(file: Path) -> str:
    return os.path.dirname(os.path.abspath(file))
