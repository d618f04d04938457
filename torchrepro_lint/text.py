"""Spans of a text, the edits that change it, and where an offset lies."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import NamedTuple

# So many characters of a text are analysed; what is read of it may take two hundred times as many bytes of memory.
LARGEST = 10_000_000

# The line ends of the Python tokenizer: a form feed or U+2028 does not end a line.
_NEWLINE = re.compile(r"\r\n|\r|\n")


class Span(NamedTuple):
    """A half-open range of character offsets, counted in code points from the start of a file."""

    start: int
    end: int


class Position(NamedTuple):
    """A place as people count it: row and column both start at 1, columns count code points.

    In a notebook the row is that of a ``cell``, which is its number among all cells, from 1; elsewhere it is 0.
    """

    row: int
    column: int
    cell: int = 0

    @property
    def line(self) -> str:
        """``12``, in a notebook ``cell 3:12``."""
        return f"cell {self.cell}:{self.row}" if self.cell else str(self.row)

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Cell(NamedTuple):
    """A code cell of a notebook: its number among all cells, from 1, and its span in the program.

    ``rows`` are the rows of the file in which its lines begin; empty where they are not known, after a fix.
    """

    number: int
    start: int
    end: int
    rows: tuple[int, ...] = ()


class Edit(NamedTuple):
    """Replace the text of a span; an empty span inserts."""

    span: Span
    text: str


class Fix(NamedTuple):
    """Edits that belong together: all of them are applied, or none.

    ``edits`` are of the file of the finding, ``elsewhere`` those of other files, by path from the project's root.
    ``safe`` says that they keep the meaning of the program.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool
    elsewhere: tuple[tuple[str, tuple[Edit, ...]], ...] = ()


class Lines:
    """The line index of a text, made when it is first asked: most files have nothing to report.

    ``cells`` are those of a notebook, in order, whose program the text is.
    """

    def __init__(self, text: str, cells: tuple[Cell, ...] = ()) -> None:
        self.text = text
        self.cells = cells

    @cached_property
    def longest(self) -> int:
        """How many letters the longest line has."""
        return max(map(len, self.text.splitlines()), default=0)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """Where an offset lies; the end of the text is a valid offset."""
        row = bisect_right(self._starts, offset)
        return Position(row, offset - self._starts[row - 1] + 1)

    def place(self, offset: int) -> Position:
        """Where an offset lies for a person, who counts the rows of a notebook by cells."""
        row, column, _ = self.position(offset)
        cell = self.cell(offset)
        return Position(row - self.position(cell.start).row + 1, column, cell.number) if cell else Position(row, column)

    def cell(self, offset: int) -> Cell | None:
        """The cell of a notebook that an offset lies in or before."""
        at = bisect_left(self.cells, offset, key=lambda cell: cell.end)
        return self.cells[min(at, len(self.cells) - 1)] if self.cells else None

    def file_row(self, offset: int) -> int:
        """The row in the file itself; 1 where a notebook's are not known."""
        cell = self.cell(offset)
        if cell is None:
            return self.position(offset).row
        row = self.place(offset).row
        return cell.rows[row - 1] if 0 < row <= len(cell.rows) else 1

    def offset(self, row: int, column: int = 1) -> int:
        """The offset of a place; rows beyond the end give the end of the text."""
        if row > len(self._starts):
            return len(self.text)
        return min(self._starts[row - 1] + column - 1, len(self.text))

    def start_of_line(self, offset: int) -> int:
        """The offset at which the line of ``offset`` starts."""
        return self._starts[bisect_right(self._starts, offset) - 1]

    def line(self, row: int) -> str:
        """The text of a line (from 1) without its line end."""
        start = self._starts[row - 1]
        end = self._starts[row] if row < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def __len__(self) -> int:
        return len(self._starts)


@lru_cache(maxsize=2)
def lines_of(text: str) -> Lines:
    """The lines of a text of no notebook: the fixes of a file ask one after the other."""
    return Lines(text)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += (text[at : edit.span.start], edit.text)
        at = edit.span.end
    parts.append(text[at:])
    return "".join(parts)
