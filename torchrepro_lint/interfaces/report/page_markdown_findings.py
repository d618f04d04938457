"""The findings of an overview as Markdown: a table, and below it, folded, the source, call path and fix of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.interfaces.overview.comparison import fix_commands
from torchrepro_lint.interfaces.report.markdown import code_span, escaped
from torchrepro_lint.source.errors import without_workflow_commands

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import EntryRecord, FindingRecord, Overview


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """An empty line and a table; the cells are Markdown already."""
    yield ""
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"


def findings(overview: Overview) -> Iterator[str]:
    """All findings by location."""
    items = overview.findings
    yield from ("", f"## Findings ({len(items)})")
    if not items:
        return
    if told := fix_commands(overview):
        yield from ("", escaped(told))
    rows = (
        [code_span(str(item.place)), item.severity, f"[{item.code}]({item.url}) {item.name}", escaped(item.message)]
        for item in items
    )
    yield from table(("place", "severity", "rule", "finding"), rows)
    entries = {entry.id: entry for entry in overview.entries}
    for item in items:
        yield from ("", f"<details><summary>{escaped(str(item.place))} {item.code} {item.name}</summary>", "")
        yield from _details(item, entries)
        yield from ("", "</details>")


def _details(item: FindingRecord, entries: Mapping[str, EntryRecord]) -> Iterator[str]:
    runs = ", ".join(code_span(entries[each].name) for each in item.entries if each in entries)
    yield f"In the run of {runs or 'no entry point that is looked at here'}"
    yield from _fenced(
        "python", [f"{row.number or '':>4} {without_workflow_commands(row.text)}".rstrip() for row in item.source]
    )
    for number, step in enumerate(item.way, 1):
        yield from ([""] if number == 1 else [])
        yield f"{number}. {code_span(str(step.place))} {escaped(step.text)}"
    if item.fix:
        yield from ("", f"Fix{'' if item.fix.safe else ' (unsafe)'}: {escaped(item.fix.title)}")
        yield from _fenced("diff", [f"{line.sign} {without_workflow_commands(line.text)}" for line in item.fix.changes])


def _fenced(language: str, lines: Sequence[str]) -> Iterator[str]:
    fence = "`" * max(3, 1 + max(map(_longest_run, lines), default=0))
    yield from ("", f"{fence}{language}", *lines, fence)


def _longest_run(text: str) -> int:
    """The length of the longest run of backquotes."""
    return max(map(len, "".join(one if one == "`" else " " for one in text).split()), default=0)
