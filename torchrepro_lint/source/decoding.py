"""Decoding of source files: bytes to the text in which offsets count, and back without losing a byte.

Newlines, the byte order mark and the declared encoding (PEP 263) are kept; of a notebook the text is that of its code cells.
"""

from __future__ import annotations

import codecs
import io
import tokenize
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.source.text import Cell, Edit, apply_edits

if TYPE_CHECKING:
    from torchrepro_lint.source.notebook import Notebook


class Source(NamedTuple):
    """A decoded file: its newlines are as they were, the byte order mark is not part of ``text``.

    Of a ``notebook`` the text is what its code cells hold.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    notebook: Notebook | None = None

    @property
    def program(self) -> str:
        """The text as Python: without what only a notebook understands, all else at its place."""
        return self.notebook.program if self.notebook else self.text

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of a notebook, nothing elsewhere."""
        return self.notebook.cells if self.notebook else ()


class SourceProblem(NamedTuple):
    """Why a file has no facts: a message, and where in ``text``.

    ``text`` is what offsets count in; for a file that could not be decoded it is a stand-in with the same lines.
    """

    message: str
    offset: int
    text: str


def is_notebook(path: str) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.endswith(".ipynb")


def decode(data: bytes, notebook: bool = False) -> Source | SourceProblem:
    """Decode as Python does: a byte order mark, else the coding line of PEP 263, else UTF-8, which a notebook always is."""
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
    """The source with edits made; those of a notebook have to lie in one cell each."""
    if source.notebook is None:
        return source._replace(text=apply_edits(source.text, edits))
    from torchrepro_lint.source.notebook import notebook_with_edits as edited_notebook

    notebook = edited_notebook(source.notebook, edits)
    return source._replace(text=notebook.text, notebook=notebook)


def encode(source: Source, data: bytes) -> bytes:
    """The bytes of a source that was read from ``data`` and edited.

    Raises ``UnicodeEncodeError`` where its encoding has no such letters, or cannot write what it reads, as ``idna``.
    """
    if source.notebook is None:
        try:
            return source.bom + source.text.encode(source.encoding)
        except UnicodeEncodeError:
            raise
        except UnicodeError as error:
            raise UnicodeEncodeError(source.encoding, source.text, 0, len(source.text), str(error)) from None
    from torchrepro_lint.source.notebook_json import replace_sources

    texts = {cell.number: source.text[cell.start : cell.end] for cell in source.cells}
    return source.bom + replace_sources(data[len(source.bom) :].decode(), texts).encode()


def _notebook(raw: str, bom: bytes) -> Source | SourceProblem:
    from torchrepro_lint.source.notebook import read_notebook
    from torchrepro_lint.source.notebook_json import NotebookError

    try:
        notebook = read_notebook(raw)
    except NotebookError as error:
        return SourceProblem(error.message, error.offset, raw)
    return Source(notebook.text, "utf-8", bom, notebook)


def _declared(data: bytes) -> str:
    """The encoding that a file declares. Bytes that are not in it are left to the decoder, which knows where they are."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "unknown encoding" in str(error) or "encoding problem" in str(error):
            raise
        return "utf-8"
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
