"""An overview as Markdown: the content of the HTML page, for an issue or the summary of a pipeline step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.interfaces.overview.comparison import (
    causes,
    fix_commands,
    severities,
    verdict,
    why_no_entry_points,
)
from torchrepro_lint.interfaces.overview.controls import CONTROLS, STATES, TITLES, lane_title
from torchrepro_lint.interfaces.overview.gaps import GAP_KINDS
from torchrepro_lint.interfaces.overview.records import Location
from torchrepro_lint.interfaces.report.html_elements import counted
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
from torchrepro_lint.interfaces.report.page_operations import release_spans, shift_text, status_label

if TYPE_CHECKING:
    from torchrepro_lint.domain.timeline import TimelineEvent
    from torchrepro_lint.interfaces.overview.records import (
        Cell,
        Comparison,
        EntryRecord,
        FindingRecord,
        OperationUse,
        Overview,
    )

_MOST_PLACES = 4


def render(overview: Overview) -> str:
    """Headings, tables, and folded details."""
    return "".join(f"{line}\n" for line in _lines(overview))


def _lines(overview: Overview) -> Iterator[str]:
    yield f"# Reproducibility{f' of {escaped(overview.title)}' if overview.title else ' report'}"
    yield ""
    yield f"**{escaped(verdict(overview))}**"
    yield ""
    targets = ", ".join(f"torch {aim.torch} ({escaped(aim.decided_by)})" for aim in overview.aims)
    counts = ", ".join(counted(number, name) for name, number in severities(overview))
    found = counted(len(overview.findings), "finding") + (f" ({counts})" if counts else "")
    yield f"{targets}; {counted(overview.files, 'file')}; {found}"
    yield from _first(overview)
    if overview.comparison:
        yield from _changes(overview, overview.comparison)
    yield from _matrix(overview)
    for entry in overview.entries:
        yield from _entry(entry)
    yield from _findings(overview)
    yield from _operations(overview)
    yield from _gaps(overview)


def _first(overview: Overview) -> Iterator[str]:
    found = causes(overview)
    if found:
        yield from ("", "Fix first:", "")
    for number, each in enumerate(found, 1):
        yield f"{number}. {each.title}: {escaped(each.says)}, in {counted(len(each.entries), 'entry point')}"


def _matrix(overview: Overview) -> Iterator[str]:
    entries = overview.entries
    yield from ("", "## Entry points and controls")
    if not entries:
        yield from ("", why_no_entry_points(overview))
        return
    rows = ([_named(entry), *map(_cell, entry.cells)] for entry in entries)
    yield from ("", *table(["Entry point", *(each.title for each in CONTROLS)], rows), "")
    yield ", ".join(f"{each.mark} {each.word}" for each in STATES.values())


def _named(entry: EntryRecord) -> str:
    return code_span(entry.name) + ("" if entry.matters else " (saves and measures nothing)")


def _cell(cell: Cell) -> str:
    return f"{STATES[cell.state].mark} {escaped(cell.says)}"


def _entry(entry: EntryRecord) -> Iterator[str]:
    matters = "" if entry.matters else ", saves and measures nothing"
    yield from ("", f"## {code_span(entry.name)}", "", f"torch {entry.torch} on {entry.device.upper()}{matters}", "")
    for cell in entry.cells:
        says = cell.says[:1].upper() + cell.says[1:]
        yield f"- {STATES[cell.state].mark} **{TITLES[cell.control]}**: {escaped(says)}. {escaped(cell.because)}"
    moments = entry.timeline.moments
    if moments:
        listed = (f"{number}. {_moment(each)}" for number, each in enumerate(moments, 1))
        missing = (f"- ✗ missing: {escaped(each.text)} ({each.code})" for each in entry.timeline.missing)
        yield from folded(f"{counted(len(moments), 'event')} in order", (*listed, *missing))


def _moment(moment: TimelineEvent) -> str:
    verb = {"draw": " draws", "entropy": " seeds anew in each run"}.get(moment.kind, "")
    more = f", and {moment.times - 1} more" if moment.times > 1 else ""
    only = f" *{escaped(', '.join(dict.fromkeys(moment.conditions)))}*" if moment.conditions else ""
    wrong = f" **✗ {escaped(moment.trouble.text)} ({moment.trouble.code})**" if moment.trouble else ""
    at = code_span(str(Location(moment.path, *moment.place)))
    return f"{lane_title(moment)}: {code_span(moment.text)}{verb}{more}{only} {at}{wrong}"


def _findings(overview: Overview) -> Iterator[str]:
    """All findings by location: a table, and below it, folded, the source, call path and fix of each."""
    items = overview.findings
    yield from ("", f"## Findings ({len(items)})")
    if not items:
        return
    if told := fix_commands(overview):
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


def _operations(overview: Overview) -> Iterator[str]:
    yield from ("", "## Operations by release of torch")
    if not overview.uses:
        yield from ("", "No call was found that any release of torch treats as nondeterministic.")
        return
    heads = ("Operation", "In the target torch", "Calls", "From release to release")
    yield from ("", *table(heads, map(_use, overview.uses)), "")
    for each in overview.shifts:
        yield f"- torch {each.releases}: {shift_text(each)} (beside torch {each.torch})"


def _use(use: OperationUse) -> Sequence[str]:
    releases = "; ".join(f"{each} {' '.join(status_label(status))}" for each, status in release_spans(use))
    now = " ".join(status_label(use.status))
    more = f" and {len(use.places) - _MOST_PLACES} more" if len(use.places) > _MOST_PLACES else ""
    calls = ", ".join(code_span(str(at)) for at in use.places[:_MOST_PLACES])
    return code_span(use.operation), f"{now} in torch {use.torch}", f"{len(use.places)}: {calls}{more}", releases


def _gaps(overview: Overview) -> Iterator[str]:
    yield from ("", "## What was not analysed, and why", "")
    yield f"{counted(overview.files, 'file was', 'files were')} analysed. No finding is no proof."
    kind = ""
    for gap in overview.gaps:
        if gap.kind != kind:
            kind = gap.kind
            yield from ("", f"{GAP_KINDS[kind]}:", "")
        yield f"- {code_span(gap.what)}: {escaped(gap.why)}"


def _changes(overview: Overview, found: Comparison) -> Iterator[str]:
    entries = {entry.id: entry for entry in overview.entries}
    yield from ("", "## What changed since the older report", "")
    yield from (f"{escaped(note)}\n" for note in found.notes)
    for change in found.cells:
        entry = entries[change.entry]
        now = next(cell for cell in entry.cells if cell.control == change.control)
        sign = "▲ better" if change.verdict == "better" else "▼ worse"
        before = f"{STATES[change.before].mark} {escaped(change.said)}"
        yield f"- {sign}: {code_span(entry.name)}, {TITLES[change.control]}: {before} → {_cell(now)}"
    new = frozenset(found.new_findings)
    for item in overview.findings:
        if item.id in new:
            yield f"- ▼ new: {code_span(str(item.place))} {item.code} {escaped(item.message)}"
    for rule, path, line in found.gone_findings:
        yield f"- ▲ gone: {escaped(rule)} {code_span(path)} {code_span(line)}"
    yield from (f"- new entry point: {code_span(entries[each].name)}" for each in found.new_entries)
    yield from (f"- entry point gone: {code_span(each)}" for each in found.gone_entries)
    if not (found.cells or found.new_findings or found.gone_findings or found.new_entries or found.gone_entries):
        yield "Nothing changed in entry points, controls or findings."
