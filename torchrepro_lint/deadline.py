"""An end to work that takes too long, counted in the seconds that this process computes, however busy the machine is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torchrepro_lint.watch import Watch
from torchrepro_lint.workers import DEADLINE

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
