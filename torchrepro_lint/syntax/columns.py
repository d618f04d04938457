"""Where the nodes of ``ast`` stand: lines and columns in bytes of UTF-8 to offsets in code points."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, TypeAlias

from torchrepro_lint.shared import SHARED, numbers

# The line ends of the Python tokenizer.
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")

# A longer text has too many offsets to make a number for each beforehand.
_MOST = 1 << 22

ToSpan: TypeAlias = Callable[[Any], tuple[int, int]]


class Columns:
    """Where the lines of a text begin, and the spans of its nodes.

    ``starts`` has the offsets of the lines, which count from 1; ``base`` is added to all: where the text stands in a longer
    one. ``narrow`` says that every column of the text is a code point. ``numbers`` has each offset at its place.
    """

    __slots__ = ("narrow", "numbers", "span", "starts")

    def __init__(self, text: str, base: int = 0) -> None:
        self.narrow = text.isascii()
        lines = text.split("\n") if "\r" not in text else _LINES.findall(text)
        newline = 0 if "\r" in text else 1
        # The first entry stands for a line 0.
        starts = self.starts = list(accumulate(chain((0, base), (len(line) + newline for line in lines))))
        most = base + len(text) + 1
        own = [*range(most + 1)] if SHARED <= most < _MOST else range(most + 1)
        self.numbers: Sequence[int] = numbers() if most < SHARED else own
        self.span = _narrow(starts, self.numbers) if self.narrow else _wide(starts, self.numbers, lines)


# These are no methods: an object that holds its own method stays in memory until garbage is collected.
def _narrow(starts: list[int], numbers: Sequence[int]) -> ToSpan:
    def span(node: Any) -> tuple[int, int]:
        return (
            numbers[starts[node.lineno] + node.col_offset],
            numbers[starts[node.end_lineno] + node.end_col_offset],
        )

    return span


def _wide(starts: list[int], numbers: Sequence[int], lines: list[str]) -> ToSpan:
    wide = {row: line for row, line in enumerate(lines, 1) if not line.isascii()}
    known: dict[int, list[int]] = {}

    def offset(row: int, column: int) -> int:
        if row not in wide:
            return numbers[starts[row] + column]
        columns = known.get(row)
        if columns is None:
            columns = known[row] = list(_columns(wide[row]))
        return numbers[starts[row] + columns[column]]

    def span(node: Any) -> tuple[int, int]:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    return span


def _columns(line: str) -> Iterator[int]:
    """The column in code points of each byte of a line, and of its end."""
    for column, letter in enumerate(line):
        code = ord(letter)
        width = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        for _ in range(width):
            yield column
    yield len(line)
