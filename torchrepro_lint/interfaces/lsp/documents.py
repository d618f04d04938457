"""Document contents: open documents as the bytes that saving them would write.

An open document goes through the same reader as a file. Columns are converted between code points and the LSP position
encodings: UTF-8 bytes, UTF-16 code units, UTF-32.
"""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Iterable
from typing import Any, NamedTuple

from torchrepro_lint.source.text import Lines

_UTF8 = ("utf-8", "utf-8-sig")


class Document(NamedTuple):
    """An open file: its absolute path, the bytes that saving would write, and its URI.

    ``cells`` are the URIs of all cells of a notebook that is open as one, in order; None for a text. ``version`` is the
    editor's count of changes, where it keeps one.
    """

    path: str
    data: bytes
    uri: str
    cells: tuple[str, ...] | None = None
    version: int | None = None


class CellText(NamedTuple):
    """A notebook cell as an editor has it: its URI, whether it is code, its language, text and metadata."""

    uri: str
    is_code: bool
    language: str
    text: str
    metadata: Any = None


def encode_text(text: str) -> bytes:
    """A text in the encoding that it declares, or in UTF-8 where that fails."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data if encoding in _UTF8 else text.encode(encoding)
    except (SyntaxError, LookupError, ValueError):
        return data


def notebook_data(cells: Iterable[CellText], metadata: Any) -> bytes:
    """The JSON of a notebook with these cells."""
    found = [_cell(each) for each in cells]
    metadata = metadata if isinstance(metadata, dict) else {}
    # Editors wrap the metadata of the file.
    metadata = metadata["metadata"] if isinstance(metadata.get("metadata"), dict) else metadata
    return json.dumps({"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode("ascii")


def _cell(cell: CellText) -> dict[str, Any]:
    if not cell.is_code:
        return {"cell_type": "markdown", "metadata": {}, "source": cell.text}
    metadata = {} if cell.language == "python" else {"vscode": {"languageId": cell.language}}
    return {"cell_type": "code", "metadata": metadata, "outputs": [], "source": cell.text}


ENCODINGS = ("utf-8", "utf-16", "utf-32")
_LAST_NARROW = "\uffff"


def length_in_units(text: str, encoding: str) -> int:
    """The length of a text in the units of one of ``ENCODINGS``."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(letter > _LAST_NARROW for letter in text)


def code_points(text: str, count: int, encoding: str) -> int:
    """The number of whole code points in the first ``count`` units of a text; all where there are fewer."""
    if encoding == "utf-32" or text.isascii():
        return min(count, len(text))
    seen = 0
    for number, letter in enumerate(text):
        seen += length_in_units(letter, encoding)
        if seen > count:
            return number
    return len(text)


def offset(lines: Lines, row: int, column: int, encoding: str) -> int:
    """The offset of a position in a text, or the nearest one; rows count from 0, columns from 0 in units."""
    if row >= len(lines):
        return len(lines.text)
    return lines.offset(row + 1, code_points(lines.line(row + 1), column, encoding) + 1)
