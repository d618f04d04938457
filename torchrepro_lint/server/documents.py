"""Open documents as the bytes that saving them would write, so that they are read as files are."""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Iterable
from typing import Any, NamedTuple

_UTF8 = ("utf-8", "utf-8-sig")


class Document(NamedTuple):
    """An open file: its absolute path, what would be saved, and how the editor names it.

    ``cells`` are the names of all cells of a notebook that is open as one, in order; None for a text. ``version`` is the
    editor's count of changes, where it keeps one.
    """

    path: str
    data: bytes
    uri: str
    cells: tuple[str, ...] | None = None
    version: int | None = None


class CellText(NamedTuple):
    """A cell as an editor has it: its name, whether it is code, its language and text, and what else it holds."""

    uri: str
    is_code: bool
    language: str
    text: str
    metadata: Any = None


def encoded(text: str) -> bytes:
    """A text in the encoding that it declares, in UTF-8 where that cannot be."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data if encoding in _UTF8 else text.encode(encoding)
    except (SyntaxError, LookupError, ValueError):
        return data


def notebook_data(cells: Iterable[CellText], metadata: Any) -> bytes:
    """The file of a notebook with these cells."""
    found = [_cell(each) for each in cells]
    metadata = metadata if isinstance(metadata, dict) else {}
    # Editors wrap what the file has.
    metadata = metadata["metadata"] if isinstance(metadata.get("metadata"), dict) else metadata
    return json.dumps({"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode("ascii")


def _cell(cell: CellText) -> dict[str, Any]:
    if not cell.is_code:
        return {"cell_type": "markdown", "metadata": {}, "source": cell.text}
    metadata = {} if cell.language == "python" else {"vscode": {"languageId": cell.language}}
    return {"cell_type": "code", "metadata": metadata, "outputs": [], "source": cell.text}
