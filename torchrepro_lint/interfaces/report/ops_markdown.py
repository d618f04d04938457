"""The catalogue's operations as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint.catalogue.release_history import (
    STATUSES,
    History,
    conditions_text,
    devices_and_phase,
    release_ranges,
)
from torchrepro_lint.interfaces.report.markdown_elements import code_span, escaped, table
from torchrepro_lint.interfaces.report.ops_table import NOTHING, details, lines


def render(histories: Sequence[History], version: str) -> str:
    """One table: the behaviour of operations in one release."""
    rows = (
        (code_span(history.operation), status, place, escaped(said), ", ".join(map(code_span, errors)))
        for history in histories
        for status, place, said, errors in lines(history.at(version), version)
    )
    head = f"# Operations in torch {version} with `torch.use_deterministic_algorithms(True)`"
    written = (head, "", *table(("Operation", "Status", "Where", "When", "Error"), rows))
    return "".join(f"{line}\n" for line in written)


def render_all(histories: Sequence[History], version: str) -> str:
    """A heading and a table of all releases for each operation; the rows of the target are bold."""
    return "\n".join("".join(f"{line}\n" for line in _history(history, version)) for history in histories)


def _history(history: History, version: str) -> Iterator[str]:
    yield from (f"## {code_span(history.operation)}", "")
    if also := dict.fromkeys(one.name for one in history.spellings if one.name != history.operation):
        yield from (f"Also {', '.join(map(code_span, also))}.", "")
    yield from table(("torch", "Status", "Where", "When", "More"), _rows(history, version))


def _rows(history: History, version: str) -> Iterator[tuple[str, ...]]:
    for period in history.periods:
        if not period.cases:
            yield _releases(period.releases, version), NOTHING, "", "", ""
        for case in period.cases:
            status = STATUSES[case.behaviour]
            more = "; ".join(f"{label}: {text}" for label, text in details(case) if label != "torch")
            yield (
                _releases(case.releases, version),
                f"{status.mark} {status.label}",
                devices_and_phase(case.devices, case.phase),
                escaped(conditions_text(case.when)),
                escaped(more),
            )


def _releases(releases: tuple[str, ...], version: str) -> str:
    told = release_ranges(releases)
    return f"**{told}**" if version in releases else told
