"""The text between the arguments of a call: white space, comments, line ends, commas, keywords and nothing else.

Edits of a call's arguments. Comments, line breaks and trailing commas stay as they are.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from torchrepro_lint.checks.fixes.insertions import line_end, newline
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.nodes import Arg, Call, Comprehension

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


# Lines may become so long, and as long as the longest of the file, but no longer than most linters admit.
_ROOM, _MOST = 100, 120


def append_argument(call: Call, text: str, argument: str) -> Edit:
    """Write one more argument (``"generator=g"``) after the others, but before a ``**kwargs`` that ends them.

    Where the others stand one to a line, so does the new one, and a trailing comma stays trailing. It also gets a line of its
    own where that of the others would become too long.
    """
    if not call.args:
        return _only_argument(call, text, argument)
    last, spread = call.args[-1], gaps(text, call)
    broken = _break(call, text, len(argument))
    double = next((arg for arg in call.args if arg.star == "**"), None)
    if double is not None:
        return _before_double(call, text, double, argument, broken)
    if _bare_generator(call):
        body = text[last.start : last.end]
        return Edit(Span(last.start, last.end), f"({body}), {argument}")
    own_line = last_indent(spread.before[-1]) if has_line_end(spread.before[-1]) else broken
    comma = _comma_after(text, last.end) if has_comma(spread.after) else None
    if not own_line:
        place = last.end if comma is None else comma
        return Edit(Span(place, place), f", {argument}")
    # A comment on the last argument's line speaks of that argument, so the new line starts below it.
    if comma is not None:
        line = _line_rest(text, comma + 1, call.end - 1)
        return Edit(Span(line, line), f"{own_line}{argument},")
    line = _line_rest(text, last.end, call.end - 1)
    return Edit(Span(last.end, line), f",{text[last.end : line]}{own_line}{argument}")


def replace_argument(arg: Arg, value: str) -> Edit:
    """Give an argument another value; its keyword stays."""
    return Edit(Span(arg.start, arg.end), value)


def remove_argument(text: str, call: Call, arg: Arg) -> Edit | None:
    """Take an argument out with its comma; None where a comment beside it would be lost."""
    span = argument_span(text, call, arg)
    index = call.args.index(arg)
    if index + 1 < len(call.args):
        end = argument_span(text, call, call.args[index + 1]).start
        lost, span = text[span.end : end], Span(span.start, end)
    elif index:
        start = call.args[index - 1].end
        lost, span = text[start : span.start], Span(start, span.end)
    else:
        comma = _comma_after(text, arg.end) + 1 if has_comma(gaps(text, call).after) else span.end
        lost, span = text[span.end : comma], Span(span.start, comma)
    return None if has_comment(lost) else Edit(span, "")


def _only_argument(call: Call, text: str, argument: str) -> Edit:
    """Between empty parentheses; comments in there stay behind it, on their own line."""
    inside = text[call.open : call.end - 1]
    if not has_comment(inside):
        return Edit(Span(call.open, call.end - 1), argument)
    return Edit(Span(call.open, call.open), argument)


def _before_double(call: Call, text: str, double: Arg, argument: str, broken: str) -> Edit:
    """Before ``**kwargs``, which keeps its own line."""
    start = argument_span(text, call, double).start
    gap = gaps(text, call).before[call.args.index(double)]
    own_line = last_indent(gap) if has_line_end(gap) else broken
    space = " " if text[start - 1] == "," else ""
    return Edit(Span(start, start), f"{space}{argument},{own_line or ' '}")


def _break(call: Call, text: str, more: int) -> str:
    """A line end with indentation, where the last argument's line would be too long with so many characters ``more``.

    It goes below the first argument of a line, or of the call. Empty where there is room enough, or hardly more below.
    """
    lines = lines_of(text)
    start, end = lines.start_of_line(call.args[-1].end - 1), line_end(text, call.args[-1].end)
    if end - start + len(", ") + more <= max(_ROOM, min(lines.longest, _MOST)):
        return ""
    inside = text[call.open : call.args[-1].start]
    if has_line_end(inside):
        return last_indent(inside)
    column = call.open - lines.start_of_line(call.open)
    return f"{newline(text)}{' ' * column}" if column <= _ROOM // 2 else ""


def _bare_generator(call: Call) -> bool:
    """Whether the only argument is a generator that shares the call's parentheses."""
    value = call.args[0].value
    if len(call.args) != 1 or not isinstance(value, Comprehension) or value.kind != "generator":
        return False
    return value.start == call.args[0].start


def _comma_after(text: str, at: int) -> int:
    """The offset of the next comma that is no part of a comment."""
    while text[at] != ",":
        comment = _COMMENT.match(text, at)
        at = comment.end() if comment else at + 1
    return at


def _line_rest(text: str, at: int, end: int) -> int:
    """The end of the white space and comment that follow on the line of ``at``, at most ``end``."""
    match = re.compile(r"[ \t\f]*(?:#[^\r\n]*)?").match(text, at, end)
    assert match is not None
    return match.end() if match[0].strip() else at
