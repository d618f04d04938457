"""What an editor sends, as pygls reads it: headers by the line, and what follows them by its length."""

from __future__ import annotations

import re
from typing import BinaryIO

# In bytes. The largest text that is analysed takes half of that.
LARGEST = 100_000_000
_LENGTH = re.compile(rb"content-length:[ \t]*0*(\d{1,20})[ \t]*\r\n", re.IGNORECASE)
_ANY_LENGTH = re.compile(rb"\s*content-length\b", re.IGNORECASE)
_NO_HEADER = b"Unknown: header\r\n"


class Incoming:
    """Bytes from an editor. The length of a message is as pygls knows it, however its header is written.

    One that no message has is no header: pygls would wait, or ask for memory, for as much.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """A line of headers; empty at the end."""
        line = self._stream.readline()
        if not _ANY_LENGTH.match(line):
            return line
        found = _LENGTH.fullmatch(line)
        fits = found is not None and int(found[1]) <= LARGEST
        return b"Content-Length: %d\r\n" % int(found[1]) if found and fits else _NO_HEADER

    def read(self, count: int) -> bytes:
        """So many bytes of a message, fewer only at the end."""
        return self._stream.read(count)
