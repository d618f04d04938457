"""What stands between the nodes of a text: parentheses, commas, comments and white space; no strings."""

from __future__ import annotations

import re

# White space, the backslash of a continuation, and comments: each with its line end, so that none is cut short.
_BLANK = r"(?:[\s\\]|#[^\r\n]*(?:[\r\n]|\Z))"
_SKIP = re.compile(rf"{_BLANK}*")
_CLOSED = re.compile(rf"(?:{_BLANK}*\))*")
_TRAILED = re.compile(rf"(?:{_BLANK}*[),])*")
_OPENING = re.compile(rf"(?:{_BLANK}|\))*\(")
_OPENED = re.compile(r"#[^\r\n]*|(\()")
_CLOSING = re.compile(r"#[^\r\n]*|(\))")


def skip(text: str, at: int) -> int:
    """Where the next token stands."""
    found = _SKIP.match(text, at)
    assert found is not None
    return found.end()


def closed(text: str, at: int) -> int:
    """The end of the closing parentheses that follow; ``at`` where there are none."""
    found = _CLOSED.match(text, at)
    assert found is not None
    return found.end()


def trailed(text: str, at: int, end: int) -> int:
    """The end of the closing parentheses and commas that follow, before ``end``."""
    found = _TRAILED.match(text, at, end)
    assert found is not None
    return found.end()


def opening(text: str, at: int) -> int:
    """The offset after the opening parenthesis that follows, closing ones passed over; -1 where none does."""
    found = _OPENING.match(text, at)
    return found.end() if found is not None else -1


def around(text: str, before: int, start: int, end: int) -> tuple[int, int]:
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
    return opened > sum(1 for match in _CLOSING.finditer(text, first[1], closed(text, first[1])) if match[1])


def _nth_closing(text: str, at: int, count: int) -> int:
    for match in _CLOSING.finditer(text, at):
        if match[1]:
            count -= 1
            if not count:
                return match.end()
    return -1
