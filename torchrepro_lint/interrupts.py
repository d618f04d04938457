"""Signals that end a run: they wait while files are put in place, and end the process as a shell expects."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})


def end_on_sigterm() -> None:
    """Turn SIGTERM into an exit with status 143 that runs what cleans up; where it is ignored it stays ignored."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for what is short and belongs together."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
