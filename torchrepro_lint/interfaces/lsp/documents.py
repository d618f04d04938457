"""Open documents as the bytes that saving them would write, so that they are read as files are.

The files of a project as they are on disk, each read again when it has changed.

Columns in the units that an editor counts in: bytes of UTF-8, words of UTF-16, or code points.
"""

from __future__ import annotations

import io
import json
import os
import tokenize
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from torchrepro_lint.config.discovery import Tree
from torchrepro_lint.engine.read_project import Means, read_tree
from torchrepro_lint.engine.reading import Reading, read, too_large
from torchrepro_lint.source.decoding import is_notebook
from torchrepro_lint.source.files import State, TooLarge, program, state
from torchrepro_lint.source.text import Lines

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


# The server has threads.
_MEANS = Means(jobs=0, cached=True)


class OnDisk:
    """``files`` are the readings by path from the root, as of when each was last looked at."""

    def __init__(self, tree: Tree) -> None:
        self._root = tree.root.path
        self._parser = tree.root.settings.parser
        readings = read_tree(tree, means=_MEANS)
        readings.store()
        self.files = readings.files
        places = {path: self.place(path) for path in self.files}
        self._states = {path: readings.seen[place][0] for path, place in places.items() if place in readings.seen}

    def place(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self._root, *path.split("/"))

    def is_current(self, path: str) -> bool:
        """Whether a file is as it was read."""
        return path in self.files and self._states.get(path) == self._state(path)

    def look_at(self, path: str, opened: tuple[bytes, Reading] | None = None) -> bool:
        """Read a file if it has changed, and say whether it has; ``opened`` is a content whose reading is known."""
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

    def _read(self, path: str, opened: tuple[bytes, Reading] | None) -> Reading:
        try:
            data = program(self.place(path))
        except TooLarge as error:
            return too_large(error)
        return opened[1] if opened and opened[0] == data else read(data, is_notebook(path), self._parser)

    def keep(self, paths: Collection[str]) -> set[str]:
        """Forget all files but these, and say which those were."""
        gone = self.files.keys() - set(paths)
        self.files = {path: self.files[path] for path in sorted(self.files.keys() - gone)}
        return gone

    def _state(self, path: str) -> State | None:
        try:
            return state(self.place(path))
        except OSError:
            return None


ENCODINGS = ("utf-8", "utf-16", "utf-32")
_LAST_NARROW = "\uffff"


def units(text: str, encoding: str) -> int:
    """How long a text is in the units of one of ``ENCODINGS``."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(letter > _LAST_NARROW for letter in text)


def code_points(text: str, count: int, encoding: str) -> int:
    """How many code points the first units of a text are: all where there are fewer, and none in part."""
    if encoding == "utf-32" or text.isascii():
        return min(count, len(text))
    seen = 0
    for number, letter in enumerate(text):
        seen += units(letter, encoding)
        if seen > count:
            return number
    return len(text)


def offset(lines: Lines, row: int, column: int, encoding: str) -> int:
    """The offset of a place of a text, as near as there is one; its row counts from 0, its column in units."""
    if row >= len(lines):
        return len(lines.text)
    return lines.offset(row + 1, code_points(lines.line(row + 1), column, encoding) + 1)
