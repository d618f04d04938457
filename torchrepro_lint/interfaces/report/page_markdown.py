"""An overview as Markdown: the content of the HTML page, for an issue or the summary of a pipeline step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torchrepro_lint.interfaces.overview.controls import CONTROLS, STATES, TITLES, lane_title
from torchrepro_lint.interfaces.overview.records import EntryRecord, FindingRecord, Overview
from torchrepro_lint.interfaces.report import page_content as content
from torchrepro_lint.interfaces.report.html_document import counted
from torchrepro_lint.interfaces.report.markdown_elements import (
    call_path,
    code_span,
    escaped,
    fenced,
    finding_table,
    fix,
    folded,
    table,
)
from torchrepro_lint.interfaces.report.page_content import Writer, status_label


def render(overview: Overview) -> str:
    """Headings, tables, and folded details."""
    return "".join(f"{line}\n" for line in _lines(overview))


def _lines(overview: Overview) -> Iterator[str]:
    yield from (f"# {escaped(content.title(overview))}", "", f"**{escaped(content.verdict(overview))}**", "")
    yield escaped(" · ".join(content.facts(overview)))
    yield from _first(overview)
    if overview.comparison:
        yield from _section(content.CHANGES, content.changes(overview, overview.comparison, MARKDOWN))
    yield from _matrix(overview)
    for entry in overview.entries:
        yield from _entry(entry)
    yield from _findings(overview)
    yield from _section(content.OPERATIONS, content.operations(overview, MARKDOWN))
    yield from _section(content.GAPS, content.gaps(overview, MARKDOWN))


def _section(heading: str, content: str) -> Iterator[str]:
    yield from ("", f"## {heading}", *content.removesuffix("\n").split("\n"))


def _first(overview: Overview) -> Iterator[str]:
    found = content.causes(overview)
    if found:
        yield from ("", "Fix first:", "")
    for number, each in enumerate(found, 1):
        yield f"{number}. {each.title}: {escaped(each.says)}, in {counted(len(each.entries), 'entry point')}"


def _matrix(overview: Overview) -> Iterator[str]:
    entries = overview.entries
    yield from ("", f"## {content.MATRIX}")
    if not entries:
        yield from ("", content.why_no_entry_points(overview))
        return
    rows = ([_named(entry), *(_state(each.state, each.says, "") for each in entry.cells)] for entry in entries)
    yield from ("", *table(["Entry point", *(each.title for each in CONTROLS)], rows), "")
    yield ", ".join(f"{each.mark} {each.word}" for each in STATES.values())


def _named(entry: EntryRecord) -> str:
    return code_span(entry.name) + ("" if entry.matters else " (saves and measures nothing)")


def _entry(entry: EntryRecord) -> Iterator[str]:
    yield from ("", f"## {code_span(entry.name)}", "", escaped(content.about(entry)), "")
    for cell in entry.cells:
        says = cell.says[:1].upper() + cell.says[1:]
        yield f"- {STATES[cell.state].mark} **{TITLES[cell.control]}**: {escaped(says)}. {escaped(cell.because)}"
    moments = entry.timeline.moments
    if moments:
        listed = (
            f"{number}. {lane_title(each)}: {content.moment_text(each, MARKDOWN)}"
            for number, each in enumerate(moments, 1)
        )
        missing = (f"- ✗ missing: {escaped(each.text)} ({each.code})" for each in entry.timeline.missing)
        yield from folded(f"{counted(len(moments), 'event')} in order", (*listed, *missing))


def _findings(overview: Overview) -> Iterator[str]:
    """All findings by location: a table, and below it, folded, the source, call path and fix of each."""
    items = overview.findings
    yield from ("", f"## {content.FINDINGS} ({len(items)})")
    if not items:
        return
    if told := content.fix_commands(overview):
        yield from ("", escaped(told))
    rows = ((str(item.place), item.severity, item.code, item.name, item.url, item.message) for item in items)
    yield from ("", *finding_table(rows))
    entries = {entry.id: entry for entry in overview.entries}
    for item in items:
        yield from folded(f"{item.place} {item.code} {item.name}", _details(item, entries))


def _details(item: FindingRecord, entries: Mapping[str, EntryRecord]) -> Iterator[str]:
    runs = ", ".join(code_span(entries[each].name) for each in item.entries if each in entries)
    yield f"In the run of {runs or 'no entry point that is looked at here'}"
    yield from fenced("python", [f"{row.number or '':>4} {row.text}".rstrip() for row in item.source])
    if item.way:
        yield from ("", *call_path((str(step.place), step.text) for step in item.way))
    if item.fix:
        yield from ("", *fix(item.fix.title, item.fix.safe, ((line.sign, line.text) for line in item.fix.changes)))


def _block(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in ("", *lines))


def _items(rows: Iterable[str]) -> Iterator[str]:
    yield from ("", *(f"- {each}" for each in rows))


def _status(status: str) -> str:
    return " ".join(status_label(status))


def _state(state: str, says: str, _target: str) -> str:
    return f"{STATES[state].mark} {escaped(says)}"


MARKDOWN = Writer(
    text=escaped,
    code=code_span,
    aside=escaped,
    condition=lambda text: f"*{escaped(text)}*",
    wrong=lambda text: f"**✗ {escaped(text)}**",
    entry=lambda entry: code_span(entry.name),
    finding=lambda _, text: escaped(text),
    state=_state,
    status=_status,
    statuses=lambda found: "; ".join(f"{releases} {_status(status)}" for status, releases, _ in found),
    place=lambda at, _: code_span(at),
    places=lambda count, named: f"{count}: {named}",
    paragraph=lambda _, text: _block([escaped(text)]),
    group=lambda sign, title, _, rows: _block([f"{sign} {title}:", *_items(rows)]),
    folded=lambda title, rows: _block([f"{title}:", *_items(rows)]),
    table=lambda _, caption, heads, rows: _block([f"{escaped(caption)}:", "", *table(heads, rows)]),
)
