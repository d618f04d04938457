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


def render(histories: Sequence[History], version: str) -> str:
    """A table of the behaviour of operations in one release, one line for each case."""
    rows = [("operation", "status", "where", "when", "error")]
    for history in histories:
        names = [history.operation]
        for line in lines(history.at(version), version):
            rows.append((names.pop() if names else "", *line))  # noqa: PERF401  the name stands in the first line only
    return f"With torch.use_deterministic_algorithms(True) in torch {version}:\n\n{_columns(rows)}"


def render_all(histories: Sequence[History], version: str) -> str:
    """The behaviour of operations in every release; the target's period is marked."""
    return "\n".join(_history(history, version) for history in histories)


def lines(period: Period, version: str) -> list[tuple[str, str, str, str]]:
    """Status, place, condition and error names of each case in a release; one line where there is none."""
    there = [case for case in period.cases if version in case.releases]
    return [_line(case, version) for case in there] or [(NOTHING, "", "", "")]


def _line(case: HistoryCase, version: str) -> tuple[str, str, str, str]:
    errors = ", ".join(name for name, releases in case.errors if version in releases)
    status = STATUSES[case.behaviour]
    return (
        f"{status.mark} {status.label}",
        devices_and_phase(case.devices, case.phase),
        conditions_text(case.when),
        errors,
    )


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
