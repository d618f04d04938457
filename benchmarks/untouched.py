"""What edits of a text must preserve: all tokens outside them, comments included, each at its shifted position."""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from torchrepro_lint.source.text import Edit, Span, apply_edits

# They say where lines and blocks end, and belong to no place that an insertion could not come before.
_LAYOUT = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER})


class Token(NamedTuple):
    """A token as it is written, and its offset in the text."""

    start: int
    kind: int
    string: str


class Compared(NamedTuple):
    """How many tokens stand outside the edits, and those of them that are not there afterwards."""

    outside: int
    lost: tuple[Token, ...]


def compare(text: str, edits: Iterable[Edit]) -> Compared:
    """Tokenize a text before and after edits; raises what ``tokenize`` raises for either."""
    ordered = sorted(edits)
    after = {*tokens(apply_edits(text, ordered))}
    outside = [each for each in tokens(text) if not _touched(each, ordered)]
    shift = _Shift(ordered)
    return Compared(len(outside), tuple(each for each in outside if shift.moved(each) not in after))


def tokens(text: str) -> list[Token]:
    """The tokens of a text, without those that only say where lines and blocks end."""
    rows = [0, *accumulate(map(len, io.StringIO(text, newline="")))]
    reader = io.StringIO(text, newline="").readline
    return [
        Token(rows[each.start[0] - 1] + each.start[1], each.type, each.string)
        for each in tokenize.generate_tokens(reader)
        if each.type not in _LAYOUT and each.string.strip()  # before Python 3.12, a carriage return by itself is one
    ]


class _Shift:
    """Where tokens lie after edits none of which touches them."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._ends = [each.span.end for each in edits]
        self._growth = [0, *accumulate(len(each.text) - (each.span.end - each.span.start) for each in edits)]

    def moved(self, token: Token) -> Token:
        return token._replace(start=token.start + self._growth[bisect_left(self._ends, token.start + 1)])


def _touched(token: Token, edits: Sequence[Edit]) -> bool:
    """Whether an edit replaces some of a token, or writes into its middle."""
    end = token.start + len(token.string)
    return any(_meet(each.span, token.start, end) for each in edits)


def _meet(span: Span, start: int, end: int) -> bool:
    return span.start < end and start < span.end if span.start < span.end else start < span.start < end
