"""What goes wrong: a mistake in how a run was asked for, and faults that must not end it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")

# What is said of work that the memory does not suffice for.
NO_ROOM = "it takes more memory than there is"


class UsageError(Exception):
    """A usage or configuration error; its text is one line for the user, the exit status is 2."""


class Fault(NamedTuple):
    """A piece of work that broke: one line on what and where, and whether it is what it works on that is too deep."""

    message: str
    recursion: bool = False


def guarded(work: Callable[[], _T]) -> _T | Fault:
    """The result, or the fault in its stead: one file or one rule must not take the run down."""
    try:
        return work()
    except MemoryError:
        return Fault(NO_ROOM)
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
