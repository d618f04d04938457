"""Limits of a piece of work: a deadline in seconds of CPU time, however busy the machine is, and a guard against exceptions.

In the main thread a signal raises the exception of a deadline; in other threads a watchdog thread does.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from torchrepro_lint.call_stack import raise_in_thread, with_deep_stack
from torchrepro_lint.engine.process_pool import TASK_SECONDS
from torchrepro_lint.source.errors import OUT_OF_MEMORY, Fault

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding

_T = TypeVar("_T")


class Watchdog:
    """A watchdog thread: raises an exception in the thread that creates it, after so many seconds of CPU time of the process.

    It raises again every second until ``stop``. The exception arrives only when code outside Python's own returns.
    """

    def __init__(self, seconds: float, error: type[BaseException]) -> None:
        self._error = error
        self._watched = threading.get_ident()
        self._has_raised = False
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, args=(time.process_time() + seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop raising; an exception that is already pending is caught here."""
        while not self._has_ended():
            pass
        if self._has_raised:
            self._catch_pending()

    def _has_ended(self) -> bool:
        try:
            self._ended.put(None)
            self._thread.join()
        except self._error:  # raised in these very lines
            return False
        return True

    def _catch_pending(self) -> None:
        """Raise once more, which replaces a pending exception, and catch it. Clearing it instead would leave the interpreter
        checking for it at every step, and for ever where it is profiled.
        """
        with contextlib.suppress(self._error):
            raise_in_thread(self._watched, self._error)
            while True:
                pass

    def _watch(self, end: float) -> None:
        left = end - time.process_time()
        while self._wait(left):
            left = end - time.process_time()
            if left <= 0:
                self._has_raised = True
                raise_in_thread(self._watched, self._error)
                left = 1.0

    def _wait(self, seconds: float) -> bool:
        """Wait; false when ``stop`` was called meanwhile."""
        try:
            self._ended.get(timeout=max(seconds, 0.0))
        except Empty:
            return True
        return False


# Seconds added for each file of a project: queries on the whole project count for the file that asks them first.
_SECONDS_PER_FILE = 0.1
# The alarm repeats, because it may go off where an exception is dropped (in a finaliser).
_REPEAT_SECONDS = 1.0


class DeadlineExceededError(BaseException):
    """The time limit is exceeded. It is no ``Exception``, so that no handler in between takes it for an error. ``findings`` are
    those of the file that was being checked.
    """

    findings: tuple[Finding, ...] = ()
    reason = f"it takes longer than {TASK_SECONDS:g} seconds"


def time_limit(files: int) -> float:
    """The time limit of one file, in seconds, in a project of so many files."""
    return TASK_SECONDS + _SECONDS_PER_FILE * files


@contextmanager
def deadline(files: int = 0) -> Iterator[None]:
    """Raise ``DeadlineExceededError`` in the block after ``time_limit(files)`` seconds.

    On Windows there is no such alarm in the main thread, and nothing happens.
    """
    seconds = time_limit(files)
    if threading.current_thread() is not threading.main_thread():
        with _watchdog(seconds):
            yield
        return
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _raise_on_signal)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    watch = Watchdog(seconds, DeadlineExceededError)
    try:
        yield
    finally:
        watch.stop()


def _raise_on_signal(*_: object) -> None:
    raise DeadlineExceededError


def guarded_analysis(work: Callable[[], _T]) -> _T | Fault:
    """The result of an analysis, which may take a second try on a larger stack, or the fault that it raised."""
    return guarded(lambda: with_deep_stack(work))


def guarded(work: Callable[[], _T]) -> _T | Fault:
    """The result of work, or the fault that it raised: one file or one rule must not end the run."""
    try:
        return work()
    except MemoryError:
        return Fault(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001  the only place that catches everything
        return Fault(
            f"{type(error).__name__}: {' '.join(str(error).split())}{_place(error)}", isinstance(error, RecursionError)
        )


def _place(error: Exception) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
