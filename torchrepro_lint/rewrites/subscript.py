"""A call written as a subscript, piece by piece: what is not named here keeps its text, comments and line breaks."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchrepro_lint.gaps import gaps, has_comma, has_comment, has_line_end, last_indent, only_layout
from torchrepro_lint.rewrites.selecting import Selecting
from torchrepro_lint.source.ipython import REFUSALS, parse
from torchrepro_lint.source.text import Edit, Span
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Ref,
    Subscript,
)

_EMPTY_LINES = re.compile(r"(\r\n|\r|\n)[ \t]*(?=[\r\n])")
# What a subscript or an attribute can follow without parentheses.
_PRIMARY = (Ref, Attribute, Call, Subscript, Collection, Comprehension)


class Shape(NamedTuple):
    """What stands around the index: ``x`` ``lead`` ``[before, wrap[0] index wrap[1], after]`` ``tail``."""

    before: str
    after: str
    wrap: tuple[str, str] = ("", "")
    tail: str = ""
    lead: str = ""


def subscript(text: str, parts: Selecting, shape: Shape) -> tuple[Edit, ...]:
    """The edits that turn the call into a subscript; none where a comment would be lost.

    Input and index are never part of an edit, so that calls nested in them can be rewritten in the same round.
    """
    if parts.input is not None and parts.input.start > parts.by.start:
        return _reordered(text, parts, shape)
    lead = _before_bracket(text, parts)
    if lead is None:
        return ()
    edits, start, kept = lead
    opening = Edit(Span(start, parts.by.start), f"{kept}{shape.lead}[{_inside(text, parts, shape)}{shape.wrap[0]}")
    closing = Edit(Span(parts.by.end, parts.call.end), shape.wrap[1] + _end(text, parts, shape))
    return (*edits, opening, closing)


def needs_parentheses(text: str, arg: Arg) -> bool:
    """Whether an argument has to be put in parentheses before a subscript or an attribute can follow it."""
    if arg.start != arg.value.start:
        return False
    return not is_primary(arg.value) or not _one_line(text[arg.start : arg.end])


def is_primary(value: Expression) -> bool:
    """Whether a subscript or an attribute can follow an expression without parentheses."""
    if isinstance(value, (Collection, Comprehension)):
        return value.kind not in ("tuple", "generator")
    return isinstance(value, _PRIMARY)


def _one_line(source: str) -> bool:
    """Whether an expression can stand outside brackets: no line end but in its own brackets."""
    if "\n" not in source and "\r" not in source:
        return True
    try:
        parse(source, "eval")
    except REFUSALS:
        return False
    return True


def _before_bracket(text: str, parts: Selecting) -> tuple[tuple[Edit, ...], int, str] | None:
    """The edits before the bracket, where the text between input and index starts, and what of it stays outside."""
    call = parts.call
    if parts.input is not None:
        left, right = ("(", ")") if needs_parentheses(text, parts.input) else ("", "")
        return (Edit(Span(call.start, parts.input.start), left),), parts.input.end, right
    func = call.func
    assert isinstance(func, (Ref, Attribute))
    around, dot, name = text[func.base_end : call.open].rpartition(".")
    if call.start != func.start or not dot or has_comment(name):
        return None
    return (), func.base_end, around if has_line_end(around) or "\\" in around else ""


def _inside(text: str, parts: Selecting, shape: Shape) -> str:
    """What stands between the bracket and the index: ``before``, and the comments and line breaks of the arguments."""
    written, space = "", ""
    for arg, gap in zip(parts.call.args, gaps(text, parts.call).before, strict=True):
        if has_comment(gap):
            written = _with_comments(written, space, only_layout(gap))
            space = ""
        elif not _at_line_start(written) and (written or arg is parts.call.args[0]):
            # The line break after a dimension or input that goes goes with it.
            space = space or last_indent(gap) or (" " if written else "")
        if arg is parts.by:
            break
        if arg is parts.dim and shape.before:
            written, space = f"{written}{space}{shape.before},", ""
    if shape.before and parts.dim.start > parts.by.start:
        return f"{written}{space}{shape.before}, "
    return written + space


def _with_comments(written: str, space: str, layout: str) -> str:
    """Add comments with their line breaks; they end at the start of a line."""
    layout = layout.lstrip(" \t")
    if not layout.startswith("#") or _at_line_start(written):
        return written + layout
    return f"{written}{space if has_line_end(space) else '  '}{layout}"


def _at_line_start(written: str) -> bool:
    return written.rstrip(" \t").endswith(("\n", "\r"))


def _end(text: str, parts: Selecting, shape: Shape) -> str:
    """What stands after the index: ``after``, comments and line breaks, the bracket and the tail."""
    spread = gaps(text, parts.call)
    gap = "".join((*spread.before[parts.call.args.index(parts.by) + 1 :], spread.after))
    several = bool(shape.before or shape.after)
    comma = "," if several and has_line_end(spread.after) and has_comma(spread.after) else ""
    layout = _EMPTY_LINES.sub(r"\1", only_layout(gap)).rstrip(" \t") if has_comment(gap) else last_indent(spread.after)
    if has_comment(gap):
        layout += last_indent(spread.after).lstrip("\r\n")
    after = f", {shape.after}" if shape.after else ""
    return f"{after}{comma}{layout}]{shape.tail}"


def _reordered(text: str, parts: Selecting, shape: Shape) -> tuple[Edit, ...]:
    """The index stands before the input: they change places, where neither can notice and no comment is between."""
    assert parts.input is not None
    names = (Ref, Constant)
    calm = isinstance(parts.input.value, names) or isinstance(parts.by.value, names)
    if gaps(text, parts.call).commented or not calm:
        return ()
    source = text[parts.input.start : parts.input.end]
    if needs_parentheses(text, parts.input):
        source = f"({source})"
    before = f"{shape.before}, " if shape.before else ""
    after = f", {shape.after}" if shape.after else ""
    index = shape.wrap[0] + text[parts.by.start : parts.by.end] + shape.wrap[1]
    return (Edit(Span(parts.call.start, parts.call.end), f"{source}{shape.lead}[{before}{index}{after}]{shape.tail}"),)
