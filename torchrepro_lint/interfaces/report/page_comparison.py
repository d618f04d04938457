"""Comparison of an overview with an older report: which controls, entry points and findings changed.

The older report is the JSON of ``report --output-format json``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint.interfaces.overview.controls import STATES, TITLES
from torchrepro_lint.interfaces.overview.records import CellChange, Comparison, Overview
from torchrepro_lint.source.errors import OUT_OF_MEMORY, UsageError
from torchrepro_lint.source.files import read_named_file

# The version of the JSON of an overview: raised when a key changes its meaning or is removed, not for new keys.
SCHEMA = 1


class _FindingKey(NamedTuple):
    """The identity of a finding across reports: its rule, its file, and the text of its line."""

    code: str
    path: str
    line: str


class OldReport(NamedTuple):
    """What is read of an older report: by entry point (path and function) the state and words of each control; the count of
    each finding; and the target torch.
    """

    cells: dict[tuple[str, str], dict[str, tuple[str, str]]]
    findings: Counter[_FindingKey]
    torch: tuple[str, ...]


def read(file: Path) -> OldReport:
    """Read an older report. Raises ``UsageError`` for a file that ``report --output-format json`` did not write."""
    try:
        data = json.loads(read_named_file(file))
        if _is_other_schema(data):
            raise UsageError(f"{file}: a report of another version of the tool: make it anew with this one")
        return _older(data)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except MemoryError:
        raise UsageError(f"{file}: cannot be read: {OUT_OF_MEMORY}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        told = "not a report: --compare takes what torchrepro-lint report --output-format json writes"
        raise UsageError(f"{file}: {told}") from None


def compare(overview: Overview, older: OldReport) -> Comparison:
    """What changed from the older report to the overview."""
    known = {(entry.path, entry.function): entry for entry in overview.entries}
    gone = sorted(older.cells.keys() - known.keys())
    new, left = _findings(overview, older)
    return Comparison(
        tuple(_cells(overview, older)),
        tuple(entry.id for key, entry in known.items() if key not in older.cells),
        tuple(f"{path}, {function}" if function else path for path, function in gone),
        new,
        left,
        tuple(_notes(overview, older)),
    )


def _is_other_schema(data: Any) -> bool:
    """Whether data is a report of another schema."""
    return isinstance(data["schema"], int) and data["schema"] != SCHEMA and isinstance(data["entries"], list)


def _older(data: Any) -> OldReport:
    if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
        raise ValueError("no schema of ours")
    cells = {
        (_text(entry["path"]), _text(entry["function"])): {
            _text(cell["control"]): (_state(cell["state"]), _text(cell["says"])) for cell in entry["cells"]
        }
        for entry in data["entries"]
    }
    findings = Counter(
        _FindingKey(_text(one["code"]), _text(one["place"]["path"]), _text(one["line"])) for one in data["findings"]
    )
    return OldReport(cells, findings, tuple(_text(aim["torch"]) for aim in data["aims"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _state(value: Any) -> str:
    if value not in STATES:
        raise ValueError("no state")
    return str(value)


def _cells(overview: Overview, older: OldReport) -> Iterator[CellChange]:
    for entry in overview.entries:
        before = older.cells.get((entry.path, entry.function), {})
        for cell in entry.cells:
            state, said = before.get(cell.control, (cell.state, ""))
            change = STATES[cell.state].rank - STATES[state].rank
            if change and cell.control in TITLES:
                verdict = "better" if change > 0 else "worse"
                yield CellChange(entry.id, cell.control, verdict, state, cell.state, said)


def _findings(overview: Overview, older: OldReport) -> tuple[tuple[str, ...], tuple[tuple[str, str, str], ...]]:
    """The ids of new findings, and the keys of findings that are gone, as a multiset difference."""
    left = Counter(older.findings)
    new = []
    for item in overview.findings:
        known = _FindingKey(item.code, item.place.path, item.line)
        if left[known]:
            left[known] -= 1
        else:
            new.append(item.id)
    return tuple(new), tuple(tuple(known) for known in sorted(left.elements()))  # type: ignore[misc]


def _notes(overview: Overview, older: OldReport) -> Iterator[str]:
    now = tuple(aim.torch for aim in overview.aims)
    if now != older.torch:
        yield f"The older report is for torch {', '.join(older.torch)}, this one for torch {', '.join(now)}."
