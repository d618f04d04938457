"""Tokens that ``ast`` does not keep: parentheses, commas, comments, pieces of strings, f-string fields, and positions of nodes.

``ast`` counts lines and UTF-8 bytes; here they become offsets in code points. Names are read in their NFKC form, as Python takes
them. The pieces of adjacent strings, and the values in an f-string, are lowered from the text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import PARSER_ERRORS, literal, parse
from torchrepro_lint.syntax.lowering_rules import MAX_CHAIN_LENGTH, MAX_TEXT_LENGTH, concatenated_strings
from torchrepro_lint.syntax.nodes import SHARED_LIMIT, Constant, Expression, Operation, Record, shared_numbers
from torchrepro_lint.syntax.parser_tree import Convert, Lowering, UnreliableTree
from torchrepro_lint.syntax.scopes import Scope

# White space, the backslash of a continuation, and comments: each with its line end, so that none is cut short.
_BLANK = r"(?:[\s\\]|#[^\r\n]*(?:[\r\n]|\Z))"
_SKIP = lazy_pattern(rf"{_BLANK}*")
_CLOSED = lazy_pattern(rf"(?:{_BLANK}*\))*")
_TRAILED = lazy_pattern(rf"(?:{_BLANK}*[),])*")
_OPENING_BRACKET = lazy_pattern(rf"(?:{_BLANK}|\))*\(")
_OPENED = lazy_pattern(r"#[^\r\n]*|(\()")
_CLOSING = lazy_pattern(r"#[^\r\n]*|(\))")

# Comments and strings, in which brackets and words do not count; an unclosed string extends to the end. Each matches in linear time.
HIDDEN = (
    r"#[^\r\n]*"
    r"|\"{3}(?s:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}(?s:\\.|[^\\])*?(?:'{3}|\Z)"
    r"|\"(?:\\(?s:.)|[^\"\\\r\n])*\"?|'(?:\\(?s:.)|[^'\\\r\n])*'?"
)


def skip(text: str, at: int) -> int:
    """The offset of the next token."""
    found = _SKIP.match(text, at)
    assert found is not None
    return found.end()


def end_of_parentheses(text: str, at: int) -> int:
    """The end of the closing parentheses that follow ``at``; ``at`` itself where there are none."""
    found = _CLOSED.match(text, at)
    assert found is not None
    return found.end()


def end_of_trailers(text: str, at: int, end: int) -> int:
    """The end of the closing parentheses and commas that follow, before ``end``."""
    found = _TRAILED.match(text, at, end)
    assert found is not None
    return found.end()


def after_opening(text: str, at: int) -> int:
    """The offset after the opening parenthesis that follows, past any closing ones; -1 where there is none."""
    found = _OPENING_BRACKET.match(text, at)
    return found.end() if found is not None else -1


def with_parentheses(text: str, before: int, start: int, end: int) -> tuple[int, int]:
    """The span of an expression with its own parentheses, all of which open after ``before``."""
    if text.find("(", before, start) < 0:
        return start, end
    opened = [match.start(1) for match in _OPENED.finditer(text, before, start) if match[1]]
    if not opened:
        return start, end
    return opened[0], _nth_closing(text, end, len(opened))


def encloses(text: str, start: int, first: tuple[int, int]) -> bool:
    """Whether the parenthesis at ``start`` is that of the tuple that begins there, not one of its first element's."""
    if first[0] == start:
        return False
    opened = sum(1 for match in _OPENED.finditer(text, start, first[0]) if match[1])
    return opened > sum(
        1 for match in _CLOSING.finditer(text, first[1], end_of_parentheses(text, first[1])) if match[1]
    )


def _nth_closing(text: str, at: int, count: int) -> int:
    for match in _CLOSING.finditer(text, at):
        if match[1]:
            count -= 1
            if not count:
                return match.end()
    return -1


class ReplacementField(Record, frozen=True):
    """A replacement field of an f-string: the span of the expression, and the parts of the format specifier."""

    start: int
    end: int
    format: tuple[FStringPart, ...]


FStringPart: TypeAlias = "str | ReplacementField"


class StringLiteral(NamedTuple):
    """One of several adjacent string literals; ``parts`` are those of an f-string, as written, else None."""

    start: int
    end: int
    parts: tuple[FStringPart, ...] | None


_QUOTES = ("'", '"', "'''", '"""')
_OPENING_QUOTE = lazy_pattern(r"([A-Za-z]*)('''|\"\"\"|'|\")")
# Tokens that may end the expression in a replacement field, and those to skip before that.
_STOP = lazy_pattern(r"[\[({]|[\])}]|[=!<>]=|[!:=#\\]|(?:\b(?i:(r[bft]?|[bft]r?|u)))?('''|\"\"\"|'|\")")
_CONVERSION = lazy_pattern(r"=?(?:\s|#[^\r\n]*)*(?:!\s*[a-z](?:\s|#[^\r\n]*)*)?")
_LINE = lazy_pattern(r"[^\r\n]*")
_FORMAT = lazy_pattern(r"[^{}]*")


