"""A rule's page as an editor shows it: what the examples tell our tests is said in words.

The comment that hides a finding at its place.

What an editor can be offered for a finding: its fix, all fixes of a file, and to hide it.

Findings and actions in the words of the protocol.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from lsprotocol import types

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import find, url
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.engine.checker import SYNTAX_ERROR
from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.interfaces.lsp.linked import Linked, Report
from torchrepro_lint.interfaces.lsp.texts import Place, Placer
from torchrepro_lint.source.decoding import Source
from torchrepro_lint.source.suppressions import joined_rows, suppressions
from torchrepro_lint.source.text import Edit, Fix, Lines, Span, apply_edits

_FENCE = re.compile(r"^```(?P<language>\w+) (?P<words>.+)$", re.MULTILINE)
_MARKS = re.compile(r"(?<![ \t])[ \t]*# error: \[TRL\d{3}\].*$", re.MULTILINE)
_MARKED = re.compile(r"# error: \[(TRL\d{3})\]")


@cache
def page(code: str) -> str | None:
    """The page of a rule in Markdown, with where to read it."""
    found = find(code)
    if found is None:
        return None
    text = _MARKS.sub(_codes, _FENCE.sub(_opening, found.text.rstrip()))
    return f"{text}\n\n[{found.code} on the web]({url(found.code, found.name)})\n"


def _opening(fence: re.Match[str]) -> str:
    """Of the words behind a fence editors know the first only."""
    words = fence["words"].split()
    options = dict(word.partition("=")[::2] for word in words if "=" in word)
    said = [f"`{options['path']}`"] if "path" in options else []
    said += ["fixed (unsafe)" if "unsafe" in words else "fixed"] if "fixed" in words else []
    said += [f"with torch {options['torch']}"] if "torch" in options else []
    said += [f"on {options['device']}"] if "device" in options else []
    caption = ", ".join(said)
    opening = f"```{fence['language']}"
    return f"{caption[0].upper()}{caption[1:]}:\n\n{opening}" if caption else opening


def _codes(marks: re.Match[str]) -> str:
    return f"  # {', '.join(_MARKED.findall(marks[0]))}"


_CODES = re.compile(r"# noqa:\s?(?:[A-Z]+[0-9]+[,\s]+)*[A-Z]+[0-9]+", re.IGNORECASE)


def suppressing(reading: Reading, offset: int, code: str) -> Edit | None:
    """``# noqa`` with the code behind what starts at an offset, or the code in the comment there; None where neither hides
    it, as in a magic of a notebook.
    """
    lines = reading.lines
    row = lines.position(offset).row
    first, last = joined_rows(lines)[row]
    start, end = lines.offset(first), lines.offset(last) + len(lines.line(last))
    known = _CODES.search(lines.text, start, end)
    if known:
        edit = Edit(Span(known.end(), known.end()), f",{code}")
    else:
        trailing = len(lines.text[start:end]) - len(lines.text[start:end].rstrip())
        edit = Edit(Span(end - trailing, end), f"  # noqa: {code}")
    written = reading.written.text
    if written[start:end] != lines.text[start:end]:
        return None
    after = Lines(apply_edits(lines.text, [edit]))
    return edit if any(one.covers(row, code, "") for one in suppressions(after) if one.span.start >= start) else None


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


SOURCE = "torchrepro-lint"
FIX_ALL = "source.fixAll.torchrepro-lint"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_RULES = {rule.code: rule for rule in RULES}


def diagnostics(linked: Linked, name: str, report: Report, placer: Placer) -> Iterator[tuple[str, types.Diagnostic]]:
    """The findings of a file, each with the document that it is shown in: in a notebook that of its cell."""
    for finding in report.checked.findings:
        start, end = placer.span(linked.place(name), report.reading, finding.span)
        yield start.uri, diagnostic(linked, finding, start, end, placer)


def diagnostic(linked: Linked, finding: Finding, start: Place, end: Place, placer: Placer) -> types.Diagnostic:
    """A finding between two places; related to it is the way from the entry point."""
    rule = _RULES[finding.code]
    return types.Diagnostic(
        range=_range(start, end),
        message=finding.message,
        severity=_SEVERITIES[finding.severity or rule.severity],
        code=finding.code,
        code_description=types.CodeDescription(href=url(rule.code, rule.name)),
        source=SOURCE,
        related_information=list(_way(linked, finding, placer)) or None,
    )


def workspace_edit(
    changes: Iterable[TextChange], versions: Callable[[str], int | None], versioned: bool
) -> types.WorkspaceEdit:
    """An edit of one or more documents; ``versions`` gives those of open ones, ``versioned`` says whether to send them."""
    by_uri: dict[str, list[types.TextEdit]] = {}
    for change in changes:
        edit = types.TextEdit(range=_range(change.start, change.end), new_text=change.text)
        by_uri.setdefault(change.start.uri, []).append(edit)
    if not versioned:
        return types.WorkspaceEdit(changes=by_uri)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                text_document=types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=versions(uri)),
                edits=list(edits),
            )
            for uri, edits in by_uri.items()
        ]
    )


def code_action(action: Action, edit: types.WorkspaceEdit, settled: types.Diagnostic) -> types.CodeAction:
    """An action that settles a diagnostic; of several, safe fixes are what to take."""
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[settled],
        is_preferred=True if action.kind == "fix" and action.safe else None,
        edit=edit,
    )


def _way(linked: Linked, finding: Finding, placer: Placer) -> Iterator[types.DiagnosticRelatedInformation]:
    readings = linked.readings
    for step in finding.steps:
        if step.path in readings:
            place = placer.position(linked.place(step.path), readings[step.path], step.place)
            location = types.Location(uri=place.uri, range=_range(place, place))
            yield types.DiagnosticRelatedInformation(location=location, message=step.text)


def _range(start: Place, end: Place) -> types.Range:
    return types.Range(
        start=types.Position(line=start.row, character=start.column),
        end=types.Position(line=end.row, character=end.column),
    )
