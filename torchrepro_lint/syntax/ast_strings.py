"""Lowering of the strings of ``ast``, and the spans of its nodes: lines and UTF-8 byte columns to offsets in code points.

``ast`` does not keep the pieces of adjacent strings, nor (before Python 3.12) where the values in an f-string stand; both are read from the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Protocol, TypeAlias, cast

from torchrepro_lint.source import ipython
from torchrepro_lint.syntax.lowering_rules import MAX_CHAIN_LENGTH, MAX_TEXT_LENGTH, concatenated_strings
from torchrepro_lint.syntax.nodes import Constant, Expression, Operation
from torchrepro_lint.syntax.scope_builder import Convert, Lowering, UnreliableTree
from torchrepro_lint.syntax.scopes import Scope
from torchrepro_lint.syntax.serialization import SHARED_LIMIT, shared_numbers
from torchrepro_lint.syntax.tokens import FStringPart, ReplacementField, StringLiteral, string_literals

# The line ends of the Python tokenizer.
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")

# For a longer text no table of all offsets is made.
_MAX_TABLE = 1 << 22

ToSpan: TypeAlias = Callable[[Any], tuple[int, int]]


class Columns:
    """The offsets of a text's lines, and the spans of its ``ast`` nodes.

    ``starts`` has the offsets of the lines, counted from 1; ``base``, the offset of the text in a longer one, is added to all.
    ``narrow`` says that every byte column is a code point. ``numbers`` has each offset as an interned integer.
    """

    __slots__ = ("narrow", "numbers", "span", "starts")

    def __init__(self, text: str, base: int = 0) -> None:
        self.narrow = text.isascii()
        lines = text.split("\n") if "\r" not in text else _LINES.findall(text)
        newline = 0 if "\r" in text else 1
        # The first entry stands for a line 0.
        starts = self.starts = list(accumulate(chain((0, base), (len(line) + newline for line in lines))))
        most = base + len(text) + 1
        own = [*range(most + 1)] if SHARED_LIMIT <= most < _MAX_TABLE else range(most + 1)
        self.numbers: Sequence[int] = shared_numbers() if most < SHARED_LIMIT else own
        self.span = _narrow(starts, self.numbers) if self.narrow else _wide(starts, self.numbers, lines)


# Functions, not methods: an object that stores its own method is a reference cycle.
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
    """A tree whose nodes can be moved to another part of its text."""

    columns: Columns

    def stand(self, columns: Columns) -> None:
        """Use these columns from now on: those of the part of the text that the nodes belong to."""
        ...

    def converter(self, lowering: Lowering) -> Convert:
        """The function that converts expressions with the current columns."""
        ...


def string(lowering: Lowering, scope: Scope, value: str | bytes | None, start: int, end: int) -> Expression:
    """Lower the adjacent strings of a span; ``value`` is their joint value, None where one is an f-string."""
    if value is not None and _is_plain(lowering.tree.text, value, start, end):
        return _constant(value, start, end)
    found = list(string_literals(lowering.tree.text, start, end))
    if value is not None and (len(found) == 1 or end - start <= MAX_TEXT_LENGTH):
        return _constant(value, start, end)
    if value is None and len(found) > MAX_CHAIN_LENGTH:
        raise UnreliableTree
    records = [_literal(lowering, scope, piece) for piece in found]
    whole = records.pop()
    for piece, made in zip(reversed(found[:-1]), reversed(records), strict=True):
        whole = concatenated_strings(made, whole, piece.start, end)
    return whole


def _is_plain(text: str, value: str | bytes, start: int, end: int) -> bool:
    """Whether a span is one string without escapes: any other is longer than its value by more than the quotes."""
    longer = end - start - len(value)
    if longer == (2 if isinstance(value, str) else 3):
        return True
    return (
        longer == 6 and isinstance(value, str) and text.startswith(('"""', "'''"), start) and value in text[start:end]
    )


def _constant(value: str | bytes, start: int, end: int) -> Expression:
    return Operation(start, end, "f", ()) if end - start > MAX_TEXT_LENGTH else Constant(start, end, value)


def _literal(lowering: Lowering, scope: Scope, piece: StringLiteral) -> Expression:
    start, end, parts = piece
    if parts is not None:
        return Operation(start, end, "f", tuple(_fstring_operands(lowering, scope, parts, start)))
    if end - start > MAX_TEXT_LENGTH:
        return Operation(start, end, "f", ())
    return Constant(start, end, ipython.literal(lowering.tree.text[start:end]))


def _fstring_operands(
    lowering: Lowering, scope: Scope, parts: tuple[FStringPart, ...], start: int
) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, str):
            yield Constant(start, start, part)
        else:
            yield _field_expression(lowering, scope, part)
            yield from _fstring_operands(lowering, scope, part.format, start)


def _field_expression(lowering: Lowering, scope: Scope, field: ReplacementField) -> Expression:
    """Parse and lower the expression of a replacement field: before Python 3.12 ``ast`` does not say where it stands."""
    source = lowering.tree.text[field.start : field.end]
    node, columns = _parsed(f"({source}\n)", field.start - 1)
    if columns.span(node)[0] < field.start:  # a tuple, whose span includes the parentheses
        stripped = source.strip()
        node, columns = _parsed(stripped, field.end - len(source.lstrip()))
    tree = cast("_Movable", lowering.tree)
    outside = tree.columns, lowering.convert
    tree.stand(columns)
    lowering.convert = tree.converter(lowering)
    try:
        return lowering.convert(scope, node)
    finally:
        tree.stand(outside[0])
        lowering.convert = outside[1]


def _parsed(source: str, base: int) -> tuple[ast.expr, Columns]:
    """Parse an expression that stands at an offset; returns its node and columns."""
    try:
        return ipython.parse(source, "eval").body, Columns(source, base)
    except ipython.PARSER_ERRORS as error:
        raise UnreliableTree from error
