"""Comments around a statement: which of them describe it, and so move, go or stay with it.

A comment belongs to the statement below it. Where further statements follow without a gap it may be the heading of them all, and
then it stays.
"""

from __future__ import annotations

import io
import re
import tokenize

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Lines, Span, lines_of

_INDENTED_COMMENTS = lazy_pattern(r"(?:(?:\r\n|\r|\n)[ \t]+#[^\r\n]*)+")
# The borders of cells in a script: of editors and jupytext, of nbconvert, of Databricks.
_CELL_BORDER = lazy_pattern(r"# ?%%|# \+(\s|$)|# In ?\[|# <codecell>|# COMMAND -")
# Comments that other tools read.
DIRECTIVE = lazy_pattern(
    r"#\s*(noqa|type:|pylint:|fmt:|isort:|ruff:|mypy:|flake8:|pragma:|yapf:|torchrepro:)", re.IGNORECASE
)
_HEADING_WORDS = 2


def is_cell_border(line: str) -> bool:
    """Whether a line opens a cell of a script that is written as a notebook."""
    return _CELL_BORDER.match(line) is not None


def below_comments(text: str, place: int) -> int:
    """The end of the indented comments that follow a line and belong to its block."""
    found = _INDENTED_COMMENTS.match(text, place)
    return found.end() if found else place


def comments_above(lines: Lines, start: int, indent: str) -> int:
    """The start of the first of the comment lines, of the same indentation, directly above a line."""
    row = lines.position(start).row
    while (
        row > 1
        and lines.line(row - 1).startswith(f"{indent}#")
        and not _is_special(lines.line(row - 1)[len(indent) :], row - 1)
    ):
        row -= 1
    return lines.offset(row)


def _is_special(comment: str, row: int) -> bool:
    """Whether a comment has a meaning of its own: a shebang, an encoding, a cell, a word to another tool."""
    if row <= 2 and ("coding" in comment or comment.startswith("#!")):
        return True
    return is_cell_border(comment) or DIRECTIVE.match(comment) is not None


def own_comments(text: str, statements: Span, about: re.Pattern[str] | None = None) -> int:
    """The start of the comments directly above some statements that describe nothing else; without any, of their line.

    They describe no more than these where a blank line, a comment or the end of the block follows, or where ``about``
    finds its subject in them.
    """
    lines = lines_of(text)
    start = lines.start_of_line(statements.start)
    indent = text[start : statements.start]
    above = comments_above(lines, start, indent) if not indent.strip() else start
    told = about is not None and about.search(text, above, start) is not None
    return above if above == start or told or _ends_paragraph(lines, statements.end, indent) else start


def is_heading(text: str, statement: int) -> bool:
    """Whether the comment line above the statement at an offset is a heading: of a word or two, or above more statements."""
    lines = lines_of(text)
    start = lines.start_of_line(statement)
    if len(re.findall(r"\w+", lines.line(lines.position(start).row - 1))) <= _HEADING_WORDS:
        return True
    return not _ends_paragraph(lines, _end_of_statement(text, statement), text[start:statement])


def _ends_paragraph(lines: Lines, end: int, indent: str) -> bool:
    """Whether no statement of the same indentation stands in the line below an offset."""
    row = lines.position(end).row + 1
    line = lines.line(row) if row <= len(lines) else ""
    rest = line[len(indent) :]
    return not line.startswith(indent) or not rest.strip() or rest[0] in " \t#"


def _end_of_statement(text: str, start: int) -> int:
    """The end of the logical line that starts at an offset, as the tokenizer sees it; else of the line."""
    lines = lines_of(text)
    row = lines.position(start).row
    try:
        for token in tokenize.generate_tokens(io.StringIO(text[start:]).readline):
            if token.type == tokenize.NEWLINE:
                return lines.offset(row + token.start[0] - 1)
    except (tokenize.TokenError, SyntaxError):
        pass
    return start
