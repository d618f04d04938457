"""How a text is laid out: its line ends, its indentation, and lines written with room around them."""

from __future__ import annotations

import re

from torchrepro_lint.source.text import Edit, Lines, Span, lines_of
from torchrepro_lint.syntax.nodes import Facts

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK_LINES = re.compile(r"(?:\r\n|\r|\n)((?:[ \t\f]*(?:\r\n|\r|\n))*)")
_INDENTED_COMMENTS = re.compile(r"(?:(?:\r\n|\r|\n)[ \t]+#[^\r\n]*)+")
# What may stand above the first statement: a comment or nothing on each line.
_HEADER = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)|[ \t\f]*#[^\r\n]*\Z)*")
_DOCSTRING = re.compile(
    r"""[rRuU]?(?:\"{3}(?s:\\.|[^\\])*?\"{3}|'{3}(?s:\\.|[^\\])*?'{3}|\"[^\"\r\n]*\"|'[^'\r\n]*')[ \t]*(?=[;#\r\n]|\Z)"""
)


def newline(text: str) -> str:
    """The line end that a text uses; the first one decides."""
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


def line_break(text: str, offset: int) -> str:
    """The line end at an offset, whatever the text uses elsewhere; empty where the text ends."""
    found = _NEWLINE.match(text, offset)
    return found[0] if found else ""


def line_end(text: str, offset: int) -> int:
    """The end of the line of an offset, before its line end; of the last one where a backslash joins it to others."""
    found = _NEWLINE.search(text, offset)
    while found and text[offset : found.start()].endswith("\\") and "#" not in text[offset : found.start()]:
        offset = found.end()
        found = _NEWLINE.search(text, offset)
    return found.start() if found else len(text)


def indent_unit(facts: Facts, text: str) -> str:
    """What a file indents by: what its first function or block whose body has its own line is indented by; else four spaces."""
    lines = lines_of(text)
    for function in facts.functions:
        if function.body and "<lambda>" not in function.name.rpartition(".")[2]:
            outer = text[lines.start_of_line(function.start) : function.start]
            inner = text[lines.start_of_line(function.body[0].start) : function.body[0].start]
            if not (outer + inner).strip() and inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
    return "    "


def indented(text: str, source: str, indent: str) -> str:
    return newline(text).join(line and indent + line for line in source.split("\n"))


def write_lines(text: str, place: int, source: str, blanks: int) -> Edit:
    """Write lines with blank ones around them: after the line that ends at ``place``, or where the file begins."""
    line = newline(text)
    body = source.replace("\n", line)
    below = bool(text[place:].strip())
    before = text[:place]
    if not before or (before.endswith(("\n", "\r")) and not before.rstrip("\r\n").endswith("\\")):
        return Edit(Span(place, place), body + line * (blanks + 1 if below else 1))
    found = _BLANK_LINES.match(text, place)
    present = len(_NEWLINE.findall(found[1])) if found else 0
    after = line * max(0, blanks - present) if below else line * (not text[place:])
    return Edit(Span(place, place), line * (blanks + 1) + body + after)


def below_docstring(text: str) -> int:
    """The end of the documentation string's line; without one, where the first statement's line begins."""
    header = _HEADER.match(text)
    assert header is not None
    docstring = _DOCSTRING.match(text, header.end())
    return line_end(text, docstring.end()) if docstring else header.end()


def below_comments(text: str, place: int) -> int:
    """The end of the indented comments that follow a line: they belong to the block that ends there."""
    found = _INDENTED_COMMENTS.match(text, place)
    return found.end() if found else place


def comments_above(lines: Lines, start: int, indent: str) -> int:
    """The start of the first of the comment lines, indented alike, that stand directly above a line."""
    row = lines.position(start).row
    while row > 1 and lines.line(row - 1).startswith(f"{indent}#") and not _says_more(lines.line(row - 1), row - 1):
        row -= 1
    return lines.offset(row)


def _says_more(line: str, row: int) -> bool:
    """Whether a comment is no comment: the first line of a script, an encoding, a cell of a notebook."""
    return line.startswith("# %%") or (row <= 2 and ("coding" in line or line.startswith("#!")))
