"""Findings and actions in the words of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lsprotocol import types

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import url
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.server.actions import Action, TextChange
from torchrepro_lint.server.linked import Linked, Report
from torchrepro_lint.server.placing import Place, Placer

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
