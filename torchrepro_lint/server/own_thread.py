"""Work that is done piece by piece in one thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from torchrepro_lint.source.errors import Fault, guarded

_T = TypeVar("_T")
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
