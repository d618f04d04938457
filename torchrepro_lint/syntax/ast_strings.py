"""Where the nodes of ``ast`` stand: lines and columns in bytes of UTF-8 to offsets in code points.

Strings of ``ast``, whose pieces and places it does not keep, → the expressions of ``facts``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Protocol, TypeAlias, cast

from torchrepro_lint.source import ipython
from torchrepro_lint.syntax.lowering_rules import LONGEST_CHAIN, LONGEST_TEXT, joined
from torchrepro_lint.syntax.nodes import Constant, Expression, Operation
from torchrepro_lint.syntax.scope_builder import Convert, Lowering, Untrusted
from torchrepro_lint.syntax.scopes import Scope
from torchrepro_lint.syntax.serialization import SHARED, numbers
from torchrepro_lint.syntax.tokens import Field, Part, Piece, pieces

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


class _Movable(Protocol):
    """A tree whose nodes may be told to stand elsewhere in its text."""

    columns: Columns

    def stand(self, columns: Columns) -> None:
        """From now on the nodes are those of a part of the text with these columns."""
        ...

    def converter(self, collector: Lowering) -> Convert:
        """What converts expressions that stand there."""
        ...


def string(collector: Lowering, scope: Scope, value: str | bytes | None, start: int, end: int) -> Expression:
    """The strings side by side that make up a span; ``value`` is that of them all, None where one is an f-string."""
    if value is not None and _is_plain(collector.tree.text, value, start, end):
        return _constant(value, start, end)
    found = list(pieces(collector.tree.text, start, end))
    if value is not None and (len(found) == 1 or end - start <= LONGEST_TEXT):
        return _constant(value, start, end)
    if value is None and len(found) > LONGEST_CHAIN:
        raise Untrusted
    records = [_piece(collector, scope, piece) for piece in found]
    whole = records.pop()
    for piece, made in zip(reversed(found[:-1]), reversed(records), strict=True):
        whole = joined(made, whole, piece.start, end)
    return whole


def _is_plain(text: str, value: str | bytes, start: int, end: int) -> bool:
    """Whether a span is one string without escapes: all else is longer than its value by more than the quotes."""
    longer = end - start - len(value)
    if longer == (2 if isinstance(value, str) else 3):
        return True
    return (
        longer == 6 and isinstance(value, str) and text.startswith(('"""', "'''"), start) and value in text[start:end]
    )


def _constant(value: str | bytes, start: int, end: int) -> Expression:
    return Operation(start, end, "f", ()) if end - start > LONGEST_TEXT else Constant(start, end, value)


def _piece(collector: Lowering, scope: Scope, piece: Piece) -> Expression:
    start, end, parts = piece
    if parts is not None:
        return Operation(start, end, "f", tuple(_parts(collector, scope, parts, start)))
    if end - start > LONGEST_TEXT:
        return Operation(start, end, "f", ())
    return Constant(start, end, ipython.literal(collector.tree.text[start:end]))


def _parts(collector: Lowering, scope: Scope, parts: tuple[Part, ...], start: int) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, str):
            yield Constant(start, start, part)
        else:
            yield _value(collector, scope, part)
            yield from _parts(collector, scope, part.format, start)


def _value(collector: Lowering, scope: Scope, field: Field) -> Expression:
    """What stands in braces, parsed again: before Python 3.12 the tree does not say where it stands."""
    source = collector.tree.text[field.start : field.end]
    node, columns = _parsed(f"({source}\n)", field.start - 1)
    if columns.span(node)[0] < field.start:  # a tuple, which the parentheses became part of
        stripped = source.strip()
        node, columns = _parsed(stripped, field.end - len(source.lstrip()))
    tree = cast("_Movable", collector.tree)
    outside = tree.columns, collector.convert
    tree.stand(columns)
    collector.convert = tree.converter(collector)
    try:
        return collector.convert(scope, node)
    finally:
        tree.stand(outside[0])
        collector.convert = outside[1]


def _parsed(source: str, base: int) -> tuple[ast.expr, Columns]:
    """An expression that stands at an offset, and where its nodes do."""
    try:
        return ipython.parse(source, "eval").body, Columns(source, base)
    except ipython.REFUSALS as error:
        raise Untrusted from error
