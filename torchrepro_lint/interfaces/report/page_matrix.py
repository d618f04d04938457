"""HTML page, first section: the matrix of entry points and controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchrepro_lint.interfaces.overview.controls import CONTROLS, STATES, TITLES
from torchrepro_lint.interfaces.overview.records import Cell, CellChange, EntryRecord, Overview
from torchrepro_lint.interfaces.report.html_document import counted, folded, heading, html_text, table
from torchrepro_lint.interfaces.report.html_elements import entry_link, state_mark
from torchrepro_lint.interfaces.report.page_content import MATRIX, why_no_entry_points

# Rows beyond this number are folded.
_MOST = 20


def matrix(overview: Overview) -> str:
    """Tables of the entry points that matter, and folded, of more of them and of those that save and measure nothing."""
    mattering = [entry for entry in overview.entries if entry.matters]
    others = [entry for entry in overview.entries if not entry.matters]
    changes = _changes(overview)
    shown, more = mattering[:_MOST], mattering[_MOST:]
    if not overview.entries:
        return f'<p class="empty">{why_no_entry_points(overview)}</p>\n'
    main = _table(MATRIX, shown, changes) if shown else ""
    return (
        main
        + _folded(f"{counted(len(more), 'more entry point')} with less to fix", more, changes)
        + _folded(
            f"{counted(len(others), 'entry point')} whose run saves and measures nothing", others, changes, not shown
        )
        + _legend()
        + _meanings()
    )


def _changes(overview: Overview) -> Mapping[tuple[str, str], CellChange]:
    found = overview.comparison.cells if overview.comparison else ()
    return {(each.entry, each.control): each for each in found}


def _folded(
    title: str, entries: Sequence[EntryRecord], changes: Mapping[tuple[str, str], CellChange], opened: bool = False
) -> str:
    if not entries:
        return ""
    return folded("more", title, _table(title, entries, changes), opened)


def _table(caption: str, entries: Iterable[EntryRecord], changes: Mapping[tuple[str, str], CellChange]) -> str:
    heads = "".join(heading(each.title, f' title="{html_text(each.meaning)}"') for each in CONTROLS)
    rows = "".join(_row(entry, changes) for entry in entries)
    return table("matrix", caption, heading("Entry point", ' class="name"') + heads, rows, hidden=True)


def _row(entry: EntryRecord, changes: Mapping[tuple[str, str], CellChange]) -> str:
    cells = "".join(_cell(entry, cell, changes.get((entry.id, cell.control))) for cell in entry.cells)
    where = f'<span class="on">on {html_text(entry.device.upper())}</span>'
    return f'<tr role="row"><th scope="row" role="rowheader" class="name" title="{html_text(entry.name)}">{entry_link(entry)} {where}</th>{cells}</tr>\n'


def _cell(entry: EntryRecord, cell: Cell, change: CellChange | None) -> str:
    changed = f' <span class="ch {change.verdict}">{_ARROWS[change.verdict]} {change.verdict}</span>' if change else ""
    return (
        f'<td role="cell"><a class="c {cell.state}" href="#{entry.id}-{cell.control}">'
        f'<span class="k">{TITLES[cell.control]}</span>'
        f'<span class="v">{state_mark(cell.state)}{html_text(cell.says)}{changed}</span></a></td>'
    )


_ARROWS = {"better": "▲", "worse": "▼"}


def _meanings() -> str:
    rows = "".join(f"<div><dt>{each.title}</dt><dd>{html_text(each.meaning)}</dd></div>\n" for each in CONTROLS)
    return folded("more", "What the columns mean", f'<dl class="rows">\n{rows}</dl>')


def _legend() -> str:
    items = "".join(
        f'<li><span class="c {each.key}"><span class="m" aria-hidden="true">{each.mark}</span> {each.word}</span> '
        f"{each.meaning}</li>"
        for each in STATES.values()
    )
    return f'<ul class="legend" aria-label="Legend">{items}</ul>\n'
