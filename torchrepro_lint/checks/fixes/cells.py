"""Cells of a notebook, and of a script that is written as one: whether two places lie in the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.comments import is_cell_border
from torchrepro_lint.source.text import lines_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project


def in_one_cell(project: Project, path: str, one: int, other: int) -> bool:
    """Whether no border of two cells lies between two offsets of a file; so in every file without cells."""
    start, end = sorted((one, other))
    if project.position(path, start).cell != project.position(path, end).cell:
        return False
    lines = lines_of(project.text(path))
    rows = range(lines.position(start).row, lines.position(end).row)
    return not any(is_cell_border(lines.line(row + 1)) for row in rows)
