"""The LSP client: the editor's capabilities, requests to it, and notifications.

``WorkerThread`` runs the analysis, one task at a time, outside the event loop of the protocol.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from torchrepro_lint.engine.limits import guarded
from torchrepro_lint.interfaces.lsp.workspace import SECTION
from torchrepro_lint.source.errors import Fault

_T = TypeVar("_T")
# Seconds to wait for a response; the server can go on without one.
_TIMEOUT = 10.0
# Files to lint, and files that decide the target torch or exclude others.
_WATCHED = (
    "**/*.{py,ipynb}",
    "**/*.{toml,json,yml,yaml}",
    "**/{uv,poetry,pdm}.lock",
    "**/requirements*.txt",
    "**/requirements/*.txt",
    "**/.gitignore",
)


class Client:
    """The editor at the other end of the connection."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Future[None]] = set()

    def attach_loop(self) -> None:
        """Remember the running event loop, so that other threads can send through it."""
        self._loop = asyncio.get_running_loop()

    def supports(self, name: str) -> bool:
        """Whether the client has a capability, by its path: ``workspace.configuration``."""
        return bool(self._capability(name))

    def resolves_edits(self) -> bool:
        """Whether the client can ask for the edit of a code action when the user chooses it."""
        properties = self._capability("text_document.code_action.resolve_support.properties")
        return "edit" in (properties or ()) and self.supports("text_document.code_action.data_support")

    def shows_markdown(self) -> bool:
        """Whether the client shows Markdown in a hover; one that says nothing of it does."""
        formats = self._capability("text_document.hover.content_format")
        return not formats or types.MarkupKind.Markdown in formats

    async def settings(self, uris: Sequence[str]) -> list[Any] | None:
        """The settings for some folders, then those for files in none; None where the client does not provide them."""
        items = [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in uris]
        items.append(types.ConfigurationItem(section=SECTION))
        if not self.supports("workspace.configuration"):
            return None
        found = await self._request(self._server.workspace_configuration_async(types.ConfigurationParams(items=items)))
        return list(found) if isinstance(found, (list, tuple)) and len(found) == len(items) else None

    async def watch(self) -> None:
        """Register for notifications of changed files and settings."""
        wanted = []
        if self.supports("workspace.did_change_watched_files.dynamic_registration"):
            watchers = [types.FileSystemWatcher(glob_pattern=each) for each in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            wanted.append(types.Registration("watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if self.supports("workspace.did_change_configuration.dynamic_registration"):
            section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
        if wanted:
            await self._request(
                self._server.client_register_capability_async(types.RegistrationParams(registrations=wanted))
            )

    @contextmanager
    def show_progress(self) -> Iterator[None]:
        """Show progress while a project is read; from any thread but that of the event loop."""
        if self._loop is None or not self.supports("window.work_done_progress"):
            yield
            return
        done = asyncio.Event()
        self._loop.call_soon_threadsafe(self._start_progress, done)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(done.set)

    def _start_progress(self, done: asyncio.Event) -> None:
        task = asyncio.ensure_future(self._report_progress(done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_progress(self, done: asyncio.Event) -> None:
        token = str(uuid.uuid4())
        progress = self._server.work_done_progress
        if isinstance(await result_or_error(progress.create_async(token)), BaseException):
            return
        progress.begin(token, types.WorkDoneProgressBegin(title=f"{SECTION}: reading the project"))
        await done.wait()
        progress.end(token, types.WorkDoneProgressEnd())

    def show_warning(self, line: str) -> None:
        """Show a warning to the user; from any thread."""
        if self._loop is not None:
            params = types.ShowMessageParams(types.MessageType.Warning, f"{SECTION}: {line}")
            self._loop.call_soon_threadsafe(self._server.window_show_message, params)

    def log(self, line: str) -> None:
        """Write a line into the editor's log."""
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{SECTION}: {line}"))

    def log_fault(self, fault: BaseException) -> None:
        """Log an exception; from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.log, f"{type(fault).__name__}: {fault}")

    def _capability(self, name: str) -> Any:
        value: Any = self._server.client_capabilities
        for word in name.split("."):
            value = getattr(value, word, None)
        return value

    async def _request(self, request: Awaitable[_T]) -> _T | None:
        """The response to a request; None where it fails or times out."""
        answer = await result_or_error(asyncio.wait_for(request, _TIMEOUT))
        if isinstance(answer, BaseException):
            self.log_fault(answer)
            return None
        return answer


async def result_or_error(work: Awaitable[_T]) -> _T | BaseException:
    """The result of an awaitable, or the exception that ended it."""
    (found,) = await asyncio.gather(work, return_exceptions=True)
    return found


# The parser may need more stack than some systems give a thread.
_STACK = 64 << 20


class WorkFailedError(Exception):
    """A task failed; the text says how and where."""


class WorkerThread:
    """A single-threaded executor: runs tasks in order. It is a daemon, so the process may end while it works."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        before = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        finally:
            threading.stack_size(before)

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Queue a task; it does not run if its future is cancelled first."""
        future: Future[_T] = Future()
        self._queue.put((future, work))
        return future

    def _run(self) -> None:
        while True:
            _run_task(*self._queue.get())


def _run_task(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    answer = guarded(work)
    if isinstance(answer, Fault):
        future.set_exception(WorkFailedError(answer.message))
    else:
        future.set_result(answer)
