"""What the workspace says, in the words of the protocol. All of it is asked in the thread that the workspace belongs to.

What an editor was shown, so that it is taken back when it no longer holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lsprotocol import types

from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.interfaces.lsp import messages
from torchrepro_lint.interfaces.lsp import messages as hovering
from torchrepro_lint.interfaces.lsp.documents import Document, offset
from torchrepro_lint.interfaces.lsp.linked import Linked, Report
from torchrepro_lint.interfaces.lsp.messages import TextChange, actions, fixing_all
from torchrepro_lint.interfaces.lsp.texts import Placer
from torchrepro_lint.interfaces.lsp.workspace import Workspace
from torchrepro_lint.source.text import Span

_CODE = re.compile(r"TRL\d{3}")
_FIX_ALL_TITLE = "Fix all that torchrepro-lint can fix safely in this file"


class Diagnosed(NamedTuple):
    """The diagnostics of a file, each with the document where it is shown, and faults of the tool."""

    diagnostics: tuple[tuple[str, types.Diagnostic], ...] = ()
    errors: tuple[str, ...] = ()


class _Asked(NamedTuple):
    document: Document
    linked: Linked
    name: str
    report: Report


class Answers(NamedTuple):
    """``versioned`` says whether the editor takes edits with versions, ``resolves`` whether it asks for an edit when one is
    chosen.
    """

    workspace: Workspace
    placer: Placer
    versioned: bool
    resolves: bool

    def diagnostics(self, path: str) -> Diagnosed:
        """What is to be shown of an open file."""
        home = self.workspace.home(path)
        report = self.workspace.reports([path]).get(path)
        if home is None or report is None:
            return Diagnosed()
        return Diagnosed(tuple(messages.diagnostics(*home, report, self.placer)), report.checked.errors)

    def actions(self, uri: str, where: types.Range, context: types.CodeActionContext) -> list[types.CodeAction]:
        """What can be done between two places of a document, or about diagnostics there, of the kinds that are asked for."""
        asked = self._asked(uri)
        if asked is None:
            return []
        wanted = _wanted(context.only)
        spans = self._spans(asked, uri, where, context)
        found = list(self._quick(asked, spans)) if wanted(types.CodeActionKind.QuickFix.value) else []
        if wanted(messages.FIX_ALL) and any(one.fix and one.fix.safe for one in asked.report.checked.findings):
            found += self._all(asked, uri)
        return found

    def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """An action with its edit."""
        asked = self._asked(action.data) if isinstance(action.data, str) else None
        changes = fixing_all(asked.linked, asked.name, self.placer) if asked else ()
        action.edit = self._edit(changes)
        return action

    def hover(self, uri: str, where: types.Position) -> types.Hover | None:
        """The pages of the rules whose findings are there, or whose code is."""
        asked = self._asked(uri)
        if asked is None:
            return None
        at = self._offset(asked, uri, where)
        codes = [one.code for one in asked.report.checked.findings if one.span.start <= at <= one.span.end]
        codes += _written(asked.report.reading, at)
        pages = [page for code in dict.fromkeys(codes) if (page := hovering.page(code))]
        if not pages:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(pages)))

    def _spans(self, asked: _Asked, uri: str, where: types.Range, context: types.CodeActionContext) -> tuple[Span, ...]:
        """What is asked about. Some editors send where the cursor is, and the diagnostics of its line."""
        own = [each.range for each in context.diagnostics if each.source == messages.SOURCE]
        return tuple(Span(*(self._offset(asked, uri, each) for each in (one.start, one.end))) for one in (where, *own))

    def _quick(self, asked: _Asked, spans: Sequence[Span]) -> Iterator[types.CodeAction]:
        path = asked.document.path
        for action in actions(asked.linked, asked.name, asked.report, self.placer, spans):
            start, end = self.placer.span(path, asked.report.reading, action.finding.span)
            settled = messages.diagnostic(asked.linked, action.finding, start, end, self.placer)
            yield messages.code_action(action, self._edit(action.changes), settled)

    def _all(self, asked: _Asked, uri: str) -> Iterator[types.CodeAction]:
        """All fixes of a file cost as much as linking a few times: better only when that is chosen."""
        if self.resolves:
            yield types.CodeAction(title=_FIX_ALL_TITLE, kind=messages.FIX_ALL, data=uri)
        elif changes := fixing_all(asked.linked, asked.name, self.placer):
            yield types.CodeAction(title=_FIX_ALL_TITLE, kind=messages.FIX_ALL, edit=self._edit(changes))

    def _edit(self, changes: Sequence[TextChange]) -> types.WorkspaceEdit:
        versions = {each.uri: each.version for each in self.workspace.documents.values() if each.cells is None}
        return messages.workspace_edit(changes, versions.get, self.versioned)

    def _asked(self, uri: str) -> _Asked | None:
        document = next(
            (one for one in self.workspace.documents.values() if uri in (one.uri, *(one.cells or ()))), None
        )
        home = self.workspace.home(document.path) if document else None
        report = self.workspace.reports([document.path])[document.path] if document and home else None
        return _Asked(document, *home, report) if document and home and report else None

    def _offset(self, asked: _Asked, uri: str, where: types.Position) -> int:
        """The offset of a place of a document, as near as there is one."""
        lines, first = asked.report.reading.lines, 1
        for cell in lines.cells if asked.document.cells else ():
            if asked.document.cells and asked.document.cells[cell.number - 1] == uri:
                first = lines.position(cell.start).row
        return offset(lines, first - 1 + where.line, where.character, self.placer.encoding)


def _written(reading: Reading, at: int) -> Iterator[str]:
    lines = reading.lines
    row, column, _ = lines.position(at)
    for match in _CODE.finditer(lines.line(row)):
        if match.start() <= column - 1 <= match.end():
            yield match[0]


def _wanted(only: Sequence[types.CodeActionKind | str] | None) -> Callable[[str], bool]:
    """Whether a kind is one of those asked for, or below one."""
    kinds = [each.value if isinstance(each, types.CodeActionKind) else each for each in only or ()]
    return lambda kind: only is None or any(not each or f"{kind}.".startswith(f"{each}.") for each in kinds)


class Published:
    """The documents that have been reported on, by path: for a notebook those of its cells."""

    def __init__(self, send: Callable[[types.PublishDiagnosticsParams], None]) -> None:
        self._send = send
        self._shown: dict[str, set[str]] = {}

    def show(self, document: Document, found: Iterable[tuple[str, types.Diagnostic]]) -> None:
        """These are all diagnostics of a document, each with the URI where it is shown."""
        uris = document.cells or (document.uri,)
        gone = self._shown.get(document.path, set()).difference(uris)
        by_uri: dict[str, list[types.Diagnostic]] = {uri: [] for uri in (*uris, *sorted(gone))}
        for uri, each in found:
            by_uri.setdefault(uri, []).append(each)
        for uri, diagnostics in by_uri.items():
            version = document.version if uri == document.uri else None
            self._send(types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version))
        self._shown[document.path] = set(by_uri) - gone

    def clear(self, path: str) -> None:
        """A document was closed."""
        for uri in sorted(self._shown.pop(path, set())):
            self._send(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))
