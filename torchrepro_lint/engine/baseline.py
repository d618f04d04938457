"""The findings that were known when a project began to use the tool, so that only new ones are reported."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.engine.writing import save
from torchrepro_lint.source.errors import NO_ROOM, UsageError
from torchrepro_lint.source.files import named
from torchrepro_lint.source.text import Lines, Span

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding

_VERSION = 1


class Known(NamedTuple):
    """A finding as it is known again: by its file (with slashes, from the baseline's folder), its rule, and the text of its
    line without white space around it.
    """

    path: str
    code: str
    line: str


class Compared(NamedTuple):
    """The findings that are new, and what is known and no longer there, with how often."""

    new: tuple[Diagnostic, ...]
    stale: dict[Known, int]


class Baseline(NamedTuple):
    """The findings that a file knows, each with how often."""

    file: Path
    known: Counter[Known]

    def new(self, path: str, lines: Lines, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings of a file (absolute) that are not known, in their order."""
        left = Counter(self.known)
        return tuple(one for one in findings if not _takes(left, _row(self.file, path, one.code, lines, one.span)))


def read(file: Path) -> Baseline:
    """Read what ``write`` wrote. Raises ``UsageError`` where that is not possible."""
    return Baseline(file, _read(file))


def compare(diagnostics: Iterable[Diagnostic], baseline: Baseline, given: Iterable[str]) -> Compared:
    """Leave out the findings that a baseline knows; of equal ones as many as it has.

    ``given`` are the files (absolute) that were linted: of others nothing is stale but what is gone from the disk.
    """
    left = Counter(baseline.known)
    new = tuple(one for one in diagnostics if not _takes(left, _known(one, baseline.file)))
    folder = _folder(baseline.file)
    linted = {os.path.relpath(path, folder).replace(os.sep, "/") for path in given}
    stale = {
        known: count
        for known, count in sorted(left.items())
        if count and (known.path in linted or not os.path.lexists(os.path.join(folder, known.path)))
    }
    return Compared(new, stale)


def write(diagnostics: Iterable[Diagnostic], file: Path) -> None:
    """Write all findings down. Raises ``UsageError`` where that is not possible."""
    counts = Counter(_known(one, file) for one in diagnostics)
    rows = [
        {"path": known.path, "code": known.code, "line": known.line, "count": count}
        for known, count in sorted(counts.items())
    ]
    text = json.dumps({"version": _VERSION, "findings": rows}, indent=2) + "\n"
    try:
        save(text.encode("ascii"), file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


def _read(file: Path) -> Counter[Known]:
    try:
        data = json.loads(named(file).decode("utf-8"))
        if data["version"] != _VERSION:
            raise UsageError(f"{file}: written by another version of the tool: write it anew")
        found: Counter[Known] = Counter()
        for row in data["findings"]:
            found[Known(str(row["path"]), str(row["code"]), str(row["line"]))] += int(row["count"])
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except MemoryError:
        raise UsageError(f"{file}: cannot be read: {NO_ROOM}") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise UsageError(f"{file}: not a baseline: expected what --write-baseline writes") from None
    return found


def _takes(left: Counter[Known], known: Known) -> bool:
    """Whether a finding is one of those that are left, of which there is one less then."""
    if not left[known]:
        return False
    left[known] -= 1
    return True


def _known(one: Diagnostic, file: Path) -> Known:
    return _row(file, one.filename, one.code, one.lines, one.span)


def _row(file: Path, path: str, code: str, lines: Lines, span: Span) -> Known:
    line = lines.line(lines.position(span.start).row)
    return Known(os.path.relpath(path, _folder(file)).replace(os.sep, "/"), code, line.strip())


def _folder(file: Path) -> str:
    return os.path.dirname(os.path.abspath(file))
