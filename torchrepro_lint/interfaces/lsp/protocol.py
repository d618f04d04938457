"""The LSP transport and message layer of pygls, corrected: malformed or late requests are answered by an error.

``MessageReader`` reads headers line by line, and refuses a length that no message has.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol

from torchrepro_lint.source.patterns import lazy_pattern

# pygls must not keep the documents: ``OpenTexts`` does.
_OWN_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
_INVALID_REQUEST = types.ResponseError(types.ErrorCodes.InvalidRequest.value, "the server has been shut down")


class ServerProtocol(LanguageServerProtocol):
    """The protocol of pygls, which here answers malformed and late requests by an error, since the client waits."""

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        for name in _OWN_METHODS:
            self.fm.builtin_features.pop(name, None)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message from its JSON; raises ``JsonRpcException``."""
        try:
            message = super().structure_message(data)
            if "method" in data and "id" in data and not hasattr(message, "id"):
                raise JsonRpcInvalidRequest(f"{data['method']} is a notification, which gets no answer")
            return message
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def handle_message(self, message: Any) -> None:
        """Handle a message; after ``shutdown`` every request is answered by an error."""
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            self._send_response(message.id, error=_INVALID_REQUEST)
            return
        super().handle_message(message)


# In bytes: twice the size of the largest text that is analysed.
LARGEST_MESSAGE = 100_000_000
_LENGTH = lazy_pattern(rb"content-length:[ \t]*0*(\d{1,20})[ \t]*\r\n", re.IGNORECASE)
_ANY_LENGTH = lazy_pattern(rb"\s*content-length\b", re.IGNORECASE)
_NO_HEADER = b"Unknown: header\r\n"


class MessageReader:
    """A stream of messages with ``Content-Length`` headers normalised as pygls expects them.

    A length beyond ``LARGEST_MESSAGE`` is replaced by an unknown header: pygls would wait, or allocate memory, for it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """A header line; empty at the end of the stream."""
        line = self._stream.readline()
        if not _ANY_LENGTH.match(line):
            return line
        found = _LENGTH.fullmatch(line)
        fits = found is not None and int(found[1]) <= LARGEST_MESSAGE
        return b"Content-Length: %d\r\n" % int(found[1]) if found and fits else _NO_HEADER

    def read(self, count: int) -> bytes:
        """Bytes of a message, fewer than asked for only at the end of the stream."""
        return self._stream.read(count)
