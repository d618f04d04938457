"""What the workspace says, in the words of the protocol. All of it is asked in the thread that the workspace belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lsprotocol import types

from torchrepro_lint.reading import Reading
from torchrepro_lint.server import messages
from torchrepro_lint.server.actions import TextChange, actions, fixing_all
from torchrepro_lint.server.documents import Document
from torchrepro_lint.server.linked import Linked, Report
from torchrepro_lint.server.placing import Placer
from torchrepro_lint.server.units import code_points
from torchrepro_lint.server.workspace import Workspace
from torchrepro_lint.text import Span

_CODE = re.compile(r"TRL\d{3}")
_FIX_ALL_TITLE = "Fix all that torchrepro-lint can fix safely in this file"


class Diagnosed(NamedTuple):
    """The diagnostics of open files by path, each with its document, and faults of the tool."""

    by_path: dict[str, list[tuple[str, types.Diagnostic]]]
    errors: tuple[str, ...]


class _Asked(NamedTuple):
    document: Document
    linked: Linked
    name: str
    report: Report


class Answers(NamedTuple):
    """``versioned`` says whether the editor takes edits with versions."""

    workspace: Workspace
    placer: Placer
    versioned: bool

    def diagnostics(self) -> Diagnosed:
        """What is to be shown of each open file."""
        found: dict[str, list[tuple[str, types.Diagnostic]]] = {}
        errors: list[str] = []
        for path, report in self.workspace.reports().items():
            home = self.workspace.home(path)
            found[path] = []
            if report is not None and home is not None:
                found[path] = list(messages.diagnostics(*home, report, self.placer))
                errors += (f"{path}: {error}" for error in report.checked.errors)
        return Diagnosed(found, tuple(errors))

    def actions(
        self, uri: str, where: types.Range, only: Sequence[types.CodeActionKind | str] | None
    ) -> list[types.CodeAction]:
        """What can be done between two places of a document, of the kinds that are asked for."""
        asked = self._asked(uri)
        if asked is None:
            return []
        wanted = _wanted(only)
        span = Span(*(self._offset(asked, uri, each) for each in (where.start, where.end)))
        found = list(self._quick(asked, span)) if wanted(types.CodeActionKind.QuickFix.value) else []
        if wanted(messages.FIX_ALL) and any(one.fix and one.fix.safe for one in asked.report.checked.findings):
            found += self._all(asked)
        return found

    def hover(self, uri: str, where: types.Position) -> types.Hover | None:
        """The pages of the rules whose findings are there, or whose code is."""
        asked = self._asked(uri)
        if asked is None:
            return None
        offset = self._offset(asked, uri, where)
        codes = [one.code for one in asked.report.checked.findings if one.span.start <= offset <= one.span.end]
        codes += _written(asked.report.reading, offset)
        pages = [page for code in dict.fromkeys(codes) if (page := messages.page(code))]
        if not pages:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(pages)))

    def _quick(self, asked: _Asked, span: Span) -> Iterator[types.CodeAction]:
        path = asked.document.path
        for action in actions(asked.linked, asked.name, asked.report, self.placer, span):
            start, end = self.placer.span(path, asked.report.reading, action.finding.span)
            settled = messages.diagnostic(asked.linked, action.finding, start, end, self.placer)
            yield messages.code_action(action, self._edit(action.changes), settled)

    def _all(self, asked: _Asked) -> Iterator[types.CodeAction]:
        if changes := fixing_all(asked.linked, asked.name, self.placer):
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
        row = min(first + where.line, len(lines))
        return lines.offset(row, code_points(lines.line(row), where.character, self.placer.encoding) + 1)


def _written(reading: Reading, offset: int) -> Iterator[str]:
    lines = reading.lines
    row, column, _ = lines.position(offset)
    for match in _CODE.finditer(lines.line(row)):
        if match.start() <= column - 1 <= match.end():
            yield match[0]


def _wanted(only: Sequence[types.CodeActionKind | str] | None) -> Callable[[str], bool]:
    """Whether a kind is one of those asked for, or below one."""
    kinds = [each.value if isinstance(each, types.CodeActionKind) else each for each in only or ()]
    return lambda kind: only is None or any(not each or f"{kind}.".startswith(f"{each}.") for each in kinds)
