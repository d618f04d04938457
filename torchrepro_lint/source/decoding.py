"""Decoding: the bytes of a file to the text in which offsets count, and back without losing a byte.

Newlines, the byte order mark and the declared encoding (PEP 263) are kept. A notebook is one program: its code cells joined in
order, with edits of the program mapped to edits of cells.
"""

from __future__ import annotations

import codecs
import io
import tokenize
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from torchrepro_lint.source.notebooks import RawCell, read_cells
from torchrepro_lint.source.text import Cell, Edit, Fix, Lines, Span, apply_edits

# Python above a cell that is indented as a whole, which IPython allows.
INDENT_HEADER = "if 1:\n"


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
    """The notebook with edits made, each of which lies in one cell, as those of ``fit_to_cells`` do."""
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
    from torchrepro_lint.source.notebooks import is_indented, neutralised  # most runs read no notebook

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
    from torchrepro_lint.source.notebooks import is_indented

    return not notebook.text[cell.start : cell.end].lstrip().startswith("%%") and not is_indented(
        notebook.program[cell.start : cell.end]
    )


def _moved(edit: Edit, by: int) -> Edit:
    return Edit(Span(edit.span.start + by, edit.span.end + by), edit.text)


class Source(NamedTuple):
    """A decoded file: its newlines are unchanged, the byte order mark is not part of ``text``.

    Of a ``notebook`` the text is that of its code cells.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    notebook: Notebook | None = None

    @property
    def program(self) -> str:
        """The text as Python: IPython syntax is replaced, all offsets stay."""
        return self.notebook.program if self.notebook else self.text

    def with_program(self, program: str) -> Source:
        """The same notebook with another program, of the same length; a file that is no notebook is its own program."""
        return self._replace(notebook=self.notebook._replace(program=program)) if self.notebook else self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of a notebook; empty for any other file."""
        return self.notebook.cells if self.notebook else ()


class SourceProblem(NamedTuple):
    """Why a file has no syntax tree: a message, and an offset in ``text``.

    ``text`` is what offsets count in; for a file that could not be decoded it is a stand-in with the same lines.
    """

    message: str
    offset: int
    text: str


def decode(data: bytes, notebook: bool = False) -> Source | SourceProblem:
    """Decode as Python does: by byte order mark, else by the coding line of PEP 263, else as UTF-8; a notebook always is UTF-8."""
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(bom) :]
    encoding = "utf-8"
    try:
        encoding = encoding if notebook else _declared(data)
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        return SourceProblem(f"cannot be decoded as {encoding}", error.start, body.decode("latin-1"))
    except (SyntaxError, LookupError, ValueError) as error:
        return SourceProblem(_reason(error), 0, body.decode("latin-1"))
    return _notebook(text, bom) if notebook else Source(text, encoding, bom)


def with_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """The source after edits; each edit of a notebook must lie in one cell."""
    if source.notebook is None:
        return source._replace(text=apply_edits(source.text, edits))

    notebook = notebook_with_edits(source.notebook, edits)
    return source._replace(text=notebook.text, notebook=notebook)


def encode(source: Source, data: bytes) -> bytes:
    """The bytes of a source that was read from ``data`` and edited.

    Raises ``UnicodeEncodeError`` where its encoding lacks a character, or cannot encode what it decodes, as ``idna``.
    """
    if source.notebook is None:
        try:
            return source.bom + source.text.encode(source.encoding)
        except UnicodeEncodeError:
            raise
        except UnicodeError as error:
            raise UnicodeEncodeError(source.encoding, source.text, 0, len(source.text), str(error)) from None
    from torchrepro_lint.source.notebooks import replace_sources

    texts = {cell.number: source.text[cell.start : cell.end] for cell in source.cells}
    return source.bom + replace_sources(data[len(source.bom) :].decode(), texts).encode()


def _notebook(raw: str, bom: bytes) -> Source | SourceProblem:
    from torchrepro_lint.source.notebooks import NotebookError

    try:
        notebook = read_notebook(raw)
    except NotebookError as error:
        return SourceProblem(error.message, error.offset, raw)
    return Source(notebook.text, "utf-8", bom, notebook)


def _declared(data: bytes) -> str:
    """The encoding that a file declares. Bytes that it cannot decode are left to the decoder, which reports their offset."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "unknown encoding" in str(error) or "encoding problem" in str(error):
            raise
        return "utf-8"
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
