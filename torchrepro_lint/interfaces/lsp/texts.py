"""The texts and notebooks that are open in an editor, as it tells of their changes.

pygls keeps texts, too, but takes form feeds and other separators for ends of lines, which the protocol does not: from the
first edit behind one on, its text is not the editor's.

Offsets of files as places in an editor: rows and columns from 0, in its units, and the cells of a notebook by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from lsprotocol import types

from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.interfaces.lsp.documents import CellText, Document, offset, units
from torchrepro_lint.source.decoding import is_notebook
from torchrepro_lint.source.text import Lines, Position, Span


class Text(NamedTuple):
    """An open text; a cell of a notebook is one, too."""

    uri: str
    text: str
    language: str
    version: int | None = None


class Notebook(NamedTuple):
    """An open notebook. ``cells`` name their texts."""

    uri: str
    cells: tuple[types.NotebookCell, ...]
    metadata: object
    version: int | None = None


class Texts:
    """What is open, by URI; columns are in the units of ``encoding``. What was never opened is ignored."""

    def __init__(self) -> None:
        self.encoding = "utf-16"
        self._texts: dict[str, Text] = {}
        self._notebooks: dict[str, Notebook] = {}

    def text(self, uri: str) -> Text | None:
        """An open text as the editor has it."""
        return self._texts.get(unquote(uri))

    def notebook(self, uri: str) -> Notebook | None:
        """An open notebook as the editor has it."""
        return self._notebooks.get(unquote(uri))

    def cells(self, notebook: Notebook) -> Iterator[CellText]:
        """The cells of a notebook, in order."""
        for cell in notebook.cells:
            text = self.text(cell.document) or Text(cell.document, "", "python")
            is_code = cell.kind == types.NotebookCellKind.Code
            yield CellText(cell.document, is_code, text.language or "python", text.text)

    def open(self, item: types.TextDocumentItem) -> None:
        """A text is open."""
        self._texts[unquote(item.uri)] = Text(item.uri, item.text, item.language_id, item.version)

    def change(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Iterable[types.TextDocumentContentChangeEvent],
    ) -> None:
        """Make changes in a text, one after another."""
        known = self.text(document.uri)
        if known is None:
            return
        text = known.text
        for change in changes:
            text = _changed(text, change, self.encoding)
        self._texts[unquote(document.uri)] = known._replace(text=text, version=document.version)

    def close(self, uri: str) -> None:
        """A text is open no more."""
        self._texts.pop(unquote(uri), None)

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """A notebook is open, with its cells."""
        found = params.notebook_document
        self._notebooks[unquote(found.uri)] = Notebook(found.uri, tuple(found.cells), found.metadata, found.version)
        for each in params.cell_text_documents:
            self.open(each)

    def change_notebook(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """A notebook has other cells, or they have other texts."""
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
        """A notebook is open no more."""
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


def _changed(text: str, change: types.TextDocumentContentChangeEvent, encoding: str) -> str:
    new: str = change.text
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return new
    lines = Lines(text)
    start = offset(lines, change.range.start.line, change.range.start.character, encoding)
    end = offset(lines, change.range.end.line, change.range.end.character, encoding)
    return text[:start] + new + text[max(start, end) :]


class Place(NamedTuple):
    """A place in a document of the editor."""

    uri: str
    row: int
    column: int


class Placer(NamedTuple):
    """``shown`` gives the open document at an absolute path, ``uri`` names a file that is not open."""

    encoding: str
    shown: Callable[[str], Document | None]
    uri: Callable[[str], str]

    def span(self, path: str, reading: Reading, span: Span) -> tuple[Place, Place]:
        """Where a span of a file lies. One that ends in another cell than it starts in ends where it starts."""
        start, end = (self.offset(path, reading, each) for each in span)
        return start, (end if end.uri == start.uri and end >= start else start)

    def offset(self, path: str, reading: Reading, offset: int) -> Place:
        """Where an offset of a file lies."""
        lines = reading.lines
        row, column, _ = lines.position(offset)
        return self._place(path, reading, lines.place(offset), lines.line(row)[: column - 1], offset)

    def position(self, path: str, reading: Reading, position: Position) -> Place:
        """Where a position of a file lies, as people count it."""
        return self.offset(path, reading, _offset(reading.lines, position))

    def can_edit(self, path: str) -> bool:
        """Whether edits of a file can be told to the editor: a notebook's only where it is open as one."""
        document = self.shown(path)
        return not is_notebook(path) or (document is not None and document.cells is not None)

    def _place(self, path: str, reading: Reading, position: Position, before: str, offset: int) -> Place:
        document = self.shown(path)
        if document is not None and document.cells is not None and 0 < position.cell <= len(document.cells):
            return Place(document.cells[position.cell - 1], position.row - 1, units(before, self.encoding))
        uri = document.uri if document else self.uri(path)
        if position.cell:  # in the notebook's JSON the row is all there is
            return Place(uri, reading.lines.file_row(offset) - 1, 0)
        return Place(uri, position.row - 1, units(before, self.encoding))


def _offset(lines: Lines, position: Position) -> int:
    if not position.cell:
        return lines.offset(max(position.row, 1), position.column)
    cell = next((each for each in lines.cells if each.number == position.cell), None)
    if cell is None:
        return 0
    return lines.offset(lines.position(cell.start).row + position.row - 1, position.column)
