"""Text document synchronisation: the texts and notebooks that are open in an editor, and offsets as LSP positions.

pygls keeps texts as well, but ends lines at form feeds and other separators, which the protocol does not: its text differs
from the editor's after the first edit behind one. Positions count from 0, in the units of the negotiated encoding; in a
notebook each cell is a document of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from lsprotocol import types

from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.interfaces.lsp.workspace import CellText, Document, length_in_units, offset
from torchrepro_lint.source.files import is_notebook
from torchrepro_lint.source.text import Lines, Position, Span


class OpenText(NamedTuple):
    """An open text; a cell of a notebook is one, too."""

    uri: str
    text: str
    language: str
    version: int | None = None


class OpenNotebook(NamedTuple):
    """An open notebook; ``cells`` hold the URIs of their texts."""

    uri: str
    cells: tuple[types.NotebookCell, ...]
    metadata: object
    version: int | None = None


class OpenTexts:
    """The open texts and notebooks by URI; columns are in units of ``encoding``. URIs never opened are ignored."""

    def __init__(self) -> None:
        self.encoding = "utf-16"
        self._texts: dict[str, OpenText] = {}
        self._notebooks: dict[str, OpenNotebook] = {}

    def text(self, uri: str) -> OpenText | None:
        """An open text as the editor has it."""
        return self._texts.get(unquote(uri))

    def notebook(self, uri: str) -> OpenNotebook | None:
        """An open notebook as the editor has it."""
        return self._notebooks.get(unquote(uri))

    def cells(self, notebook: OpenNotebook) -> Iterator[CellText]:
        """The cells of a notebook, in order."""
        for cell in notebook.cells:
            text = self.text(cell.document) or OpenText(cell.document, "", "python")
            is_code = cell.kind == types.NotebookCellKind.Code
            yield CellText(cell.document, is_code, text.language or "python", text.text)

    def open(self, item: types.TextDocumentItem) -> None:
        """Open a text."""
        self._texts[unquote(item.uri)] = OpenText(item.uri, item.text, item.language_id, item.version)

    def change(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Iterable[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Apply incremental changes to a text, in order."""
        known = self.text(document.uri)
        if known is None:
            return
        text = known.text
        for change in changes:
            text = _with_change(text, change, self.encoding)
        self._texts[unquote(document.uri)] = known._replace(text=text, version=document.version)

    def close(self, uri: str) -> None:
        """A text is open no more."""
        self._texts.pop(unquote(uri), None)

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Open a notebook and its cells."""
        found = params.notebook_document
        self._notebooks[unquote(found.uri)] = OpenNotebook(found.uri, tuple(found.cells), found.metadata, found.version)
        for each in params.cell_text_documents:
            self.open(each)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply changes of the cells of a notebook, and of their texts."""
        known, change = self.notebook(params.notebook_document.uri), params.change
        if known is None:
            return
        known = known._replace(version=params.notebook_document.version)
        if change.metadata is not None:
            known = known._replace(metadata=change.metadata)
        if change.cells is not None:
            known = known._replace(cells=self._cells(known.cells, change.cells))
        self._notebooks[unquote(known.uri)] = known

    def close_notebook(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """Close a notebook and its cells."""
        self._notebooks.pop(unquote(params.notebook_document.uri), None)
        for each in params.cell_text_documents:
            self.close(each.uri)

    def _cells(
        self, cells: tuple[types.NotebookCell, ...], changes: types.NotebookDocumentCellChanges
    ) -> tuple[types.NotebookCell, ...]:
        if changes.structure is not None:
            array = changes.structure.array
            cells = (*cells[: array.start], *(array.cells or ()), *cells[array.start + array.delete_count :])
            # A cell that is now in another language is closed and opened again.
            for closed in changes.structure.did_close or ():
                self.close(closed.uri)
            for opened in changes.structure.did_open or ():
                self.open(opened)
        new = {each.document: each for each in changes.data or ()}
        for text in changes.text_content or ():
            self.change(text.document, text.changes)
        return tuple(new.get(each.document, each) for each in cells)


def _with_change(text: str, change: types.TextDocumentContentChangeEvent, encoding: str) -> str:
    new: str = change.text
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return new
    lines = Lines(text)
    start = offset(lines, change.range.start.line, change.range.start.character, encoding)
    end = offset(lines, change.range.end.line, change.range.end.character, encoding)
    return text[:start] + new + text[max(start, end) :]


class EditorPosition(NamedTuple):
    """A position in a document of the editor: row and column from 0, in units of the encoding."""

    uri: str
    row: int
    column: int


class PositionMapper(NamedTuple):
    """Maps offsets of files to editor positions.

    ``open_document`` gives the open document at an absolute path, ``uri`` the URI of a file that is not open.
    """

    encoding: str
    open_document: Callable[[str], Document | None]
    uri: Callable[[str], str]

    def span(self, path: str, reading: ParsedFile, span: Span) -> tuple[EditorPosition, EditorPosition]:
        """The positions of a span of a file. One that ends in another cell than it starts in becomes empty."""
        start, end = (self.offset(path, reading, each) for each in span)
        return start, (end if end.uri == start.uri and end >= start else start)

    def offset(self, path: str, reading: ParsedFile, offset: int) -> EditorPosition:
        """The position of an offset of a file."""
        lines = reading.lines
        row, column, _ = lines.position(offset)
        return self._place(path, reading, lines.place(offset), lines.line(row)[: column - 1], offset)

    def position(self, path: str, reading: ParsedFile, position: Position) -> EditorPosition:
        """The editor position of a row and column counted from 1."""
        return self.offset(path, reading, _offset(reading.lines, position))

    def can_edit(self, path: str) -> bool:
        """Whether the editor can apply edits to a file: to a notebook only where it is open as one."""
        document = self.open_document(path)
        return not is_notebook(path) or (document is not None and document.cells is not None)

    def _place(self, path: str, reading: ParsedFile, position: Position, before: str, offset: int) -> EditorPosition:
        document = self.open_document(path)
        if document is not None and document.cells is not None and 0 < position.cell <= len(document.cells):
            return EditorPosition(
                document.cells[position.cell - 1], position.row - 1, length_in_units(before, self.encoding)
            )
        uri = document.uri if document else self.uri(path)
        if position.cell:  # in the notebook's JSON the row is all there is
            return EditorPosition(uri, reading.lines.file_row(offset) - 1, 0)
        return EditorPosition(uri, position.row - 1, length_in_units(before, self.encoding))


def _offset(lines: Lines, position: Position) -> int:
    if not position.cell:
        return lines.offset(max(position.row, 1), position.column)
    cell = next((each for each in lines.cells if each.number == position.cell), None)
    if cell is None:
        return 0
    return lines.offset(lines.position(cell.start).row + position.row - 1, position.column)
