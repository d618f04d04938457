"""Edits that remove statements, with the comments that are theirs and the blank lines that they would leave."""

from __future__ import annotations

import re

from torchrepro_lint.checks.fixes.comments import own_comments
from torchrepro_lint.checks.fixes.insertions import line_break, line_end
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.scopes import BlockPosition


def remove_statement(
    text: str, block_position: BlockPosition, others: bool = False, about: re.Pattern[str] | None = None
) -> Edit | None:
    """Remove a statement with its line and its own comments; ``pass`` stays where the block would be empty.

    ``others`` says that other fixes may remove all other statements of the block; ``about`` finds the subject of the
    statement in a comment. None where it shares its line.
    """
    statement = block_position.statement
    start, end = lines_of(text).start_of_line(statement.start), line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if text[start : statement.start].strip() or (rest and not rest.startswith("#")):
        return None
    above = own_comments(text, Span(statement.start, end), about)
    if len(block_position.block) == 1 or (others and block_position.at == 0):
        return Edit(Span(above, end), f"{text[start : statement.start]}pass")
    place = Span(above, end + len(line_break(text, end)))
    return Edit(with_gap(text, place, opens=block_position.at == 0 and statement.start > start), "")


def with_gap(text: str, place: Span, *, opens: bool = False) -> Span:
    """Whole lines to remove, with the fewer of the blank lines around them, so that no gap grows.

    At the start of the file, and where they open a block, the blank lines below go.
    """
    lines = lines_of(text)
    first, following = lines.position(place.start).row, lines.position(place.end).row
    above, below = first, following
    while above > 1 and not lines.line(above - 1).strip():
        above -= 1
    while below <= len(lines) and lines.offset(below) < len(text) and not lines.line(below).strip():
        below += 1
    if above == 1 or opens or below - following < first - above:
        return Span(place.start, lines.offset(below))
    return Span(lines.offset(above), place.end) if below > following else place
