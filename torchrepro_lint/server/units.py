"""Columns in the units that an editor counts in: bytes of UTF-8, words of UTF-16, or code points."""

from __future__ import annotations

from torchrepro_lint.source.text import Lines

ENCODINGS = ("utf-8", "utf-16", "utf-32")
_LAST_NARROW = "\uffff"


def units(text: str, encoding: str) -> int:
    """How long a text is in the units of one of ``ENCODINGS``."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(letter > _LAST_NARROW for letter in text)


def code_points(text: str, count: int, encoding: str) -> int:
    """How many code points the first units of a text are: all where there are fewer, and none in part."""
    if encoding == "utf-32" or text.isascii():
        return min(count, len(text))
    seen = 0
    for number, letter in enumerate(text):
        seen += units(letter, encoding)
        if seen > count:
            return number
    return len(text)


def offset(lines: Lines, row: int, column: int, encoding: str) -> int:
    """The offset of a place of a text, as near as there is one; its row counts from 0, its column in units."""
    if row >= len(lines):
        return len(lines.text)
    return lines.offset(row + 1, code_points(lines.line(row + 1), column, encoding) + 1)