def _contents(ordinary: str, others: str, quote: str) -> str:
    """A pattern for the contents of a string up to its closing quotes: ordinary characters, and what else may stand between them."""
    if len(quote) == 3:
        others = f"{others}|{quote[0]}(?!{quote[1:]})"
    return f"(?s:{ordinary}*(?:(?:{others}){ordinary}*)*)"


# From after the opening quotes to after the closing ones.
_PLAIN = {quote: lazy_pattern(_contents(rf"[^\\{quote[0]}]", r"\\.", quote) + quote) for quote in _QUOTES}
# The text of an f-string up to a replacement field or the closing quotes. A backslash before a brace is only a backslash.
_BRACES = r"{{|}}|\\[^{}]|\\(?=[{}])"
_RAW_TEXT = {quote: lazy_pattern(_contents(rf"[^{{}}\\{quote[0]}]", _BRACES, quote)) for quote in _QUOTES}
_TEXT = {
    quote: lazy_pattern(_contents(rf"[^{{}}\\{quote[0]}]", rf"\\N{{[^}}]*}}|{_BRACES}", quote)) for quote in _QUOTES
}


def string_literals(text: str, start: int, end: int) -> Iterator[StringLiteral]:
    """The adjacent string literals of a span. Raises UnreliableTree where it contains anything else."""
    at = start
    while at < end:
        opening = _OPENING_QUOTE.match(text, at)
        if opening is None:
            raise UnreliableTree
        prefix, quote = opening[1].lower(), opening[2]
        parts, stop = _string(text, opening.end(), prefix, quote)
        yield StringLiteral(at, stop, parts)
        at = skip(text, stop)


def _string(text: str, at: int, prefix: str, quote: str) -> tuple[tuple[FStringPart, ...] | None, int]:
    """The parts of the string whose contents begin here, and its end."""
    if "f" in prefix:
        return _formatted(text, at, quote, raw="r" in prefix)
    plain = _PLAIN[quote].match(text, at)
    if plain is None or "t" in prefix:
        raise UnreliableTree
    return None, plain.end()


def _formatted(text: str, at: int, quote: str, *, raw: bool) -> tuple[tuple[FStringPart, ...], int]:
    parts: list[FStringPart] = []
    while True:
        run = (_RAW_TEXT if raw else _TEXT)[quote].match(text, at)
        assert run is not None
        if run[0]:
            parts.append(run[0])
        at = run.end()
        if text.startswith(quote, at):
            return tuple(parts), at + len(quote)
        if not text.startswith("{", at):
            raise UnreliableTree
        field, at = _field(text, at + 1)
        parts.append(field)


def _field(text: str, start: int) -> tuple[ReplacementField, int]:
    """The replacement field whose expression begins here, and the offset after its closing brace."""
    end = _expression_end(text, start)
    conversion = _CONVERSION.match(text, end)
    assert conversion is not None
    at = conversion.end()
    parts: list[FStringPart] = []
    if text.startswith(":", at):
        parts, at = _format(text, at + 1)
    if not text.startswith("}", at):
        raise UnreliableTree
    return ReplacementField(start, end, tuple(parts)), at + 1


def _format(text: str, at: int) -> tuple[list[FStringPart], int]:
    """The parts of a format specifier up to the closing brace; every opening brace begins a replacement field."""
    parts: list[FStringPart] = []
    while True:
        run = _FORMAT.match(text, at)
        assert run is not None
        if run[0].endswith("\\N"):
            raise UnreliableTree
        if run[0]:
            parts.append(run[0])
        at = run.end()
        if not text.startswith("{", at):
            return parts, at
        field, at = _field(text, at + 1)
        parts.append(field)


def _expression_end(text: str, at: int) -> int:
    depth = 0
    while (stop := _STOP.search(text, at)) is not None:
        at = stop.end()
        found = stop[0]
        if stop[2]:
            at = _string(text, at, (stop[1] or "").lower(), stop[2])[1]
        elif found in "[({":
            depth += 1
        elif found == "\\":
            break
        elif found == "#":  # a comment, which Python 3.12 takes
            comment = _LINE.match(text, at)
            assert comment is not None
            at = comment.end()
        elif depth:
            depth -= found in "])}"
        elif len(found) == 1:
            return stop.start()
    raise UnreliableTree


# The line ends of the Python tokenizer.
_LINES = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n)?")

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
    return Constant(start, end, literal(lowering.tree.text[start:end]))


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
        return parse(source, "eval").body, Columns(source, base)
    except PARSER_ERRORS as error:
        raise UnreliableTree from error
