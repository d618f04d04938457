"""Spans of a text, the edits that change it, and where an offset lies."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

# The line ends of the Python tokenizer: a form feed or U+2028 does not end a line.
_NEWLINE = re.compile(r"\r\n|\r|\n")


class Span(NamedTuple):
    """A half-open range of character offsets, counted in code points from the start of a file."""

    start: int
    end: int


class Position(NamedTuple):
    """A place as people count it: row and column both start at 1, columns count code points."""

    row: int
    column: int


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
    """The line index of a text, made when it is first asked: most files have nothing to report."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """Where an offset lies; the end of the text is a valid offset."""
        row = bisect_right(self._starts, offset)
        return Position(row, offset - self._starts[row - 1] + 1)

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


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += (text[at : edit.span.start], edit.text)
        at = edit.span.end
    parts.append(text[at:])
    return "".join(parts)
