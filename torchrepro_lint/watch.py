"""Raising an exception in a thread that computes for too long: only the main thread can have an alarm."""

from __future__ import annotations

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
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, args=(time.process_time() + seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Raise nothing more: neither what is on its way, nor later."""
        while not self._is_stopped():
            pass

    def _is_stopped(self) -> bool:
        try:
            self._ended.put(None)
            self._thread.join()
            _raise(self._watched, None)
        except self._late:  # raised on the last steps
            return False
        return True

    def _watch(self, end: float) -> None:
        left = end - time.process_time()
        while self._goes_on(left):
            left = end - time.process_time()
            if left <= 0:
                _raise(self._watched, self._late)
                left = 1.0

    def _goes_on(self, seconds: float) -> bool:
        """Wait, and say whether nothing has ended it."""
        try:
            self._ended.get(timeout=max(seconds, 0.0))
        except Empty:
            return True
        return False


def _raise(thread: int, what: type[BaseException] | None) -> None:
    """Have an exception raised in a thread at its next step; None takes back one that has not been."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if what is None else ctypes.py_object(what))
