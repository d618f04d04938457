"""The server: what an editor tells goes to the workspace, what that finds goes to the editor.

The loop of the protocol never waits for an analysis: those are made one after another by one thread, to which alone the
workspace belongs. Changes are collected until the editor is quiet for a while.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from torchrepro_lint import __version__
from torchrepro_lint.interfaces.lsp.answers import Answers, Diagnosed, Published
from torchrepro_lint.interfaces.lsp.counterpart import Counterpart, OwnThread, outcome
from torchrepro_lint.interfaces.lsp.documents import Document
from torchrepro_lint.interfaces.lsp.preferences import SECTION, Preferences, preferences
from torchrepro_lint.interfaces.lsp.protocol import Protocol
from torchrepro_lint.interfaces.lsp.texts import Placer, Texts
from torchrepro_lint.interfaces.lsp.workspace import Workspace

_T = TypeVar("_T")
# After so many answers without a change it is time to look for garbage.
_MANY = 100
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook")
        )
    ],
    save=True,
)


class Server(LanguageServer):
    """A language server for one editor. ``texts`` are open there, ``given`` the settings that it sent by itself."""

    def __init__(self) -> None:
        super().__init__(
            name=SECTION,
            version=__version__,
            protocol_cls=Protocol,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=_NOTEBOOKS,
        )
        self.texts = Texts()
        self.given: Any = None
        self.ended = False
        self._documents: dict[str, Document] = {}
        self._waiting: dict[str, Document | None] = {}
        self._stale = False
        # How often something has changed: what was found before the last change is not shown.
        self._changes = 0
        self._changed = asyncio.Event()
        self._configured = asyncio.Event()
        self._rested = False
        self._answered = 0
        self._delay = Preferences().delay
        self._counterpart = Counterpart(self)
        self._published = Published(self.text_document_publish_diagnostics)
        self._thread = OwnThread(SECTION)
        self._work = Workspace(self._counterpart.complain, self._counterpart.busy)
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start to report; in the loop."""
        self._counterpart.listen()
        await self.configure()
        self._task = asyncio.create_task(self._report())
        await self._counterpart.watch()

    def put(self, path: str, document: Document | None) -> None:
        """A document is open with this content, or closed."""
        if path in self._documents and document is not None:
            self._rest()
        self._waiting[path] = document
        # What was changed last is reported on first.
        self._documents.pop(path, None)
        if document is None:
            self._published.clear(path)
        else:
            self._documents = {path: document, **self._documents}
        self._change()

    def look_again(self) -> None:
        """Files have changed on disk, or may have."""
        self._stale = True
        self._change()

    async def asked(self, question: Callable[[Answers], _T]) -> _T:
        """An answer of the workspace with all that the editor has told so far."""
        await self._configured.wait()
        self._hand_over()
        versioned = self._counterpart.can("workspace.workspace_edit.document_changes")
        answers = Answers(self._work, self._placer(), versioned, self._counterpart.resolves_edits())
        try:
            return await self._in_thread(lambda: question(answers))
        finally:
            self._answered += 1
            if self._answered >= _MANY:
                self._rest()

    async def configure(self) -> None:
        """Ask for the settings of all folders."""
        uris = {path: each.uri for each in self.workspace.folders.values() if (path := to_path(each.uri)) is not None}
        if not uris and (root := self.workspace.root_path):
            uris = {os.path.abspath(root): self.workspace.root_uri or ""}
        found = await self._counterpart.settings(list(uris.values())) or [None] * (len(uris) + 1)
        read = [preferences(self.given if each is None else each) for each in found]
        for mistake in dict.fromkeys(line for _, mistakes in read for line in mistakes):
            self._counterpart.complain(mistake)
        default = read[-1][0]
        own = {path: each for path, (each, _) in zip(uris, read[:-1], strict=True)}
        self._delay = default.delay
        self._submit(lambda: self._work.configure(default, own))
        self._configured.set()
        self._change()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What was wrong with a message is for the editor's log: nobody at the keyboard can mend it."""
        self._counterpart.log(f"{source.__name__}: {error}")

    def end(self) -> None:
        """Nothing more will be asked."""
        if self._task is not None:
            self._task.cancel()

    async def _report(self) -> None:
        while True:
            await self._quiet()
            self._rested, seen = False, self._changes
            for path in list(self._documents):
                answer = await outcome(self.asked(lambda answers, path=path: answers.diagnostics(path)))  # type: ignore[misc]
                if seen != self._changes:
                    break
                self._show(path, answer)

    def _rest(self) -> None:
        """What is linked no longer holds, or much was asked: there is time now to let go of what nobody needs."""
        if not self._rested or self._answered >= _MANY:
            self._rested, self._answered = True, 0
            self._submit(self._work.rest)

    def _show(self, path: str, answer: Diagnosed | BaseException) -> None:
        if isinstance(answer, BaseException):
            self._counterpart.log_fault(answer)
            return
        self._published.show(self._documents[path], answer.diagnostics)
        for error in answer.errors:
            self._counterpart.log(f"{path}: {error}")

    async def _quiet(self) -> None:
        """Wait for a change, and then until there is none for a while."""
        await self._changed.wait()
        while self._changed.is_set():
            self._changed.clear()
            await asyncio.sleep(self._delay)

    def _change(self) -> None:
        self._changes += 1
        self._changed.set()

    def _hand_over(self) -> None:
        """Give the workspace what is new, whatever becomes of the question that needs it."""
        changes, self._waiting = self._waiting, {}
        stale, self._stale = self._stale, False
        if changes:
            self._submit(lambda: self._work.take(changes))
        if stale:
            self._submit(self._work.look_again)

    def _submit(self, work: Callable[[], None]) -> None:
        self._thread.submit(work).add_done_callback(self._done)

    def _done(self, work: Future[None]) -> None:
        if (fault := work.exception()) is not None:
            self._counterpart.log_fault(fault)

    def _placer(self) -> Placer:
        documents = dict(self._documents)
        return Placer(self.texts.encoding, documents.get, lambda path: from_fs_path(path) or path)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.wrap_future(self._thread.submit(work))


def to_path(uri: str) -> str | None:
    """The absolute path of a file's URI; None for what is no file."""
    path = to_fs_path(uri)
    return os.path.abspath(path) if path else None
