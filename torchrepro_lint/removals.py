"""Edits that take a statement out of a file."""

from __future__ import annotations

from torchrepro_lint.layout import line_break, line_end
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.control_flow import Spot


def remove_statement(text: str, spot: Spot, others: bool = False) -> Edit | None:
    """Take a statement out with its line; ``pass`` stays where the block would be empty. None where it shares its line.

    ``others`` says that other fixes may take out all the others of the block.
    """
    statement = spot.statement
    start, end = lines_of(text).start_of_line(statement.start), line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if text[start : statement.start].strip() or (rest and not rest.startswith("#")):
        return None
    if len(spot.block) == 1 or (others and spot.at == 0):
        return Edit(Span(statement.start, statement.end), "pass")
    return Edit(Span(start, end + len(line_break(text, end))), "")
