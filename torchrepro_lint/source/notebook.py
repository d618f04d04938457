"""A notebook as one program: its code cells joined in order, and edits of the program mapped to edits of cells."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from torchrepro_lint.source.ipython import INDENT_HEADER, is_indented, neutralised
from torchrepro_lint.source.notebook_json import RawCell, read_cells
from torchrepro_lint.source.text import Cell, Edit, Fix, Lines, Span, apply_edits

_JOINT = "\n"
# Before a cell that is indented as a whole; what is written and what is parsed have to be equally long.
_OPENING_JOINT = f"\n{INDENT_HEADER}"
_BLANK_JOINT = "\n" + " " * (len(INDENT_HEADER) - 1) + "\n"


class Notebook(NamedTuple):
    """The cells of a notebook, joined.

    ``text`` is what they hold, ``program`` the same in Python: of equal length, with equal lines. ``databricks`` says
    whose magics count.
    """

    text: str
    program: str
    cells: tuple[Cell, ...]
    databricks: bool = False


def read_notebook(raw: str) -> Notebook:
    """The program of a notebook's JSON. Raises ``NotebookError``."""
    found = read_cells(raw)
    lines = Lines(raw)
    sources = [(each.number, each.text, _rows(lines, each)) for each in found.cells]
    return _join(sources, found.databricks)


def notebook_with_edits(notebook: Notebook, edits: Iterable[Edit]) -> Notebook:
    """The notebook with edits made, each of which lies in one cell, as those of ``fitted`` do."""
    changes: dict[int, list[Edit]] = {}
    for edit in edits:
        cell = _home(notebook, edit.span)
        assert cell is not None
        changes.setdefault(cell.number, []).append(_moved(edit, -cell.start))
    sources, moved = [], False
    for cell in notebook.cells:
        text = notebook.text[cell.start : cell.end]
        changed = apply_edits(text, changes.get(cell.number, ()))
        moved = moved or changed.count("\n") != text.count("\n")
        sources.append((cell.number, changed, () if moved else cell.rows))
    return _join(sources, notebook.databricks)


def fit_to_cells(notebook: Notebook, fix: Fix) -> Fix | None:
    """A fix whose edits each lie in one cell and leave what is not Python alone; None where that cannot be."""
    edits = [_fit(notebook, edit) for edit in fix.edits]
    return None if None in edits else fix._replace(edits=tuple(edit for edit in edits if edit is not None))


def _join(sources: Iterable[tuple[int, str, tuple[int, ...]]], databricks: bool) -> Notebook:
    cells: list[Cell] = []
    parts: list[tuple[str, str]] = []
    length = 0
    for number, source, rows in sources:
        python = neutralised(source, databricks)
        joint = (_BLANK_JOINT, _OPENING_JOINT) if is_indented(python) else (_JOINT * bool(cells),) * 2
        start = length + len(joint[0])
        length = start + len(source)
        cells.append(Cell(number, start, length, rows))
        parts.append((joint[0] + source, joint[1] + python))
    text, program = ("".join(part[side] for part in parts) for side in (0, 1))
    return Notebook(text, program, tuple(cells), databricks)


def _rows(lines: Lines, cell: RawCell) -> tuple[int, ...]:
    """For each line of a cell the row of the file in which it begins."""
    ends = list(accumulate(len(text) for _, text in cell.pieces))
    rows = [lines.position(span.start).row for span, _ in cell.pieces]
    own, found, at = Lines(cell.text), [], 0
    for row in range(1, len(own) + 1):
        while at < len(ends) - 1 and ends[at] <= own.offset(row):
            at += 1
        found.append(rows[at] if rows else lines.position(cell.span.start).row)
    return tuple(found)


def _home(notebook: Notebook, span: Span) -> Cell | None:
    """The cell that a span lies in."""
    return next((cell for cell in notebook.cells if cell.start <= span.start and span.end <= cell.end), None)


def _fit(notebook: Notebook, edit: Edit) -> Edit | None:
    span, text = edit
    before = next((cell for cell in reversed(notebook.cells) if cell.end <= span.end and cell.start < span.end), None)
    if before is not None and before.start <= span.start <= before.end < span.end and (not text or text.endswith("\n")):
        # The line end behind a cell's last line is the joint, not the cell's.
        span, text = Span(span.start, before.end), text.removesuffix("\n").removesuffix("\r")
    cell = _home(notebook, span)
    if cell is None or notebook.text[slice(*span)] != notebook.program[slice(*span)]:
        return None
    if span.start == cell.start and not _may_open(notebook, cell):
        return None
    if cell.start < span.start == cell.end:
        text = text.rstrip("\r\n")  # no cell ends in an empty line for the sake of the next one
    return Edit(span, text)


def _may_open(notebook: Notebook, cell: Cell) -> bool:
    """Whether a statement may be written at the very beginning of a cell: not before a magic of the whole cell."""
    return not notebook.text[cell.start : cell.end].lstrip().startswith("%%") and not is_indented(
        notebook.program[cell.start : cell.end]
    )


def _moved(edit: Edit, by: int) -> Edit:
    return Edit(Span(edit.span.start + by, edit.span.end + by), edit.text)
