"""An overview in a few lines: how it stands, and what to mend first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.overview.controls import CONTROLS, TITLES

if TYPE_CHECKING:
    from torchrepro_lint.overview.records import Cell, Entry, Overview

_MOST = 5


class Cause(NamedTuple):
    """Something to mend: what, in which control, and in which entry points."""

    control: str
    says: str
    entries: tuple[Entry, ...]

    @property
    def title(self) -> str:
        """What the control is called."""
        return TITLES[self.control]


def causes(overview: Overview) -> tuple[Cause, ...]:
    """What is to be mended in most entry points that matter first; what concerns equally many, in the controls' order."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in overview.entries:
        for cell in entry.cells:
            if cell.state == "bad" and entry.matters and not _is_same(entry, cell):
                found.setdefault((cell.control, cell.says), []).append(entry)
    order = [control.key for control in CONTROLS]
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), order.index(each[0][0]), each[0][1]))
    return tuple(Cause(control, says, tuple(entries)) for (control, says), entries in ranked[:_MOST])


def _is_same(entry: Entry, cell: Cell) -> bool:
    """Whether what is wrong with CUDA's generators is what is wrong with torch's own."""
    return cell.control == "cuda" and any(each.control == "torch" and each.says == cell.says for each in entry.cells)


def verdict(overview: Overview) -> str:
    """One sentence on the entry points."""
    mattering = [entry for entry in overview.entries if entry.matters]
    bad = sum(any(cell.state == "bad" for cell in entry.cells) for entry in mattering)
    if not mattering:
        return "No entry point was found whose run saves or measures anything."
    if not bad:
        only = "The one entry point has" if len(mattering) == 1 else f"None of the {len(mattering)} entry points has"
        return f"{only} {'nothing' if len(mattering) == 1 else 'anything'} to mend."
    if len(mattering) == 1:
        return "The one entry point has something to mend."
    return f"{bad} of {len(mattering)} entry points {'has' if bad == 1 else 'have'} something to mend."


def nothing_starts(overview: Overview) -> str:
    """Why there is no entry point to show."""
    idle = sum(gap.kind == "idle" for gap in overview.gaps)
    if not idle:
        return "No entry point was found: nothing in these files starts a run."
    found, it = ("1 entry point was found", "it runs") if idle == 1 else (f"{idle} entry points were found", "they run")
    return f"{found}, and nothing in what {it} that decides whether a run can be repeated."


def fixes(overview: Overview) -> str:
    """How many findings can be fixed by which command; empty where none can."""
    safe = sum(item.fix is not None and item.fix.safe for item in overview.findings)
    unsafe = sum(item.fix is not None and not item.fix.safe for item in overview.findings)
    if not safe + unsafe:
        return ""
    first = f"torchrepro-lint --fix mends {safe} of them" if safe else ""
    more = f"torchrepro-lint --fix --unsafe-fixes mends {unsafe}{' more' if safe else ' of them'}"
    return f"{first}{', ' if safe and unsafe else ''}{more if unsafe else ''}."


def severities(overview: Overview) -> tuple[tuple[str, int], ...]:
    """How many findings there are of each severity, the worst first."""
    counts = Counter(item.severity for item in overview.findings)
    return tuple((name, counts[name]) for name in ("error", "warning", "note") if counts[name])
