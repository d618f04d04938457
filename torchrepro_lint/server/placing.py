"""Offsets of files as places in an editor: rows and columns from 0, in its units, and the cells of a notebook by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.server.documents import Document
from torchrepro_lint.server.units import units
from torchrepro_lint.source.decoding import is_notebook
from torchrepro_lint.source.text import Lines, Position, Span


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
