"""Cells of a notebook, and of a script that is written as one: whether two places lie in the same."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

from torchrepro_lint.checks.fixes.comments import is_cell_border
from torchrepro_lint.source.text import lines_of
from torchrepro_lint.trace.traces import Traces


def in_one_cell(project: Traces, path: str, one: int, other: int) -> bool:
    """Whether no border of two cells lies between two offsets of a file; so in every file without cells."""
    start, end = sorted((one, other))
    if project.position(path, start).cell != project.position(path, end).cell:
        return False
    borders = _border_offsets(project.text(path))
    return bisect_right(borders, start) == bisect_right(borders, end)


@lru_cache(maxsize=1)
def _border_offsets(text: str) -> tuple[int, ...]:
    """The starts of the lines at which a cell begins."""
    lines = lines_of(text)
    rows = range(1, lines.position(len(text)).row + 1)
    return tuple(lines.offset(row) for row in rows if is_cell_border(lines.line(row)))
