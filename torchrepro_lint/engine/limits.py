"""Raising an exception in a thread that computes for too long: only the main thread can have an alarm.

An end to work that takes too long, counted in the seconds that this process computes, however busy the machine is.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from torchrepro_lint.engine.process_pool import DEADLINE


class Watch:
    """Raises an exception in the thread that makes it, once the process has computed for so many seconds, and again every
    second until ``stop``. What runs outside Python's own code ends first.
    """

    def __init__(self, seconds: float, late: type[BaseException]) -> None:
        self._late = late
        self._watched = threading.get_ident()
        self._has_raised = False
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, args=(time.process_time() + seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Raise nothing more: neither what is on its way, nor later."""
        while not self._is_over():
            pass
        if self._has_raised:
            self._swallow()

    def _is_over(self) -> bool:
        try:
            self._ended.put(None)
            self._thread.join()
        except self._late:  # raised on the last steps
            return False
        return True

    def _swallow(self) -> None:
        """Let one more take the place of one that may be on its way, and catch it. Taking it back instead would leave the
        interpreter looking for it at every step, and for ever where it is profiled.
        """
        with contextlib.suppress(self._late):
            _raise(self._watched, self._late)
            while True:
                pass

    def _watch(self, end: float) -> None:
        left = end - time.process_time()
        while self._goes_on(left):
            left = end - time.process_time()
            if left <= 0:
                self._has_raised = True
                _raise(self._watched, self._late)
                left = 1.0

    def _goes_on(self, seconds: float) -> bool:
        """Wait, and say whether nothing has ended it."""
        try:
            self._ended.get(timeout=max(seconds, 0.0))
        except Empty:
            return True
        return False


def _raise(thread: int, what: type[BaseException]) -> None:
    """Have an exception raised in a thread at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(what))


# The time that a file may take beside what all of a project share, which is worked out when it is first asked for.
_FOR_EACH = 0.1
# An alarm may go off where an exception is dropped (in a finaliser), so it goes off again.
_AGAIN = 1.0


class Late(BaseException):
    """The time is up. No ``Exception``, so that nothing in between takes it for a fault of its own."""

    reason = f"it takes longer than {DEADLINE:g} seconds"


def allowed(files: int) -> float:
    """The seconds that a file may take in a project of so many."""
    return DEADLINE + _FOR_EACH * files


@contextmanager
def deadline(files: int = 0) -> Iterator[None]:
    """Raise ``Late`` in what takes longer than a file may, in a project of so many.

    On Windows there is no such alarm in the main thread, and nothing happens.
    """
    seconds = allowed(files)
    if threading.current_thread() is not threading.main_thread():
        with _watched(seconds):
            yield
        return
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _watched(seconds: float) -> Iterator[None]:
    watch = Watch(seconds, Late)
    try:
        yield
    finally:
        watch.stop()


def _stop(*_: object) -> None:
    raise Late
