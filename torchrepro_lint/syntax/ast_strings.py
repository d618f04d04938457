"""Strings of ``ast``, whose pieces and places it does not keep, → the expressions of ``facts``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol, cast

from torchrepro_lint.expressions import LONGEST_CHAIN, LONGEST_TEXT, joined
from torchrepro_lint.facts import Constant, Expression, Operation
from torchrepro_lint.scopes import Scope
from torchrepro_lint.source import ipython
from torchrepro_lint.syntax.columns import Columns
from torchrepro_lint.syntax.literals import Field, Part, Piece, pieces
from torchrepro_lint.syntax.tree import Convert, Lowering, Untrusted


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
