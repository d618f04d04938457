"""Edits of a call's argument list: append, replace or remove an argument.

Comments, line breaks and trailing commas between the arguments (trivia) stay as they are.
"""

from __future__ import annotations

import re

from torchrepro_lint.checks.fixes.insertions import line_end, newline
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.nodes import Arg, Call, Comprehension, Record

_COMMENT = lazy_pattern(r"#[^\r\n]*")
_LINE_END = lazy_pattern(r"\r\n|\r|\n")
_INDENT = lazy_pattern(r"(?:\r\n|\r|\n)[ \t\f]*")
_CONTINUATION = lazy_pattern(r"\\(?:\r\n|\r|\n)")
# A comment, or a token that belongs to the arguments.
_TOKEN = lazy_pattern(r"(#[^\r\n]*)|[,=*]|\w+")


class ArgumentTrivia(Record, frozen=True):
    """The trivia of an argument list: ``before`` each argument, from the opening parenthesis or the argument before it,
    and ``after`` the last. The parentheses are not included.
    """

    before: tuple[str, ...]
    after: str

    @property
    def commented(self) -> bool:
        """Whether a comment stands between the parentheses, outside the arguments."""
        return any(has_comment(gap) for gap in (*self.before, self.after))


def argument_trivia(text: str, call: Call) -> ArgumentTrivia:
    """The trivia of a call of ``text``."""
    before, at = [], call.open
    for arg in call.args:
        before.append(text[at : arg.start])
        at = arg.end
    return ArgumentTrivia(tuple(before), text[at : call.end - 1])


def argument_span(text: str, call: Call, arg: Arg) -> Span:
    """The span of an argument with its keyword or stars, without its comma."""
    at = max((other.end for other in call.args if other.end <= arg.start), default=call.open)
    for token in _TOKEN.finditer(text, at, arg.start):
        if token[1] is None and token[0] != ",":
            return Span(token.start(), arg.end)
    return Span(arg.start, arg.end)


def has_comment(gap: str) -> bool:
    """Whether trivia have a comment."""
    return _COMMENT.search(gap) is not None


def has_line_end(gap: str) -> bool:
    """Whether trivia span lines; a continuation by backslash does not count."""
    return _LINE_END.search(_CONTINUATION.sub("", gap)) is not None


def has_comma(gap: str) -> bool:
    """Whether trivia have a comma outside comments."""
    return "," in _COMMENT.sub("", gap)


def comments_and_layout(gap: str) -> str:
    """Trivia without commas, keywords, equal signs, stars and backslashes: comments, line ends and white space stay."""
    return _TOKEN.sub(lambda token: token[1] or "", _CONTINUATION.sub(" ", gap))


def last_indent(gap: str) -> str:
    """The last line end of trivia with the white space after it; empty where they span no lines."""
    found = _INDENT.findall(gap)
    return found[-1] if found else ""


# A line may grow to the first length, or to the longest of the file, but not beyond the second.
_LINE_LENGTH, _LONGEST_LINE = 100, 120


def append_argument(call: Call, text: str, argument: str) -> Edit:
    """Write one more argument (``"generator=g"``) after the others, but before a ``**kwargs`` that ends them.

    Where the others stand one to a line, so does the new one, and a trailing comma stays trailing. The new argument
    also gets its own line where the line of the others would become too long.
    """
    if not call.args:
        return _only_argument(call, text, argument)
    if any(each.keyword and text[each.start - 2 : each.start] == "= " for each in call.args):
        argument = argument.replace("=", " = ", 1)  # the file spaces its keywords
    last, spread = call.args[-1], argument_trivia(text, call)
    broken = _line_break_needed(call, text, len(argument))
    double = next((arg for arg in call.args if arg.star == "**"), None)
    if double is not None:
        return _before_star_star(call, text, double, argument, broken)
    if _is_bare_generator(call):
        body = text[last.start : last.end]
        return Edit(Span(last.start, last.end), f"({body}), {argument}")
    own_line = last_indent(spread.before[-1]) if has_line_end(spread.before[-1]) else broken
    comma = _comma_after(text, last.end) if has_comma(spread.after) else None
    if not own_line:
        place = last.end if comma is None else comma
        return Edit(Span(place, place), f", {argument}")
    # A comment on the last argument's line is about that argument, so the new line starts below it.
    if comma is not None:
        line = _line_rest(text, comma + 1, call.end - 1)
        return Edit(Span(line, line), f"{own_line}{argument},")
    line = _line_rest(text, last.end, call.end - 1)
    return Edit(Span(last.end, line), f",{text[last.end : line]}{own_line}{argument}")


def replace_argument(arg: Arg, value: str) -> Edit:
    """Give an argument another value; its keyword stays."""
    return Edit(Span(arg.start, arg.end), value)


def remove_argument(text: str, call: Call, arg: Arg) -> Edit | None:
    """Remove an argument with its comma; None where a comment beside it would be lost."""
    span = argument_span(text, call, arg)
    index = call.args.index(arg)
    if index + 1 < len(call.args):
        end = argument_span(text, call, call.args[index + 1]).start
        lost, span = text[span.end : end], Span(span.start, end)
    elif index:
        start = call.args[index - 1].end
        lost, span = text[start : span.start], Span(start, span.end)
    else:
        comma = _comma_after(text, arg.end) + 1 if has_comma(argument_trivia(text, call).after) else span.end
        lost, span = text[span.end : comma], Span(span.start, comma)
    return None if has_comment(lost) else Edit(span, "")


def _only_argument(call: Call, text: str, argument: str) -> Edit:
    """Write the argument between empty parentheses; comments there stay behind it, on their own line."""
    inside = text[call.open : call.end - 1]
    if not has_comment(inside):
        return Edit(Span(call.open, call.end - 1), argument)
    return Edit(Span(call.open, call.open), argument)


def _before_star_star(call: Call, text: str, double: Arg, argument: str, broken: str) -> Edit:
    """Write the argument before ``**kwargs``, which keeps its own line."""
    start = argument_span(text, call, double).start
    gap = argument_trivia(text, call).before[call.args.index(double)]
    own_line = last_indent(gap) if has_line_end(gap) else broken
    space = " " if text[start - 1] == "," else ""
    return Edit(Span(start, start), f"{space}{argument},{own_line or ' '}")


def _line_break_needed(call: Call, text: str, more: int) -> str:
    """A line end with indentation, where the last argument's line would become too long by ``more`` characters.

    It aligns with the first argument of a line, or of the call. Empty where there is room, or hardly more below.
    """
    lines = lines_of(text)
    start, end = lines.start_of_line(call.args[-1].end - 1), line_end(text, call.args[-1].end)
    if end - start + len(", ") + more <= max(_LINE_LENGTH, min(lines.longest, _LONGEST_LINE)):
        return ""
    inside = text[call.open : call.args[-1].start]
    if indent := last_indent(inside):  # also below a line that ends with a backslash
        return indent
    column = call.open - lines.start_of_line(call.open)
    return f"{newline(text)}{' ' * column}" if column <= _LINE_LENGTH // 2 else ""


def _is_bare_generator(call: Call) -> bool:
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
