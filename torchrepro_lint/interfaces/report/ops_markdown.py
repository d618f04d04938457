"""The catalogue's operations as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchrepro_lint.catalogue.release_history import (
    STATUSES,
    History,
    conditions_text,
    devices_and_phase,
    release_ranges,
)
from torchrepro_lint.interfaces.report.ops_table import NOTHING, details, lines


def render(histories: Sequence[History], version: str) -> str:
    """One table: the behaviour of operations in one release."""
    rows = [
        (_code(history.operation), status, place, said, ", ".join(_code(name) for name in errors.split(", ") if name))
        for history in histories
        for status, place, said, errors in lines(history.at(version), version)
    ]
    head = f"# Operations in torch {version} with `torch.use_deterministic_algorithms(True)`"
    return f"{head}\n\n{_table(('Operation', 'Status', 'Where', 'When', 'Error'), rows)}"


def render_all(histories: Sequence[History], version: str) -> str:
    """A heading and a table of all releases for each operation; the rows of the target are bold."""
    return "\n".join(_history(history, version) for history in histories)


def _history(history: History, version: str) -> str:
    rows = []
    for period in history.periods:
        if not period.cases:
            rows.append((_bold(release_ranges(period.releases), version in period.releases), NOTHING, "", "", ""))
        for case in period.cases:
            status = STATUSES[case.behaviour]
            more = "; ".join(f"{label}: {text}" for label, text in details(case) if label != "torch")
            releases = _bold(release_ranges(case.releases), version in case.releases)
            place = devices_and_phase(case.devices, case.phase)
            rows.append(
                (releases, f"{status.mark} {status.label}", place, _cell(conditions_text(case.when)), _cell(more))
            )
    also = ", ".join(dict.fromkeys(_code(one.name) for one in history.spellings if one.name != history.operation))
    head = f"## {_code(history.operation)}\n\n" + (f"Also {also}.\n\n" if also else "")
    return head + _table(("torch", "Status", "Where", "When", "More"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in body)


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def _code(name: str) -> str:
    return f"`{name}`"


def _cell(text: str) -> str:
    """Text with Markdown escaped."""
    return "".join(f"\\{letter}" if letter in "|\\*_`<>[]" else letter for letter in text)
