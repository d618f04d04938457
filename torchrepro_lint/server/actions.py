"""What an editor can be offered for a finding: its fix, all fixes of a file, and to hide it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.engine.checker import SYNTAX_ERROR
from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.server.linked import Linked, Report
from torchrepro_lint.server.placing import Place, Placer
from torchrepro_lint.server.suppressing import suppressing
from torchrepro_lint.source.decoding import Source
from torchrepro_lint.source.text import Edit, Fix, Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class TextChange(NamedTuple):
    """What to write over the text between two places of one document."""

    start: Place
    end: Place
    text: str


class Action(NamedTuple):
    """Changes that belong together. ``kind`` is fix or hide, ``safe`` as that of a fix; ``finding`` is what it settles."""

    title: str
    kind: str
    changes: tuple[TextChange, ...]
    safe: bool
    finding: Finding


def actions(linked: Linked, name: str, report: Report, placer: Placer, spans: Sequence[Span]) -> list[Action]:
    """What can be done about the findings of a file that touch one of some spans."""
    found: list[Action] = []
    for finding in report.checked.findings:
        if any(finding.span.start <= span.end and span.start <= finding.span.end for span in spans):
            if finding.fix is not None and (changes := fixing(linked, name, finding.fix, placer)):
                title = finding.fix.title if finding.fix.safe else f"{finding.fix.title} (unsafe)"
                found.append(Action(title, "fix", changes, finding.fix.safe, finding))
            if (hiding := _hiding(linked, name, report.reading, finding, placer)) is not None:
                found.append(hiding)
    return found


def fixing(linked: Linked, name: str, fix: Fix, placer: Placer) -> tuple[TextChange, ...]:
    """The changes of a fix; none where a file is not as the editor has it, or is a notebook that is not open."""
    edits = {name: fix.edits, **dict(fix.elsewhere)}
    paths = {each: linked.place(each) for each in edits if edits[each]}
    if not all(linked.is_current(each) and placer.can_edit(path) for each, path in paths.items()):
        return ()
    readings = linked.readings
    return tuple(
        change for each, path in paths.items() for change in _changes(path, readings[each], edits[each], placer)
    )


def fixing_all(linked: Linked, name: str, placer: Placer) -> tuple[TextChange, ...]:
    """The changes that ``--fix`` would make in a file alone."""
    path = linked.place(name)
    if not linked.is_current(name) or not placer.can_edit(path):
        return ()
    fixed = linked.fixed(name)
    if name not in fixed.changes:
        return ()
    reading, change = linked.readings[name], fixed.changes[name]
    return tuple(_changes(path, reading, _differences(change.before, change.after), placer))


def _hiding(linked: Linked, name: str, reading: Reading, finding: Finding, placer: Placer) -> Action | None:
    path = linked.place(name)
    if finding.code == SYNTAX_ERROR or not placer.can_edit(path):
        return None
    edit = suppressing(reading, finding.span.start, finding.code)
    if edit is None:
        return None
    changes = tuple(_changes(path, reading, [edit], placer))
    return Action(f"Suppress {finding.code} on this line", "hide", changes, True, finding)


def _changes(path: str, reading: Reading, edits: Iterable[Edit], placer: Placer) -> Iterator[TextChange]:
    for edit in sorted(edits):
        start, end = placer.span(path, reading, edit.span)
        yield TextChange(start, end, edit.text)


def _differences(before: Source, after: Source) -> Iterator[Edit]:
    """The lines that differ, cell by cell."""
    if not before.cells:
        yield from _lines(before.text, after.text, 0)
    texts: Mapping[int, str] = {cell.number: after.text[cell.start : cell.end] for cell in after.cells}
    for cell in before.cells:
        yield from _lines(before.text[cell.start : cell.end], texts[cell.number], cell.start)


def _lines(before: str, after: str, offset: int) -> Iterator[Edit]:
    old, new = _LINE.findall(before), _LINE.findall(after)
    starts = [offset]
    for line in old:
        starts.append(starts[-1] + len(line))
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield Edit(Span(starts[i], starts[j]), "".join(new[k:m]))
