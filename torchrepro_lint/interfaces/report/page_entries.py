"""HTML page, section of each entry point: its timeline as a drawing and as a list, and the state of each control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from torchrepro_lint.domain.timeline import TimelineEvent
from torchrepro_lint.interfaces.overview.controls import TITLES, lane_title
from torchrepro_lint.interfaces.overview.records import Cell, EntryRecord, FindingRecord, Location, Overview
from torchrepro_lint.interfaces.report.html_document import and_more, counted, folded, html_text
from torchrepro_lint.interfaces.report.html_elements import HTML, entry_name, state_mark
from torchrepro_lint.interfaces.report.page_content import about, moment_text
from torchrepro_lint.interfaces.report.page_timeline import timeline

# With more entry points than this, all sections are folded.
_MOST_OPEN = 3
_MOST_LINKS = 8


def entries(overview: Overview) -> str:
    """All sections, in the order of the matrix."""
    items = {item.id: item for item in overview.findings}
    opened = " open" if len(overview.entries) <= _MOST_OPEN else ""
    found = Counter(each for item in overview.findings for each in item.entries)
    return "".join(_section(entry, items, found[entry.id], opened) for entry in overview.entries)


def _section(entry: EntryRecord, items: Mapping[str, FindingRecord], found: int, opened: str) -> str:
    counts = "".join(_count(entry, state) for state in ("bad", "risk", "unknown", "good"))
    open_, settled = _halves(entry)
    controls = _controls("cards", entry, open_, items) + _controls("rows", entry, settled, items)
    listed = f' <a class="filter" href="#findings" data-entry="{entry.id}">{counted(found, "finding")} in this run</a>'
    return f"""<section class="entry" id="{entry.id}" tabindex="-1" aria-labelledby="{entry.id}-name">
<details{opened}><summary><h3 id="{entry.id}-name">{entry_name(entry)}</h3> <span class="counts">{counts}</span></summary>
<p class="about">{html_text(about(entry))}{listed if found else ""}</p>
{timeline(entry)}{_list(entry)}{controls}</details>
</section>
"""


def _count(entry: EntryRecord, state: str) -> str:
    number = sum(cell.state == state for cell in entry.cells)
    return f'<span class="c {state}">{state_mark(state)}{number}</span> ' if number else ""


def _halves(entry: EntryRecord) -> tuple[list[Cell], list[Cell]]:
    """The cells with something to do or to know, and those that are settled."""
    settled = [cell for cell in entry.cells if cell.state in ("good", "unused")]
    return [cell for cell in entry.cells if cell not in settled], settled


def _controls(kind: str, entry: EntryRecord, cells: Iterable[Cell], items: Mapping[str, FindingRecord]) -> str:
    rows = "".join(_control(entry, cell, items) for cell in cells)
    return f'<dl class="controls {kind}">\n{rows}</dl>\n' if rows else ""


def _control(entry: EntryRecord, cell: Cell, items: Mapping[str, FindingRecord]) -> str:
    found = [items[each] for each in cell.findings if each in items]
    links = ", ".join(
        f'<a href="#{item.id}">{item.code}, {html_text(_where(item.place, entry))}</a>' for item in found[:_MOST_LINKS]
    )
    linked = f'<span class="links">{links}{and_more(len(found), _MOST_LINKS)}</span>' if links else ""
    return (
        f'<div class="{cell.state}" id="{entry.id}-{cell.control}" tabindex="-1"><dt>{state_mark(cell.state)}{TITLES[cell.control]}'
        f"</dt><dd><b>{html_text(cell.says[:1].upper() + cell.says[1:])}.</b> {html_text(cell.because)} {linked}</dd></div>\n"
    )


def _where(at: Location, entry: EntryRecord) -> str:
    """A location relative to an entry point: without the name of its own file."""
    if at.path != entry.path:
        return str(at)
    return f"cell {at.cell}:{at.row}" if at.cell else f"line {at.row}"


def _list(entry: EntryRecord) -> str:
    """The events of the drawing as a list, for screen readers and for reading."""
    found = entry.timeline.moments
    if not found:
        return '<p class="about">Nothing in this run touches a generator, a flag, a variable or a device.</p>\n'
    rows = "".join(_moment(entry, number, each) for number, each in enumerate(found, 1))
    missing = "".join(
        f'<li class="wrong">{state_mark("bad")}Missing: {html_text(each.text)} ({each.code})</li>'
        for each in entry.timeline.missing
    )
    lacks = f'<ul class="lacks">{missing}</ul>' if missing else ""
    title = f"The same as a list: {counted(len(found), 'event')} in order"
    return folded("list", title, f'<ol class="moments">\n{rows}</ol>{lacks}')


def _moment(entry: EntryRecord, number: int, moment: TimelineEvent) -> str:
    return (
        f'<li id="{entry.id}-m{number}" tabindex="-1"><div><span class="lane">{lane_title(moment)}</span> '
        f"<span>{moment_text(moment, HTML)}</span></div></li>\n"
    )
