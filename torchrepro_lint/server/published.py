"""What an editor was shown, so that it is taken back when it no longer holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lsprotocol import types

from torchrepro_lint.server.documents import Document


class Published:
    """The documents that have been reported on, by path: for a notebook those of its cells."""

    def __init__(self, send: Callable[[types.PublishDiagnosticsParams], None]) -> None:
        self._send = send
        self._shown: dict[str, set[str]] = {}

    def show(self, document: Document, found: Iterable[tuple[str, types.Diagnostic]]) -> None:
        """These are all diagnostics of a document, each with the URI where it is shown."""
        uris = document.cells or (document.uri,)
        gone = self._shown.get(document.path, set()).difference(uris)
        by_uri: dict[str, list[types.Diagnostic]] = {uri: [] for uri in (*uris, *sorted(gone))}
        for uri, each in found:
            by_uri.setdefault(uri, []).append(each)
        for uri, diagnostics in by_uri.items():
            version = document.version if uri == document.uri else None
            self._send(types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version))
        self._shown[document.path] = set(by_uri) - gone

    def clear(self, path: str) -> None:
        """A document was closed."""
        for uri in sorted(self._shown.pop(path, set())):
            self._send(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))
