"""Comparison of an overview with an older report, and its summary: verdict, most frequent causes, counts.

The older report is the JSON of ``report --output-format json``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.interfaces.overview.controls import CONTROLS, STATES, TITLES
from torchrepro_lint.interfaces.overview.records import CellChange, Comparison, Overview
from torchrepro_lint.source.errors import OUT_OF_MEMORY, UsageError
from torchrepro_lint.source.files import read_named_file

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import Cell, EntryRecord


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


_MOST = 5


class Cause(NamedTuple):
    """A cause of irreproducibility: its control, a sentence, and the entry points that have it."""

    control: str
    says: str
    entries: tuple[EntryRecord, ...]

    @property
    def title(self) -> str:
        """The title of the control."""
        return TITLES[self.control]


def causes(overview: Overview) -> tuple[Cause, ...]:
    """The most frequent causes in entry points that matter; ties in the order of the controls."""
    found: dict[tuple[str, str], list[EntryRecord]] = {}
    for entry in overview.entries:
        for cell in entry.cells:
            if cell.state == "bad" and entry.matters and not _repeats_torch_cell(entry, cell):
                found.setdefault((cell.control, cell.says), []).append(entry)
    order = [control.key for control in CONTROLS]
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), order.index(each[0][0]), each[0][1]))
    return tuple(Cause(control, says, tuple(entries)) for (control, says), entries in ranked[:_MOST])


def _repeats_torch_cell(entry: EntryRecord, cell: Cell) -> bool:
    """Whether CUDA's cell says the same as torch's own."""
    return cell.control == "cuda" and any(each.control == "torch" and each.says == cell.says for each in entry.cells)


def verdict(overview: Overview) -> str:
    """How many entry points have something to fix, of those that matter, how many more there are, and how many have gaps."""
    return f"{_to_fix(overview)}{_not_followed(overview)}"


def _not_followed(overview: Overview) -> str:
    """The sentence on entry points that lead into code that is not followed; empty without one."""
    count, every = unfollowed_entries(overview), len(overview.entries)
    if not count:
        return ""
    which = "It leads" if every == 1 else f"{count} of {every} entry points {'leads' if count == 1 else 'lead'}"
    return f" {which} into code that could not be followed."


def unfollowed_entries(overview: Overview) -> int:
    """The number of entry points that lead into code that is not followed."""
    return sum(bool(entry.timeline.gaps) for entry in overview.entries)


def _to_fix(overview: Overview) -> str:
    mattering = [entry for entry in overview.entries if entry.matters]
    bad = sum(any(cell.state == "bad" for cell in entry.cells) for entry in mattering)
    if not mattering:
        return "No entry point was found whose run saves or measures anything."
    which = " whose run saves or measures something" if others_told(overview) else ""
    more = f"; {told}" if (told := others_told(overview, "more ")) else ""
    if len(mattering) == 1:
        return f"The one entry point{which} has {'something' if bad else 'nothing'} to fix{more}."
    if not bad:
        return f"None of the {len(mattering)} entry points{which} has anything to fix{more}."
    return f"{bad} of {len(mattering)} entry points{which} {'has' if bad == 1 else 'have'} something to fix{more}."


def others_told(overview: Overview, more: str = "") -> str:
    """``1 saves and measures nothing``: how many entry points do not matter; empty where all do."""
    number = sum(not entry.matters for entry in overview.entries)
    return f"{number} {more}{'saves and measures' if number == 1 else 'save and measure'} nothing" if number else ""


def why_no_entry_points(overview: Overview) -> str:
    """The sentence that stands for a matrix without entry points."""
    idle = sum(gap.kind == "idle" for gap in overview.gaps)
    if not idle:
        return "No entry point was found: nothing in these files starts a run."
    found, it = ("1 entry point was found", "it runs") if idle == 1 else (f"{idle} entry points were found", "they run")
    return f"{found}, and nothing in what {it} that decides whether a run can be repeated."


def fix_commands(overview: Overview) -> str:
    """The sentence on how many findings which command fixes; empty where none can be fixed."""
    safe = sum(item.fix is not None and item.fix.safe for item in overview.findings)
    unsafe = sum(item.fix is not None and not item.fix.safe for item in overview.findings)
    if not safe + unsafe:
        return ""
    first = f"torchrepro-lint --fix fixes {safe} of them" if safe else ""
    more = f"torchrepro-lint --fix --unsafe-fixes fixes {unsafe}{' more' if safe else ' of them'}"
    return f"{first}{', ' if safe and unsafe else ''}{more if unsafe else ''}."


def severities(overview: Overview) -> tuple[tuple[str, int], ...]:
    """The count of findings of each severity, the worst first."""
    counts = Counter(item.severity for item in overview.findings)
    return tuple((name, counts[name]) for name in ("error", "warning", "note") if counts[name])
