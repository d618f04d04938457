"""The language server of one editor: passes document changes to the workspace, and publishes its diagnostics.

``ServerProtocol`` corrects the message layer of pygls: malformed or late requests are answered by an error. The event loop of the
protocol never waits for an analysis. Analyses run one after another in one thread, which alone owns
the workspace. Changes are collected until the editor is quiet for a while (debouncing).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import from_fs_path, to_fs_path

from torchrepro_lint import __version__
from torchrepro_lint.interfaces.lsp.client import Client, WorkerThread, result_or_error
from torchrepro_lint.interfaces.lsp.language_features import FileDiagnostics, LanguageFeatures, PublishedDiagnostics
from torchrepro_lint.interfaces.lsp.text_documents import OpenTexts, PositionMapper
from torchrepro_lint.interfaces.lsp.workspace import SECTION, Document, Preferences, Workspace, preferences
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


_T = TypeVar("_T")
# Answers without a change of a document after which garbage is collected.
_COLLECT_AFTER = 100
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook")
        )
    ],
    save=True,
)


class Server(LanguageServer):
    """A language server for one editor. ``sent_settings`` are those that it sent unasked."""

    def __init__(self) -> None:
        super().__init__(
            name=SECTION,
            version=__version__,
            protocol_cls=ServerProtocol,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=_NOTEBOOKS,
        )
        self.texts = OpenTexts()
        self.sent_settings: Any = None
        self.shut_down = False
        self._open_documents: dict[str, Document] = {}
        self._pending: dict[str, Document | None] = {}
        self._disk_changed = False
        # The revision: diagnostics of an older one are not published.
        self._changes = 0
        self._changed = asyncio.Event()
        self._configured = asyncio.Event()
        self._released = False
        self._answered = 0
        self._delay = Preferences().delay
        self._client = Client(self)
        self._published = PublishedDiagnostics(self.text_document_publish_diagnostics)
        self._thread = WorkerThread(SECTION)
        self._work = Workspace(self._client.show_warning, self._client.show_progress)
        self._task: asyncio.Task[None] | None = None

    async def start_reporting(self) -> None:
        """Configure, and start to publish diagnostics; in the event loop."""
        self._client.attach_loop()
        await self.configure()
        self._task = asyncio.create_task(self._report())
        await self._client.watch()

    def update_document(self, path: str, document: Document | None) -> None:
        """Record the content of an open document, or None for a closed one."""
        if path in self._open_documents and document is not None:
            self._release()
        self._pending[path] = document
        # The document that changed last is checked first.
        self._open_documents.pop(path, None)
        if document is None:
            self._published.clear(path)
        else:
            self._open_documents = {path: document, **self._open_documents}
        self._note_change()

    def files_changed(self) -> None:
        """Note that files may have changed on disk."""
        self._disk_changed = True
        self._note_change()

    async def answer(self, question: Callable[[LanguageFeatures], _T]) -> _T:
        """Answer a question in the worker thread, after all changes that the editor has sent so far."""
        await self._configured.wait()
        self._flush_changes()
        versioned = self._client.supports("workspace.workspace_edit.document_changes")
        resolves, markdown = self._client.resolves_edits(), self._client.shows_markdown()
        answers = LanguageFeatures(self._work, self._placer(), versioned, resolves, markdown)
        try:
            return await self._in_thread(lambda: question(answers))
        finally:
            self._answered += 1
            if self._answered >= _COLLECT_AFTER:
                self._release()

    async def configure(self) -> None:
        """Request the settings of all folders and pass them to the workspace."""
        uris = {path: each.uri for each in self.workspace.folders.values() if (path := to_path(each.uri)) is not None}
        if not uris and (root := self.workspace.root_path):
            uris = {os.path.abspath(root): self.workspace.root_uri or ""}
        found = await self._client.settings(list(uris.values())) or [None] * (len(uris) + 1)
        read = [preferences(self.sent_settings if each is None else each) for each in found]
        for mistake in dict.fromkeys(line for _, mistakes in read for line in mistakes):
            self._client.show_warning(mistake)
        default = read[-1][0]
        own = {path: each for path, (each, _) in zip(uris, read[:-1], strict=True)}
        self._delay = default.delay
        self._submit(lambda: self._work.configure(default, own))
        self._configured.set()
        self._note_change()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a protocol error; the user cannot do anything about it."""
        self._client.log(f"{source.__name__}: {error}")

    def end(self) -> None:
        """Stop to publish diagnostics."""
        if self._task is not None:
            self._task.cancel()

    async def _report(self) -> None:
        while True:
            await self._debounce()
            self._released, seen = False, self._changes
            for path in list(self._open_documents):
                answer = await result_or_error(self.answer(lambda answers, path=path: answers.diagnostics(path)))  # type: ignore[misc]
                if seen != self._changes:
                    break
                self._publish(path, answer)

    def _release(self) -> None:
        """Let the workspace release memory: once after a change, and after many answers."""
        if not self._released or self._answered >= _COLLECT_AFTER:
            self._released, self._answered = True, 0
            self._submit(self._work.release)

    def _publish(self, path: str, answer: FileDiagnostics | BaseException) -> None:
        if isinstance(answer, BaseException):
            self._client.log_fault(answer)
            return
        self._published.publish(self._open_documents[path], answer.diagnostics)
        for error in answer.errors:
            self._client.log(f"{path}: {error}")

    async def _debounce(self) -> None:
        """Wait for a change, and then until there is none for the delay."""
        await self._changed.wait()
        while self._changed.is_set():
            self._changed.clear()
            await asyncio.sleep(self._delay)

    def _note_change(self) -> None:
        self._changes += 1
        self._changed.set()

    def _flush_changes(self) -> None:
        """Submit pending changes to the workspace, even if the question that needs them is cancelled."""
        changes, self._pending = self._pending, {}
        stale, self._disk_changed = self._disk_changed, False
        if changes:
            self._submit(lambda: self._work.update_documents(changes))
        if stale:
            self._submit(self._work.refresh)

    def _submit(self, work: Callable[[], None]) -> None:
        self._thread.submit(work).add_done_callback(self._done)

    def _done(self, work: Future[None]) -> None:
        if (fault := work.exception()) is not None:
            self._client.log_fault(fault)

    def _placer(self) -> PositionMapper:
        documents = dict(self._open_documents)
        return PositionMapper(self.texts.encoding, documents.get, lambda path: from_fs_path(path) or path)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.wrap_future(self._thread.submit(work))


def to_path(uri: str) -> str | None:
    """The absolute path of a file URI; None for other URIs."""
    path = to_fs_path(uri)
    return os.path.abspath(path) if path else None
