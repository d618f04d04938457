"""The baseline: findings that were known when a project began to use the tool, so that only new ones are reported."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.engine.writing import write_atomically
from torchrepro_lint.source.errors import OUT_OF_MEMORY, UsageError
from torchrepro_lint.source.files import read_named_file
from torchrepro_lint.source.text import Lines, Span
from torchrepro_lint.syntax.nodes import Record

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding

_VERSION = 1


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


def read(file: Path) -> Baseline:
    """Read what ``write`` wrote. Raises ``UsageError`` where that is not possible."""
    return Baseline(file, _read(file))


def compare(diagnostics: Iterable[Diagnostic], baseline: Baseline, given: Iterable[str]) -> BaselineComparison:
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


def write(diagnostics: Iterable[Diagnostic], file: Path) -> None:
    """Write all findings to a baseline file. Raises ``UsageError`` where that is not possible."""
    counts = Counter(_entry_of(one, file) for one in diagnostics)
    rows = [
        {"path": known.path, "code": known.code, "line": known.line, "count": count}
        for known, count in sorted(counts.items())
    ]
    text = json.dumps({"version": _VERSION, "findings": rows}, indent=2) + "\n"
    try:
        write_atomically(text.encode("ascii"), file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


def _read(file: Path) -> Counter[BaselineEntry]:
    try:
        data = json.loads(read_named_file(file).decode("utf-8"))
        if data["version"] != _VERSION:
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
