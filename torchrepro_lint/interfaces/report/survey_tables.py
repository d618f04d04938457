"""The tables of a survey as text for a terminal, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.interfaces.report.survey_queries import Table
from torchrepro_lint.source.errors import escaped_message

# A longer text is cut in a terminal; JSON has all of it.
_WIDEST = 60


def render(tables: Sequence[Table], output_format: str) -> str:
    """The tables one below the other; in JSON a list of objects with ``title``, ``columns`` and ``rows``."""
    if output_format == "json":
        return dumps([{"title": each.title, "columns": each.columns, "rows": each.rows} for each in tables])
    return "\n".join(map(_text, tables))


def _text(table: Table) -> str:
    head = f"{table.title}\n" if table.title else ""
    if not table.rows:
        return f"{head}(nothing)\n"
    cells = [
        [shown(value, name in table.shares) for name, value in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    widths = [max(map(len, column)) for column in zip(table.columns, *cells, strict=True)]
    right = [all(isinstance(row[at], (int, float)) for row in table.rows) for at in range(len(widths))]
    lines = [table.columns, ["-" * width for width in widths], *cells]
    return head + "".join(f"{_line(line, widths, right)}\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if at_right else cell.ljust(width)
        for cell, width, at_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def shown(value: Any, share: bool) -> str:
    """A value in a cell: shares in per cent, numbers with thousands apart, texts on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:.1%}" if share else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    text = escaped_message(str(value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
