"""New texts for cells of a notebook's JSON, in which every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from torchrepro_lint.cells import RawCell, read_cells


def rewritten(raw: str, texts: Mapping[int, str]) -> str:
    """A notebook's JSON with new texts for cells by their number.

    The lines of a cell that stay are spelt as they were; new ones are spelt as the file spells letters beyond ASCII.
    """
    cells = read_cells(raw).cells
    separator = next((found for cell in cells if (found := _separator(raw, cell))), None)
    parts: list[str] = []
    done = 0
    for cell in cells:
        text = texts.get(cell.number, cell.text)
        if text != cell.text:
            parts += (raw[done : cell.span.start], _source(raw, cell, text, separator))
            done = cell.span.end
    return "".join((*parts, raw[done:]))


def _source(raw: str, cell: RawCell, text: str, separator: str | None) -> str:
    ascii_only = raw.isascii()
    if not cell.is_list:
        return f'"{"".join(_spelt(_lines(raw, cell), text, ascii_only))}"'
    lines = _spelt(((piece, raw[span.start + 1 : span.end - 1]) for span, piece in cell.pieces), text, ascii_only)
    lead, trail = _edges(raw, cell)
    between = _separator(raw, cell) or (f",{lead}" if lead else separator or ", ")
    return "".join(("[", lead, between.join(f'"{line}"' for line in lines), trail, "]"))


def _spelt(pieces: Iterable[tuple[str, str]], text: str, ascii_only: bool) -> list[str]:
    """The lines of a text inside JSON strings. The pieces are the lines that there were, each with its spelling."""
    known = dict(pieces)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    return [known.get(line) or json.dumps(line, ensure_ascii=ascii_only)[1:-1] for line in lines]


def _lines(raw: str, cell: RawCell) -> list[tuple[str, str]]:
    """The lines of a source that is one string, each with its spelling."""
    ((span, _),) = cell.pieces
    inside = raw[span.start + 1 : span.end - 1]
    spelt = re.findall(r"(?:[^\\]|\\[^n])*?\\n|(?:[^\\]|\\[^n])+", inside)
    return [(json.loads(f'"{line}"'), line) for line in spelt]


def _edges(raw: str, cell: RawCell) -> tuple[str, str]:
    """The white space behind the opening and before the closing bracket of a list of lines."""
    if not cell.pieces:
        return "", ""
    return raw[cell.span.start + 1 : cell.pieces[0][0].start], raw[cell.pieces[-1][0].end : cell.span.end - 1]


def _separator(raw: str, cell: RawCell) -> str | None:
    """What stands between the first two lines of a list."""
    if not cell.is_list or len(cell.pieces) < 2:
        return None
    return raw[cell.pieces[0][0].end : cell.pieces[1][0].start]
