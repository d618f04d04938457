"""HTML page, section "What changed": what got better or worse since an older report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.interfaces.overview.controls import STATES, TITLES
from torchrepro_lint.interfaces.report.html_elements import counted, entry_link, html_code, html_text, state_mark

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import CellChange, Comparison, EntryRecord, Overview


def changes(overview: Overview) -> str:
    """The section; empty where nothing is compared."""
    found = overview.comparison
    if found is None:
        return ""
    worse = [each for each in found.cells if each.verdict == "worse"]
    better = [each for each in found.cells if each.verdict == "better"]
    entries = {entry.id: entry for entry in overview.entries}
    parts = (
        _list("Worse", "▼", "worse", (_cell(entries[each.entry], each) for each in worse)),
        _list("Better", "▲", "better", (_cell(entries[each.entry], each) for each in better)),
        _list("New findings", "▼", "worse", _new(overview, found)),
        _list("Findings that are gone", "▲", "better", _gone(found)),
        _list("New entry points", "+", "", _entries(overview, found)),
        _list("Entry points that are gone", "−", "", map(html_code, found.gone_entries)),  # noqa: RUF001
    )
    notes = "".join(f"<p>{html_text(note)}</p>" for note in found.notes)
    body = "".join(parts) or "<p>Nothing changed in entry points, controls or findings.</p>\n"
    return f"""<section id="changes" aria-labelledby="changes-head">
<h2 id="changes-head">What changed since the older report</h2>
<p class="facts">{counted(len(better), "control")} better, {len(worse)} worse; {counted(len(found.gone_findings), "finding")} gone, {len(found.new_findings)} new.</p>
{notes}{body}</section>
"""


def _list(title: str, sign: str, kind: str, rows: Iterable[str]) -> str:
    items = "".join(f"<li>{row}</li>\n" for row in rows)
    if not items:
        return ""
    return f'<h3 class="ch {kind}"><span aria-hidden="true">{sign}</span> {title}</h3>\n<ul>\n{items}</ul>\n'


def _cell(entry: EntryRecord, change: CellChange) -> str:
    cell = next(each for each in entry.cells if each.control == change.control)
    before = f'<span class="c {change.before}">{state_mark(change.before)}{html_text(change.said or STATES[change.before].word)}</span>'
    now = f'<a class="c {cell.state}" href="#{entry.id}-{cell.control}">{state_mark(cell.state)}{html_text(cell.says)}</a>'
    return f"{entry_link(entry)}, {TITLES[change.control]}: {before} → {now}"


def _new(overview: Overview, found: Comparison) -> Iterable[str]:
    new = frozenset(found.new_findings)
    for item in overview.findings:
        if item.id in new:
            yield f'<a href="#{item.id}">{item.code} {html_text(str(item.place))}</a> {html_text(item.message)}'


def _gone(found: Comparison) -> Iterable[str]:
    return (
        f"{html_text(rule)} {html_code(path)} <code>{html_text(line)}</code>"
        for rule, path, line in found.gone_findings
    )


def _entries(overview: Overview, found: Comparison) -> Iterable[str]:
    return (entry_link(entry) for entry in overview.entries if entry.id in found.new_entries)
