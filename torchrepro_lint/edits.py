"""Edits of a call's arguments. Comments, line breaks and trailing commas stay as they are."""

from __future__ import annotations

import re

from torchrepro_lint.facts import Arg, Call, Comprehension
from torchrepro_lint.gaps import argument_span, gaps, has_comma, has_comment, has_line_end, last_indent
from torchrepro_lint.text import Edit, Span

_COMMENT = re.compile(r"#[^\r\n]*")


def append_argument(call: Call, text: str, argument: str) -> Edit:
    """Write one more argument (``"generator=g"``) after the others, but before a ``**kwargs`` that ends them.

    Where the others stand one to a line, so does the new one, and a trailing comma stays trailing.
    """
    if not call.args:
        return _only_argument(call, text, argument)
    double = next((arg for arg in call.args if arg.star == "**"), None)
    if double is not None:
        start = argument_span(text, call, double).start
        return Edit(Span(start, start), f"{argument}, ")
    last, spread = call.args[-1], gaps(text, call)
    if _bare_generator(call):
        body = text[last.start : last.end]
        return Edit(Span(last.start, last.end), f"({body}), {argument}")
    own_line = last_indent(spread.before[-1]) if has_line_end(spread.before[-1]) else ""
    separator = own_line or " "
    if not has_comma(spread.after):
        return Edit(Span(last.end, last.end), f",{separator}{argument}")
    comma = _comma_after(text, last.end)
    if not own_line:
        return Edit(Span(comma, comma), f", {argument}")
    # A comment on the last argument's line speaks of that argument, so the new line starts below it.
    line = _line_rest(text, comma + 1, call.end - 1)
    return Edit(Span(line, line), f"{own_line}{argument},")


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
