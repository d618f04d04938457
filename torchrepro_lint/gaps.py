"""The text between the arguments of a call: white space, comments, line ends, commas, keywords and nothing else."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchrepro_lint.source.text import Span
from torchrepro_lint.syntax.nodes import Arg, Call

_COMMENT = re.compile(r"#[^\r\n]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"(?:\r\n|\r|\n)[ \t\f]*")
_CONTINUATION = re.compile(r"\\(?:\r\n|\r|\n)")
# A comment, or a token that belongs to the arguments.
_TOKEN = re.compile(r"(#[^\r\n]*)|[,=*]|\w+")


class Gaps(NamedTuple):
    """``before`` holds the text before each argument, from the opening parenthesis or the argument before it;
    ``after`` is what follows the last argument. The parentheses are in none of them.
    """

    before: tuple[str, ...]
    after: str

    @property
    def commented(self) -> bool:
        """Whether a comment stands between the parentheses, outside the arguments."""
        return any(has_comment(gap) for gap in (*self.before, self.after))


def gaps(text: str, call: Call) -> Gaps:
    """The gaps of a call of ``text``."""
    before, at = [], call.open
    for arg in call.args:
        before.append(text[at : arg.start])
        at = arg.end
    return Gaps(tuple(before), text[at : call.end - 1])


def argument_span(text: str, call: Call, arg: Arg) -> Span:
    """Where an argument stands with its keyword or stars, without its comma."""
    at = max((other.end for other in call.args if other.end <= arg.start), default=call.open)
    for token in _TOKEN.finditer(text, at, arg.start):
        if token[1] is None and token[0] != ",":
            return Span(token.start(), arg.end)
    return Span(arg.start, arg.end)


def has_comment(gap: str) -> bool:
    """Whether a gap holds a comment."""
    return _COMMENT.search(gap) is not None


def has_line_end(gap: str) -> bool:
    """Whether a gap spans lines; a continuation by backslash does not count."""
    return _LINE_END.search(_CONTINUATION.sub("", gap)) is not None


def has_comma(gap: str) -> bool:
    """Whether a gap holds a comma, one in a comment apart."""
    return "," in _COMMENT.sub("", gap)


def only_layout(gap: str) -> str:
    """A gap without commas, keywords, equal signs, stars and backslashes: comments, line ends and white space stay."""
    return _TOKEN.sub(lambda token: token[1] or "", _CONTINUATION.sub(" ", gap))


def last_indent(gap: str) -> str:
    """The last line end of a gap with the white space after it; empty where it spans no lines."""
    found = _INDENT.findall(gap)
    return found[-1] if found else ""
