"""The call stack: work that outgrows the usual one is done again on a larger one.

The analysis recurses as deeply as the functions, classes or assignments of a program build on one another. Python's own limit of a
thousand calls is reached by two hundred functions that call one another. ``with_deep_stack`` does such work again in a thread with
a stack of a gibibyte.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

_Value = TypeVar("_Value")

# Sizes to try, in bytes: where memory is limited, the first may not be had. Only what is used takes memory.
_SIZES = (1 << 30, 1 << 28, 1 << 26)
# Bytes for a call: those of Python 3.10 take half of that or less, and so do the functions in C between two of them.
_BYTES_PER_CALL = 4096
# Seconds after which the waiting thread looks whether an exception was raised in it.
_POLL_SECONDS = 0.1


class _Here(threading.local):
    """Whether this thread has the large stack."""

    deep = False


_here = _Here()
# One large stack at a time: the limit of recursion is that of all threads.
_one = threading.RLock()


class _StoppedError(BaseException):
    """Raised in the thread with the large stack where the one that waits for it was interrupted."""


def has_deep_stack() -> bool:
    """Whether this code runs on the large stack: where that overflows, too, nothing else is left."""
    return _here.deep


def with_deep_stack(work: Callable[[], _Value]) -> _Value:
    """The result of ``work``, which is done a second time, on the large stack, if it overflows the usual one.

    Raises ``RecursionError`` where it overflows both, and what interrupts the wait (a deadline, Ctrl-C), once the work has stopped.
    """
    if _here.deep:
        return work()
    try:
        return work()
    except RecursionError:
        pass  # outside of this block, so that the frames of the first try are gone
    return on_deep_stack(work)


def raise_in_thread(thread: int, what: type[BaseException]) -> None:
    """Raise an exception in a thread at its next bytecode."""
    import ctypes  # hardly any run needs it

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(what))


class _Attempt:
    """Work on the large stack: its result, or what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.result: Any = None
        self.error: BaseException | None = None
        # Held until the work has ended. ``Thread.join`` takes a thread for ended once it was interrupted itself.
        self.running = threading.Lock()
        self.running.acquire()
        self._lock = threading.Lock()
        self._thread = 0
        self._is_stopped = False

    def run(self) -> None:
        """Do the work; for the new thread."""
        _here.deep = True
        try:
            with self._lock:
                self._thread = threading.get_ident()
            if not self._is_stopped:
                self.result = self._work()
        except RecursionError as error:
            self.error = RecursionError(*error.args)  # without its frames, a hundred thousand of them
        except BaseException as error:  # noqa: BLE001  it is raised in the waiting thread
            self.error = error
        finally:
            self.running.release()

    def stop(self) -> bool:
        """Stop the work, which raises in its thread; false where it has not begun, and never will."""
        with self._lock:
            self._is_stopped = True
            if self._thread:
                raise_in_thread(self._thread, _StoppedError)
            return bool(self._thread)


def on_deep_stack(work: Callable[[], _Value]) -> _Value:
    """As ``with_deep_stack``, without the first try on the usual stack."""
    if _here.deep:
        return work()
    attempt = _Attempt(work)
    with _one:
        limit = sys.getrecursionlimit()
        try:
            _finish(attempt)
        finally:
            sys.setrecursionlimit(limit)
    if attempt.error is not None:
        raise attempt.error
    result: _Value = attempt.result
    return result


def _finish(attempt: _Attempt) -> None:
    """Start an attempt and wait for its end; what is raised meanwhile stops it, and is raised when it has stopped."""
    interrupt: BaseException | None = None
    is_started = False
    while True:
        try:
            if not is_started:
                is_started = True
                _start(attempt)
            while not attempt.running.acquire(timeout=_POLL_SECONDS):
                pass
        except BaseException as error:  # noqa: PERF203  it is raised once the work has stopped
            interrupt = error
            if not attempt.stop():
                raise
        else:
            break
    if interrupt is not None:
        raise interrupt


def _start(attempt: _Attempt) -> None:
    """Start the thread that makes an attempt, with the largest stack that can be had; ``RecursionError`` where none can."""
    before = threading.stack_size()
    for size in _SIZES:
        thread = threading.Thread(target=attempt.run, daemon=True)
        sys.setrecursionlimit(size // _BYTES_PER_CALL)
        try:
            threading.stack_size(size)
            thread.start()
        except (RuntimeError, ValueError):
            continue
        finally:
            threading.stack_size(before)
        return
    raise RecursionError("there is no memory for a larger stack")
