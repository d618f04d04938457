"""Findings and fixes as LSP messages: diagnostics, quick fixes and the edits behind them.

A quick fix applies the fix of one finding, or suppresses it by a comment; another action applies all fixes of a file.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lsprotocol import types

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import url
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.engine.checker import SYNTAX_ERROR
from torchrepro_lint.engine.fixer import completed_edits
from torchrepro_lint.engine.incremental_project import FileReport, LinkedProject
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.interfaces.lsp.text_documents import EditorPosition, PositionMapper
from torchrepro_lint.source.decoding import Source
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.suppressions import joined_rows, noqa_edit, suppressions
from torchrepro_lint.source.text import Edit, Fix, Lines, Span, apply_edits


def suppression_edit(reading: ParsedFile, offset: int, code: str) -> Edit | None:
    """The edit that adds ``# noqa`` with a code to the statement at an offset, or the code to the comment there.

    None where that would not suppress the finding, as in a magic of a notebook.
    """
    lines = reading.lines
    row = lines.position(offset).row
    first, last = joined_rows(lines)[row]
    start, end = lines.offset(first), lines.offset(last) + len(lines.line(last))
    edit = noqa_edit(lines, last, [code])
    written = reading.written.text
    if written[start:end] != lines.text[start:end]:
        return None
    after = Lines(apply_edits(lines.text, [edit]))
    return edit if any(one.covers(row, code, "") for one in suppressions(after) if one.span.start >= start) else None


_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class TextChange(NamedTuple):
    """A text edit: what replaces the text between two positions of one document."""

    start: EditorPosition
    end: EditorPosition
    text: str


class QuickFix(NamedTuple):
    """A quick fix of a finding: ``kind`` is fix or hide (suppression), ``safe`` as that of a fix."""

    title: str
    kind: str
    changes: tuple[TextChange, ...]
    safe: bool
    finding: Finding


def quick_fixes(
    linked: LinkedProject, name: str, report: FileReport, positions: PositionMapper, spans: Sequence[Span]
) -> list[QuickFix]:
    """The quick fixes of the findings of a file that touch one of some spans."""
    found: list[QuickFix] = []
    for finding in report.checked.findings:
        if any(finding.span.start <= span.end and span.start <= finding.span.end for span in spans):
            if finding.fix is not None and (changes := fix_changes(linked, name, finding.fix, positions)):
                title = finding.fix.title if finding.fix.safe else f"{finding.fix.title} (unsafe)"
                found.append(QuickFix(title, "fix", changes, finding.fix.safe, finding))
            if (hiding := _suppression(linked, name, report.reading, finding, positions)) is not None:
                found.append(hiding)
    return found


def fix_changes(linked: LinkedProject, name: str, fix: Fix, positions: PositionMapper) -> tuple[TextChange, ...]:
    """The text changes of a fix; none where a file differs from the editor's, or is a notebook that is not open."""
    edits = {name: fix.edits, **dict(fix.elsewhere)}
    paths = {each: linked.absolute_path(each) for each in edits if edits[each]}
    if not all(linked.is_current(each) and positions.can_edit(path) for each, path in paths.items()):
        return ()
    readings = linked.readings
    edits = {each: completed_edits(readings, each, own) for each, own in edits.items()}
    return tuple(
        change for each, path in paths.items() for change in _text_changes(path, readings[each], edits[each], positions)
    )


def fix_all_changes(linked: LinkedProject, name: str, positions: PositionMapper) -> tuple[TextChange, ...]:
    """The text changes of all fixes that ``--fix`` would apply to one file."""
    path = linked.absolute_path(name)
    if not linked.is_current(name) or not positions.can_edit(path):
        return ()
    fixed = linked.fixed(name)
    if name not in fixed.changes:
        return ()
    reading, change = linked.readings[name], fixed.changes[name]
    return tuple(_text_changes(path, reading, _differing_lines(change.before, change.after), positions))


def _suppression(
    linked: LinkedProject, name: str, reading: ParsedFile, finding: Finding, positions: PositionMapper
) -> QuickFix | None:
    path = linked.absolute_path(name)
    if finding.code == SYNTAX_ERROR or not positions.can_edit(path):
        return None
    edit = suppression_edit(reading, finding.span.start, finding.code)
    if edit is None:
        return None
    changes = tuple(_text_changes(path, reading, [edit], positions))
    return QuickFix(f"Ignore {finding.code} here", "hide", changes, True, finding)


def _text_changes(
    path: str, reading: ParsedFile, edits: Iterable[Edit], positions: PositionMapper
) -> Iterator[TextChange]:
    for edit in sorted(edits):
        start, end = positions.span(path, reading, edit.span)
        yield TextChange(start, end, edit.text)


def _differing_lines(before: Source, after: Source) -> Iterator[Edit]:
    """Edits of the lines that differ, cell by cell."""
    if not before.cells:
        yield from _line_edits(before.text, after.text, 0)
    texts: Mapping[int, str] = {cell.number: after.text[cell.start : cell.end] for cell in after.cells}
    for cell in before.cells:
        yield from _line_edits(before.text[cell.start : cell.end], texts[cell.number], cell.start)


def _line_edits(before: str, after: str, offset: int) -> Iterator[Edit]:
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


def diagnostics(
    linked: LinkedProject, name: str, report: FileReport, positions: PositionMapper
) -> Iterator[tuple[str, types.Diagnostic]]:
    """The diagnostics of a file, each with the URI of its document: in a notebook that of its cell."""
    for finding in report.checked.findings:
        start, end = positions.span(linked.absolute_path(name), report.reading, finding.span)
        yield start.uri, diagnostic(linked, finding, start, end, positions)


def diagnostic(
    linked: LinkedProject, finding: Finding, start: EditorPosition, end: EditorPosition, positions: PositionMapper
) -> types.Diagnostic:
    """A finding as an LSP diagnostic; its related information is the call path from the entry point."""
    rule = _RULES[finding.code]
    return types.Diagnostic(
        range=_range(start, end),
        message=finding.message,
        severity=_SEVERITIES[finding.severity or rule.severity],
        code=finding.code,
        code_description=types.CodeDescription(href=url(rule.code, rule.name)),
        source=SOURCE,
        related_information=list(_call_path(linked, finding, positions)) or None,
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


def _call_path(
    linked: LinkedProject, finding: Finding, positions: PositionMapper
) -> Iterator[types.DiagnosticRelatedInformation]:
    readings = linked.readings
    for step in finding.steps:
        if step.path in readings:
            place = positions.position(linked.absolute_path(step.path), readings[step.path], step.place)
            location = types.Location(uri=place.uri, range=_range(place, place))
            yield types.DiagnosticRelatedInformation(location=location, message=step.text)


def _range(start: EditorPosition, end: EditorPosition) -> types.Range:
    return types.Range(
        start=types.Position(line=start.row, character=start.column),
        end=types.Position(line=end.row, character=end.column),
    )
