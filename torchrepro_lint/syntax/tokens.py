"""Tokens between the nodes of a text that ``ast`` does not keep: parentheses, commas, comments, pieces of strings, f-string fields.

It also finds the names that Python reads otherwise than they are written: it takes names in their NFKC form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from torchrepro_lint.syntax.scope_builder import UnreliableTree

# White space, the backslash of a continuation, and comments: each with its line end, so that none is cut short.
_BLANK = r"(?:[\s\\]|#[^\r\n]*(?:[\r\n]|\Z))"
_SKIP = re.compile(rf"{_BLANK}*")
_CLOSED = re.compile(rf"(?:{_BLANK}*\))*")
_TRAILED = re.compile(rf"(?:{_BLANK}*[),])*")
_OPENING_BRACKET = re.compile(rf"(?:{_BLANK}|\))*\(")
_OPENED = re.compile(r"#[^\r\n]*|(\()")
_CLOSING = re.compile(r"#[^\r\n]*|(\))")


def skip(text: str, at: int) -> int:
    """Where the next token stands."""
    found = _SKIP.match(text, at)
    assert found is not None
    return found.end()


def end_of_parentheses(text: str, at: int) -> int:
    """The end of the closing parentheses that follow; ``at`` where there are none."""
    found = _CLOSED.match(text, at)
    assert found is not None
    return found.end()


def end_of_trailers(text: str, at: int, end: int) -> int:
    """The end of the closing parentheses and commas that follow, before ``end``."""
    found = _TRAILED.match(text, at, end)
    assert found is not None
    return found.end()


def after_opening(text: str, at: int) -> int:
    """The offset after the opening parenthesis that follows, closing ones passed over; -1 where none does."""
    found = _OPENING_BRACKET.match(text, at)
    return found.end() if found is not None else -1


def with_parentheses(text: str, before: int, start: int, end: int) -> tuple[int, int]:
    """The span of an expression with its own parentheses; only those after ``before`` can be its own."""
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


class ReplacementField(NamedTuple):
    """What stands between the braces of an f-string: the span of the expression, and the parts of the format."""

    start: int
    end: int
    format: tuple[FStringPart, ...]


FStringPart: TypeAlias = "str | ReplacementField"


class StringLiteral(NamedTuple):
    """One string of several that stand side by side; ``parts`` are those of an f-string, as written, else None."""

    start: int
    end: int
    parts: tuple[FStringPart, ...] | None


_QUOTES = ("'", '"', "'''", '"""')
_OPENING_QUOTE = re.compile(r"([A-Za-z]*)('''|\"\"\"|'|\")")
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


def string_literals(text: str, start: int, end: int) -> Iterator[StringLiteral]:
    """The strings that stand side by side in a span. Raises Untrusted where it holds anything else."""
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
    """The parts of the string whose contents begin here, and where it ends."""
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
    """The value whose expression begins here, and the offset after its closing brace."""
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
    """The parts of a format up to the closing brace: here every opening one begins a value."""
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


# A name, and what may be: of the marks that stand in names, none is a letter to regular expressions.
_RUN = re.compile(r"[^\W\d](?:\w|[^\x00-\x7f\s\w])*")
# Comments and strings, documentation first.
_NO_NAMES = re.compile(
    r"#[^\r\n]*|(?:\b([A-Za-z]{1,2}))?(?:\"{3}(?s:[^\\]|\\.)*?\"{3}|'{3}(?s:[^\\]|\\.)*?'{3}"
    r"|\"(?:\\(?s:.)|[^\"\\\r\n])*\"|'(?:\\(?s:.)|[^'\\\r\n])*')"
)


def has_unnormalised_names(text: str) -> bool:
    """Whether a word of a text may be called otherwise in its tree; words of comments and plain strings do not count."""
    return _holds_renamed(text) and _holds_renamed(_NO_NAMES.sub(_code, text))


def _code(token: re.Match[str]) -> str:
    """What of a comment or string may be code: an f-string."""
    return token[0] if token[1] and not set(token[1].lower()) <= set("rub") else " "


def _holds_renamed(text: str) -> bool:
    words = (word for run in set(_RUN.findall(text)) if not run.isascii() for word in _names(run))
    return any(unicodedata.normalize("NFKC", word) != word for word in words)


def _names(run: str) -> list[str]:
    return "".join(each if f"a{each}".isidentifier() else " " for each in run).split()
