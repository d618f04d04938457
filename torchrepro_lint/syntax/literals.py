"""The pieces of adjacent strings, and the values inside f-strings, read from the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from torchrepro_lint.syntax.brackets import skip
from torchrepro_lint.syntax.tree import Untrusted


class Field(NamedTuple):
    """What stands between the braces of an f-string: the span of the expression, and the parts of the format."""

    start: int
    end: int
    format: tuple[Part, ...]


Part: TypeAlias = "str | Field"


class Piece(NamedTuple):
    """One string of several that stand side by side; ``parts`` are those of an f-string, as written, else None."""

    start: int
    end: int
    parts: tuple[Part, ...] | None


_QUOTES = ("'", '"', "'''", '"""')
_OPENING = re.compile(r"([A-Za-z]*)('''|\"\"\"|'|\")")
# What may end the expression in the braces, and what must be passed over on the way there.
_STOP = re.compile(r"[\[({]|[\])}]|[=!<>]=|[!:=#\\]|(?:\b(?i:(r[bft]?|[bft]r?|u)))?('''|\"\"\"|'|\")")
_CONVERSION = re.compile(r"=?(?:\s|#[^\r\n]*)*(?:!\s*[a-z](?:\s|#[^\r\n]*)*)?")
_LINE = re.compile(r"[^\r\n]*")
_FORMAT = re.compile(r"[^{}]*")


def _runs(ordinary: str, others: str, quote: str) -> str:
    """The contents of a string up to its closing quotes: ordinary letters, and what is else allowed between them."""
    if len(quote) == 3:
        others = f"{others}|{quote[0]}(?!{quote[1:]})"
    return f"(?s:{ordinary}*(?:(?:{others}){ordinary}*)*)"


# From after the opening quotes to after the closing ones.
_PLAIN = {quote: re.compile(_runs(rf"[^\\{quote[0]}]", r"\\.", quote) + quote) for quote in _QUOTES}
# The text of an f-string up to a value or the closing quotes. A backslash before a brace is only a backslash.
_BRACES = r"{{|}}|\\[^{}]|\\(?=[{}])"
_RAW_TEXT = {quote: re.compile(_runs(rf"[^{{}}\\{quote[0]}]", _BRACES, quote)) for quote in _QUOTES}
_TEXT = {quote: re.compile(_runs(rf"[^{{}}\\{quote[0]}]", rf"\\N{{[^}}]*}}|{_BRACES}", quote)) for quote in _QUOTES}


def pieces(text: str, start: int, end: int) -> Iterator[Piece]:
    """The strings that stand side by side in a span. Raises Untrusted where it holds anything else."""
    at = start
    while at < end:
        opening = _OPENING.match(text, at)
        if opening is None:
            raise Untrusted
        prefix, quote = opening[1].lower(), opening[2]
        parts, stop = _string(text, opening.end(), prefix, quote)
        yield Piece(at, stop, parts)
        at = skip(text, stop)


def _string(text: str, at: int, prefix: str, quote: str) -> tuple[tuple[Part, ...] | None, int]:
    """The parts of the string whose contents begin here, and where it ends."""
    if "f" in prefix:
        return _formatted(text, at, quote, raw="r" in prefix)
    plain = _PLAIN[quote].match(text, at)
    if plain is None or "t" in prefix:
        raise Untrusted
    return None, plain.end()


def _formatted(text: str, at: int, quote: str, *, raw: bool) -> tuple[tuple[Part, ...], int]:
    parts: list[Part] = []
    while True:
        run = (_RAW_TEXT if raw else _TEXT)[quote].match(text, at)
        assert run is not None
        if run[0]:
            parts.append(run[0])
        at = run.end()
        if text.startswith(quote, at):
            return tuple(parts), at + len(quote)
        if not text.startswith("{", at):
            raise Untrusted
        field, at = _field(text, at + 1)
        parts.append(field)


def _field(text: str, start: int) -> tuple[Field, int]:
    """The value whose expression begins here, and the offset after its closing brace."""
    end = _expression_end(text, start)
    conversion = _CONVERSION.match(text, end)
    assert conversion is not None
    at = conversion.end()
    parts: list[Part] = []
    if text.startswith(":", at):
        parts, at = _format(text, at + 1)
    if not text.startswith("}", at):
        raise Untrusted
    return Field(start, end, tuple(parts)), at + 1


def _format(text: str, at: int) -> tuple[list[Part], int]:
    """The parts of a format up to the closing brace: here every opening one begins a value."""
    parts: list[Part] = []
    while True:
        run = _FORMAT.match(text, at)
        assert run is not None
        if run[0].endswith("\\N"):
            raise Untrusted
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
    raise Untrusted
