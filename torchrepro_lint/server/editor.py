"""The protocol: what an editor tells goes to the workspace, what that finds goes to the editor.

The loop of the protocol never waits for an analysis: those are made one after another by one thread, to which alone the
workspace belongs. Changes are collected until the editor is quiet for a while.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import from_fs_path, to_fs_path

from torchrepro_lint import __version__
from torchrepro_lint.server.answers import Answers
from torchrepro_lint.server.documents import Document
from torchrepro_lint.server.placing import Placer
from torchrepro_lint.server.preferences import SECTION, Preferences, preferences
from torchrepro_lint.server.workspace import Workspace

_T = TypeVar("_T")
# Of a thread's own stack the parser may need more than some systems give it.
_STACK = 64 << 20
_WATCHED = "**/{*.py,*.ipynb,*.toml,*.txt,*.lock,*.yml,*.yaml,*.cfg,.gitignore}"


class Protocol(LanguageServerProtocol):
    """The protocol; a request that makes no sense is answered, for whoever asked waits."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message from its JSON; raises ``JsonRpcException``."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                self._send_response(data["id"], error=error.to_response_error())
            raise


class Server(LanguageServer):
    """A language server for one editor."""

    def __init__(self) -> None:
        super().__init__(
            name=SECTION,
            version=__version__,
            protocol_cls=Protocol,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                notebook_selector=[
                    types.NotebookDocumentFilterWithNotebook(
                        notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook")
                    )
                ],
                save=True,
            ),
        )
        self.waiting: dict[str, Document | None] = {}
        self.documents: dict[str, Document] = {}
        self.stale = False
        self.given: Any = None
        self.default = Preferences()
        self._published: dict[str, set[str]] = {}
        self._thread = _own_thread()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = asyncio.Event()
        self._work = Workspace(self._complain)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start to report; in the loop."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._report())

    def want(self) -> None:
        """There is something to report anew."""
        self._wanted.set()

    def put(self, path: str, document: Document | None) -> None:
        """A document is open with this content, or closed."""
        self.waiting[path] = document
        if document is None:
            self.documents.pop(path, None)
        else:
            self.documents[path] = document
        self.want()

    async def asked(self, question: Callable[[Answers], _T]) -> _T:
        """An answer of the workspace with all that the editor has told so far."""
        work = self._hand_over()
        placer = self._placer()
        versioned = bool(self._capability("workspace.workspace_edit.document_changes"))

        def answer() -> _T:
            work()
            return question(Answers(self._work, placer, versioned))

        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    async def configure(self) -> None:
        """Ask for the settings of all folders."""
        folders = {path: uri for uri in self.workspace.folders if (path := to_path(uri)) is not None}
        if not folders and (root := self.workspace.root_path):
            folders = {os.path.abspath(root): self.workspace.root_uri or ""}
        items = [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in folders.values()]
        items.append(types.ConfigurationItem(section=SECTION))
        answers: list[Any] = [self.given] * len(items)
        if self._capability("workspace.configuration"):
            found = await self._try(self.workspace_configuration_async(types.ConfigurationParams(items=items)))
            if isinstance(found, (list, tuple)) and len(found) == len(items):
                answers = [self.given if each is None else each for each in found]
        read = [preferences(each) for each in answers]
        for mistake in dict.fromkeys(line for _, mistakes in read for line in mistakes):
            self._complain(mistake)
        self.default = read[-1][0]
        own = {path: each for path, (each, _) in zip(folders, read[:-1], strict=True)}
        await self._in_thread(lambda: self._work.configure(self.default, own))
        self.want()

    async def watch(self) -> None:
        """Ask to be told of changes on disk, and of settings."""
        wanted = []
        if self._capability("workspace.did_change_watched_files.dynamic_registration"):
            watchers = [types.FileSystemWatcher(glob_pattern=_WATCHED)]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            wanted.append(types.Registration("watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if self._capability("workspace.did_change_configuration.dynamic_registration"):
            section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
        if wanted:
            await self._try(self.client_register_capability_async(types.RegistrationParams(registrations=wanted)))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What was wrong with a message is for the editor's log: nobody at the keyboard can mend it."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{source.__name__}: {error}"))

    def end(self) -> None:
        """Nothing more will be asked."""
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _report(self) -> None:
        while True:
            await self._wanted.wait()
            while self._wanted.is_set():  # until the editor is quiet
                self._wanted.clear()
                await asyncio.sleep(self.default.delay)
            answer = await _outcome(self.asked(Answers.diagnostics))
            if isinstance(answer, BaseException):
                self._log(f"{type(answer).__name__}: {answer}")
            elif not self._wanted.is_set() or not self.waiting:
                self._publish(answer.by_path, answer.errors)

    def _publish(self, found: Mapping[str, list[tuple[str, types.Diagnostic]]], errors: tuple[str, ...]) -> None:
        for error in errors:
            self._log(error)
        for path in sorted(found.keys() | self._published.keys()):
            document = self.documents.get(path)
            uris = dict.fromkeys(document.cells or (document.uri,)) if document else {}
            by_uri: dict[str, list[types.Diagnostic]] = {
                uri: [] for uri in [*uris, *sorted(self._published.get(path, ()))]
            }
            if document is not None:
                for uri, each in found.get(path, ()):
                    by_uri.setdefault(uri, []).append(each)
            for uri, diagnostics in by_uri.items():
                version = document.version if document and uri == document.uri else None
                self.text_document_publish_diagnostics(
                    types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
                )
            if document is None:
                self._published.pop(path, None)
            else:
                self._published[path] = set(uris)

    def _hand_over(self) -> Callable[[], None]:
        changes, self.waiting = self.waiting, {}
        stale, self.stale = self.stale, False

        def work() -> None:
            self._work.take(changes)
            if stale:
                self._work.look_again()

        return work

    def _placer(self) -> Placer:
        documents = dict(self.documents)
        encoding = self.workspace.position_encoding or types.PositionEncodingKind.Utf16
        name = encoding.value if isinstance(encoding, types.PositionEncodingKind) else str(encoding)
        return Placer(name, documents.get, lambda path: from_fs_path(path) or path)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _try(self, request: Any) -> Any:
        """What the editor answers; nothing where it refuses."""
        answer = await _outcome(request)
        if isinstance(answer, BaseException):
            self._log(f"{type(answer).__name__}: {answer}")
            return None
        return answer

    def _capability(self, name: str) -> Any:
        value: Any = self.client_capabilities
        for word in name.split("."):
            value = getattr(value, word, None)
        return value

    def _complain(self, line: str) -> None:
        """Tell whoever sits at the editor; from any thread."""
        if self._loop is not None:
            params = types.ShowMessageParams(types.MessageType.Warning, f"{SECTION}: {line}")
            self._loop.call_soon_threadsafe(self.window_show_message, params)

    def _log(self, line: str) -> None:
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{SECTION}: {line}"))


async def _outcome(work: Awaitable[_T]) -> _T | BaseException:
    """What comes of some work: its answer, or what ended it."""
    (found,) = await asyncio.gather(work, return_exceptions=True)
    return found


def to_path(uri: str) -> str | None:
    """The absolute path of a file's URI; None for what is no file."""
    path = to_fs_path(uri)
    return os.path.abspath(path) if path else None


def _own_thread() -> ThreadPoolExecutor:
    before = threading.stack_size(_STACK)
    try:
        thread = ThreadPoolExecutor(1, "torchrepro-lint")
        thread.submit(int).result()  # it starts with the first piece of work
    finally:
        threading.stack_size(before)
    return thread
