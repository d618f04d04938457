"""The editor at the other end: what it can do, what it is asked for, and what it is told.

Work that is done piece by piece in one thread of its own.
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

from torchrepro_lint.interfaces.lsp.preferences import SECTION
from torchrepro_lint.source.errors import Fault, guarded

_T = TypeVar("_T")
# Seconds after which no answer is expected any more: what it would say is not needed to go on.
_PATIENCE = 10.0
# What is linted, and what says which torch a project has and what is left out.
_WATCHED = (
    "**/*.{py,ipynb}",
    "**/{pyproject,torchrepro-lint}.toml",
    "**/{uv,poetry,pdm}.lock",
    "**/requirements*.txt",
    "**/requirements/*.txt",
    "**/environment*.{yml,yaml}",
    "**/.gitignore",
)


class Counterpart:
    """The editor that a server serves."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Future[None]] = set()

    def listen(self) -> None:
        """From now on things may be told from any thread; in the loop."""
        self._loop = asyncio.get_running_loop()

    def can(self, name: str) -> bool:
        """Whether it has a capability, by its path: ``workspace.configuration``."""
        return bool(self._capability(name))

    def resolves_edits(self) -> bool:
        """Whether it asks for the edit of an action when that is chosen, by what it was given to ask with."""
        properties = self._capability("text_document.code_action.resolve_support.properties")
        return "edit" in (properties or ()) and self.can("text_document.code_action.data_support")

    async def settings(self, uris: Sequence[str]) -> list[Any] | None:
        """Its settings for some folders, and for what lies in none; nothing where it cannot be asked."""
        items = [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in uris]
        items.append(types.ConfigurationItem(section=SECTION))
        if not self.can("workspace.configuration"):
            return None
        found = await self._try(self._server.workspace_configuration_async(types.ConfigurationParams(items=items)))
        return list(found) if isinstance(found, (list, tuple)) and len(found) == len(items) else None

    async def watch(self) -> None:
        """Ask to be told of changes on disk, and of settings."""
        wanted = []
        if self.can("workspace.did_change_watched_files.dynamic_registration"):
            watchers = [types.FileSystemWatcher(glob_pattern=each) for each in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            wanted.append(types.Registration("watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if self.can("workspace.did_change_configuration.dynamic_registration"):
            section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
        if wanted:
            await self._try(
                self._server.client_register_capability_async(types.RegistrationParams(registrations=wanted))
            )

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Show that a project is read; from any thread but that of the loop."""
        if self._loop is None or not self.can("window.work_done_progress"):
            yield
            return
        done = asyncio.Event()
        self._loop.call_soon_threadsafe(self._start_to_wait, done)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(done.set)

    def _start_to_wait(self, done: asyncio.Event) -> None:
        task = asyncio.ensure_future(self._waiting(done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _waiting(self, done: asyncio.Event) -> None:
        token = str(uuid.uuid4())
        progress = self._server.work_done_progress
        if isinstance(await outcome(progress.create_async(token)), BaseException):
            return
        progress.begin(token, types.WorkDoneProgressBegin(title=f"{SECTION}: reading the project"))
        await done.wait()
        progress.end(token, types.WorkDoneProgressEnd())

    def complain(self, line: str) -> None:
        """Tell whoever sits there; from any thread."""
        if self._loop is not None:
            params = types.ShowMessageParams(types.MessageType.Warning, f"{SECTION}: {line}")
            self._loop.call_soon_threadsafe(self._server.window_show_message, params)

    def log(self, line: str) -> None:
        """Write a line into its log."""
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{SECTION}: {line}"))

    def log_fault(self, fault: BaseException) -> None:
        """Write down what broke, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.log, f"{type(fault).__name__}: {fault}")

    def _capability(self, name: str) -> Any:
        value: Any = self._server.client_capabilities
        for word in name.split("."):
            value = getattr(value, word, None)
        return value

    async def _try(self, request: Awaitable[_T]) -> _T | None:
        """What it answers; nothing where it refuses, or says nothing."""
        answer = await outcome(asyncio.wait_for(request, _PATIENCE))
        if isinstance(answer, BaseException):
            self.log_fault(answer)
            return None
        return answer


async def outcome(work: Awaitable[_T]) -> _T | BaseException:
    """What comes of some work: its answer, or what ended it."""
    (found,) = await asyncio.gather(work, return_exceptions=True)
    return found


# Of a thread's own stack the parser may need more than some systems give it.
_STACK = 64 << 20


class BrokenWorkError(Exception):
    """A piece of work broke; the text says how and where."""


class OwnThread:
    """One thread for all pieces, in the order in which they come. The process may end while it works."""

    def __init__(self, name: str) -> None:
        self._pieces: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        before = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        finally:
            threading.stack_size(before)

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Do a piece of work when its turn comes, unless it is cancelled before that."""
        future: Future[_T] = Future()
        self._pieces.put((future, work))
        return future

    def _run(self) -> None:
        while True:
            _do(*self._pieces.get())


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    answer = guarded(work)
    if isinstance(answer, Fault):
        future.set_exception(BrokenWorkError(answer.message))
    else:
        future.set_result(answer)
