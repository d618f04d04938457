"""Document contents: open documents as the bytes that saving them would write, and files on disk, reread when changed.

An open document goes through the same reader as a file. Columns are converted between code points and the LSP position
encodings: UTF-8 bytes, UTF-16 code units, UTF-32.
"""

from __future__ import annotations

import io
import json
import os
import tokenize
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from torchrepro_lint.config.discovery import ProjectTree
from torchrepro_lint.engine.parsed_file import ParsedFile, parse_bytes, too_large
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.source.files import FileSignature, TooLarge, file_signature, is_notebook, read_program
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


# No worker processes: the server has threads, which must not be forked.
_MEANS = ReadOptions(jobs=0, cached=True)


class DiskFiles:
    """The parsed files of a project on disk. ``files`` is by path from the root, as of the last look at each."""

    def __init__(self, tree: ProjectTree) -> None:
        self._root = tree.root.path
        self._parser = tree.root.settings.parser
        readings = read_tree(tree, options=_MEANS)
        readings.store()
        self.files = readings.files
        places = {path: self.absolute_path(path) for path in self.files}
        self._states = {path: readings.seen[place][0] for path, place in places.items() if place in readings.seen}

    def absolute_path(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self._root, *path.split("/"))

    def is_current(self, path: str) -> bool:
        """Whether a file on disk is unchanged since it was parsed."""
        return path in self.files and self._states.get(path) == self._state(path)

    def reread_if_changed(self, path: str, opened: tuple[bytes, ParsedFile] | None = None) -> bool:
        """Parse a file again if it has changed; whether it has. ``opened`` is a content that was parsed already."""
        seen = self._state(path)
        if seen is not None and path in self.files and self._states.get(path) == seen:
            return False
        known = self.files.pop(path, None)
        self._states.pop(path, None)
        try:
            self.files[path] = self._read(path, opened)
        except OSError:
            return known is not None
        if seen is not None:
            self._states[path] = seen
        return True

    def _read(self, path: str, opened: tuple[bytes, ParsedFile] | None) -> ParsedFile:
        try:
            data = read_program(self.absolute_path(path))
        except TooLarge as error:
            return too_large(error)
        return opened[1] if opened and opened[0] == data else parse_bytes(data, is_notebook(path), self._parser)

    def keep_only(self, paths: Collection[str]) -> set[str]:
        """Drop all files but these; the paths of the dropped ones."""
        gone = self.files.keys() - set(paths)
        self.files = {path: self.files[path] for path in sorted(self.files.keys() - gone)}
        return gone

    def _state(self, path: str) -> FileSignature | None:
        try:
            return file_signature(self.absolute_path(path))
        except OSError:
            return None


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
