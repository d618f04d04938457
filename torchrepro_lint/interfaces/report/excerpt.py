"""Source excerpts: the lines around a diagnostic with the start of its range underlined, and its fix as a small diff."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.source.text import Edit, Lines, Span, apply_edits

Characters = Callable[[str], Sequence[str]]
_AROUND = 2
WIDEST = 120
_TAB = 4


class ExcerptLine(NamedTuple):
    """A line of an excerpt: its number (0: none), its text, and its underline."""

    number: int
    text: str
    under: str = ""


class DiffLine(NamedTuple):
    """A line that a fix removes (``-``) or adds (``+``).

    ``where`` is the file, empty for the diagnostic's own, and ``cell`` the cell of a notebook, 0 elsewhere.
    """

    sign: str
    number: int
    text: str
    where: str = ""
    cell: int = 0


def excerpt(one: Diagnostic, letters: Characters | None = None, widest: int = WIDEST) -> Iterator[ExcerptLine]:
    """The first line of a diagnostic, underlined, with two lines before and two after it, all of one cell.

    Empty lines at either end are left out. A longer range goes on without an underline; where it reaches beyond the excerpt, an
    ellipsis says so. ``letters`` gives what is printed for each character of a line; see ``log_characters``. Lines are cut to
    ``widest`` characters.
    """
    lines, span = one.written, one.span
    first, last = lines.position(span.start).row, lines.position(max(span.end - 1, span.start)).row
    rows = _rows_around(lines, span, first)
    for row in rows:
        marked = _range(lines, row, span) if row == first else None
        text = (letters or _characters)(lines.line(row))
        yield ExcerptLine(row - first + one.start.row, *_cut_line(text, marked, widest))
    if rows[-1] < last:
        yield ExcerptLine(0, "…")


def _rows_around(lines: Lines, span: Span, first: int) -> list[int]:
    """The rows of an excerpt around the first row of a span, without empty ones at either end."""
    top, bottom = _bounds(lines, span)
    rows = list(range(max(first - _AROUND, top), min(first + _AROUND, bottom) + 1))
    while rows[0] < first and not lines.line(rows[0]).strip():
        del rows[0]
    while rows[-1] > first and not lines.line(rows[-1]).strip():
        del rows[-1]
    return rows


def changes(one: Diagnostic) -> Iterator[DiffLine]:
    """The diff of a fix, file by file."""
    for file in one.edits():
        yield from _changed(file.lines if file.path else one.written, file.edits, file.path)


def terminal_text(text: str) -> str:
    """Text for a terminal: tabs as spaces, no control characters."""
    return "".join(_characters(text))


def log_characters(text: str) -> list[str]:
    """What is printed for each character where GitHub may look for workflow commands."""
    letters = _characters(text)
    for found in re.finditer(r"##\[", text):
        letters[found.start() + 1] = "\\x23"
    return letters


def _bounds(lines: Lines, span: Span) -> tuple[int, int]:
    """The first and last row of the cell, or of the file without its empty last row."""
    cell = lines.cell(span.start)
    if cell is not None:
        return lines.position(cell.start).row, lines.position(cell.end).row
    return 1, len(lines) - (lines.text.endswith(("\n", "\r")) and lines.position(span.start).row < len(lines))


def _range(lines: Lines, row: int, span: Span) -> tuple[int, int]:
    """The columns of a row, from 0, that a span covers, without indentation."""
    start, text = lines.offset(row), lines.line(row)
    begin = max(span.start - start, len(text) - len(text.lstrip()) if span.start < start else 0)
    return begin, max(min(span.end - start, len(text)), begin)


def _cut_line(letters: Sequence[str], marked: tuple[int, int] | None, widest: int) -> tuple[str, str]:
    """A line and its underline; a very long line is cut to the part around the range."""
    begin = 0
    if len(letters) > widest:
        begin = max(0, min(marked[0] - widest // 3 if marked else 0, len(letters) - widest))
    cut = letters[begin : begin + widest]
    lead, tail = "…" * (begin > 0), "…" * (begin + widest < len(letters))
    under = ""
    if marked:
        start, end = marked[0] - begin, min(marked[1] - begin, len(cut))
        under = " " * (len(lead) + _width(cut[:start])) + "^" * max(_width(cut[max(start, 0) : end]), 1)
    return f"{lead}{''.join(cut)}{tail}", under


def _characters(text: str) -> list[str]:
    """What is printed for each character."""
    return [" " * _TAB if one == "\t" else one if one.isprintable() else "\ufffd" for one in text]


def _width(letters: Iterable[str]) -> int:
    """The number of terminal columns that characters take."""
    return sum(_columns(one) for text in letters for one in text)


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _changed(lines: Lines, edits: Iterable[Edit], where: str) -> Iterator[DiffLine]:
    grown, within = 0, 0
    for group in _groups(lines, edits):
        first = lines.position(group[0].span.start).row
        start, end = lines.offset(first), max(edit.span.end for edit in group)
        end = max(end, lines.offset(lines.position(end).row) + len(lines.line(lines.position(end).row)))
        moved = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.text) for edit in group]
        old = _rows(lines.text[start:end])
        new = _rows(apply_edits(lines.text[start:end], moved))
        place = lines.place(start)
        number, cell = place.row, place.cell
        # The rows of each cell are counted from its start.
        grown, within = grown if cell == within else 0, cell
        for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                yield from (DiffLine("-", number + at, terminal_text(old[at]), where, cell) for at in range(a, b))
                yield from (
                    DiffLine("+", number + at + grown, terminal_text(new[at]), where, cell) for at in range(c, d)
                )
        grown += len(new) - len(old)


def _rows(text: str) -> list[str]:
    lines = Lines(text)
    rows = [lines.line(row) for row in range(1, len(lines) + 1)]
    return rows if rows[-1] else rows[:-1]


def _groups(lines: Lines, edits: Iterable[Edit]) -> Iterator[list[Edit]]:
    """Edits grouped where their lines touch."""
    group: list[Edit] = []
    for edit in edits:
        if group and lines.position(edit.span.start).row > lines.position(group[-1].span.end).row:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group
