"""The protocol as this server speaks it: what pygls makes of it, with some of that put right.

What an editor sends, as pygls reads it: headers by the line, and what follows them by its length.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol

# The documents are ours to keep: see ``texts``.
_OURS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
_INVALID_REQUEST = types.ResponseError(types.ErrorCodes.InvalidRequest.value, "the server has been shut down")


class Protocol(LanguageServerProtocol):
    """The protocol; a request that makes no sense or comes too late is answered, for whoever asked waits."""

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        for name in _OURS:
            self.fm.builtin_features.pop(name, None)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message from its JSON; raises ``JsonRpcException``."""
        try:
            message = super().structure_message(data)
            if "method" in data and "id" in data and not hasattr(message, "id"):
                raise JsonRpcInvalidRequest(f"{data['method']} is a notification, and not answered")
            return message
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def handle_message(self, message: Any) -> None:
        """Answer or take note; after the end was announced nothing is answered but by an error."""
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            self._send_response(message.id, error=_INVALID_REQUEST)
            return
        super().handle_message(message)


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
