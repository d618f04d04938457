"""Bytes of a file to the text that the rest of the tool counts in, and back without losing a byte."""

from __future__ import annotations

import codecs
import io
import tokenize
from typing import NamedTuple


class Source(NamedTuple):
    """A decoded file: its newlines are as they were, the byte order mark is not part of ``text``."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""


class Problem(NamedTuple):
    """Why a file has no facts: a message, and where in ``text``.

    ``text`` is what offsets count in; for a file that could not be decoded it is a stand-in with the same lines.
    """

    message: str
    offset: int
    text: str


def decode(data: bytes) -> Source | Problem:
    """Decode as Python does: a byte order mark, else the coding line of PEP 263, else UTF-8."""
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(bom) :]
    encoding = "utf-8"
    try:
        encoding = _declared(data)
        return Source(body.decode(encoding), encoding, bom)
    except UnicodeDecodeError as error:
        return Problem(f"cannot be decoded as {encoding}", error.start, body.decode("latin-1"))
    except (SyntaxError, LookupError, ValueError) as error:
        return Problem(_reason(error), 0, body.decode("latin-1"))


def encode(source: Source, text: str) -> bytes:
    """The bytes of ``text`` in the encoding of ``source``; raises ``UnicodeEncodeError`` where it has no such letters."""
    return source.bom + text.encode(source.encoding)


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
