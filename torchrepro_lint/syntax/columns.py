"""Where the nodes of ``ast`` stand: lines and columns in bytes of UTF-8 to offsets in code points."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from typing import Any

# The line ends of the Python tokenizer.
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")


def spans(text: str, base: int = 0) -> Callable[[Any], tuple[int, int]]:
    """What tells the span of a text's nodes. ``base`` is added to all offsets: where the text stands in a longer one."""
    columns = _Columns(text, base)
    return columns.narrow if text.isascii() else columns.wide


class _Columns:
    __slots__ = ("_columns", "_wide", "starts")

    def __init__(self, text: str, base: int) -> None:
        lines = text.split("\n") if "\r" not in text else _LINES.findall(text)
        newline = 0 if "\r" in text else 1
        # The first entry stands for a line 0.
        self.starts = list(accumulate(chain((0, base), (len(line) + newline for line in lines))))
        self._wide = {} if text.isascii() else {row: line for row, line in enumerate(lines, 1) if not line.isascii()}
        self._columns: dict[int, list[int]] = {}

    def narrow(self, node: Any) -> tuple[int, int]:
        starts = self.starts
        return starts[node.lineno] + node.col_offset, starts[node.end_lineno] + node.end_col_offset

    def wide(self, node: Any) -> tuple[int, int]:
        starts, wide, row, last = self.starts, self._wide, node.lineno, node.end_lineno
        start, end = node.col_offset, node.end_col_offset
        if row in wide:
            start = self._column(row, start)
        if last in wide:
            end = self._column(last, end)
        return starts[row] + start, starts[last] + end

    def _column(self, row: int, column: int) -> int:
        columns = self._columns.get(row)
        if columns is None:
            columns = self._columns[row] = list(_columns(self._wide[row]))
        return columns[column]


def _columns(line: str) -> Iterator[int]:
    """The column in code points of each byte of a line, and of its end."""
    for column, letter in enumerate(line):
        code = ord(letter)
        width = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        for _ in range(width):
            yield column
    yield len(line)
