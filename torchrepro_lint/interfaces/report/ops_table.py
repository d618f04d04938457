"""The catalogue's operations as text tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchrepro_lint.catalogue.release_history import (
    STATUSES,
    History,
    HistoryCase,
    Period,
    conditions_text,
    devices_and_phase,
    release_ranges,
)

NOTHING = "not listed"


def render(histories: Sequence[History], version: str, width: int = 0) -> str:
    """A table of the behaviour of operations in one release, one line for each case.

    Where a table is wider than ``width`` (0: any width will do), each operation is a block of lines that can be wrapped.
    """
    rows: list[tuple[str, ...]] = [("operation", "status", "where", "when", "error")]
    for history in histories:
        names = [history.operation]
        for *line, errors in lines(history.at(version), version):
            # The name stands in the first line only.
            rows.append((names.pop() if names else "", *line, ", ".join(errors)))
    text = _columns(rows)
    if width and max(map(len, text.splitlines())) > width:
        text = "".join(map(_block, rows[1:]))
    return f"With torch.use_deterministic_algorithms(True) in torch {version}:\n\n{text}"


def _block(row: tuple[str, ...]) -> str:
    """The lines of a row: the operation, the case, and below it the error names."""
    operation, status, where, when, error = row
    case = f"  {status}" + (f", {where}" if where else "") + (f": {when}" if when else "")
    return "".join(f"{line}\n" for line in (operation, case, error and f"    error  {error}") if line)


def render_all(histories: Sequence[History], version: str) -> str:
    """The behaviour of operations in every release; the target's period is marked."""
    return "\n".join(_history(history, version) for history in histories)


Line = tuple[str, str, str, list[str]]


def lines(period: Period, version: str) -> list[Line]:
    """Status, place, condition and error names of each case in a release; one line where there is none."""
    there = [case for case in period.cases if version in case.releases]
    return [_line(case, version) for case in there] or [(NOTHING, "", "", [])]


def _line(case: HistoryCase, version: str) -> Line:
    status = STATUSES[case.behaviour]
    errors = [name for name, releases in case.errors if version in releases]
    place = devices_and_phase(case.devices, case.phase)
    return f"{status.mark} {status.label}", place, conditions_text(case.when), errors


def _history(history: History, version: str) -> str:
    also = [one.name for one in history.spellings if one.name != history.operation]
    head = history.operation + (f"\n  also {', '.join(dict.fromkeys(also))}" if also else "")
    return head + "\n" + "".join(_period(period, version) for period in history.periods)


def _period(period: Period, version: str) -> str:
    here = f"  <- torch {version}" if version in period.releases else ""
    return (
        f"  torch {release_ranges(period.releases)}{here}\n{''.join(map(_case, period.cases)) or f'    {NOTHING}'}".rstrip()
        + "\n"
    )


def _case(case: HistoryCase) -> str:
    status = STATUSES[case.behaviour]
    said = conditions_text(case.when)
    head = f"    {status.mark} {status.label}, {devices_and_phase(case.devices, case.phase)}" + (
        f": {said}" if said else ""
    )
    return head + "".join(f"\n        {label:<11}{text}" for label, text in details(case)) + "\n"


def details(case: HistoryCase) -> Iterable[tuple[str, str]]:
    """Further fields of a case: error names with releases, releases, documentation, evidence, replacement."""
    for name, releases in case.errors:
        yield "error", name if releases == case.releases else f"{name} (torch {release_ranges(releases)})"
    yield "torch", release_ranges(case.releases)
    yield "documented", documented(case)
    for text in evidence(case):
        yield "evidence", text
    for text in case.instead:
        yield "instead", text


def documented(case: HistoryCase) -> str:
    """Whether torch's documentation lists a case, and in which releases."""
    if case.documented == case.releases:
        return "yes"
    return f"in torch {release_ranges(case.documented)} only" if case.documented else "no"


def evidence(case: HistoryCase) -> tuple[str, ...]:
    """The evidence for a case."""
    return case.evidence or ("torch's documentation",)


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )
