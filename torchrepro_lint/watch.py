"""Raising an exception in a thread that computes for too long: only the main thread can have an alarm."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from queue import Empty, SimpleQueue


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
