"""Processes that work through tasks, so that neither a crash nor an endless task takes the run down."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Generic, NamedTuple, TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

# Seconds that one task may take: a file of 200,000 lines takes a tenth of that.
DEADLINE = 120.0


class Death(NamedTuple):
    """What ended a worker in the midst of a task."""

    reason: str


def cores() -> int:
    """How many processes can run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def work_through(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], jobs: int, deadline: float = DEADLINE
) -> Iterator[tuple[int, _Result | Death]]:
    """The number and result of each task, as they are finished, by ``jobs`` processes that take the tasks in order.

    A task that kills its worker, or takes longer than ``deadline`` seconds, gets a ``Death``; the others go on. No worker
    outlives the iteration.
    """
    crew = _Crew(work, tasks, deadline)
    try:
        for _ in range(min(jobs, len(tasks))):
            crew.hire()
        while crew.busy:
            yield from crew.results()
    finally:
        crew.dismiss()


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection
    number: int
    since: float


class _Crew(Generic[_Task, _Result]):
    def __init__(self, work: Callable[[_Task], _Result], tasks: Sequence[_Task], deadline: float) -> None:
        self._work = work
        self._tasks = tasks
        self._deadline = deadline
        self._next = 0
        self._context = _context()
        self.busy: list[_Worker] = []

    def hire(self) -> None:
        """Start a process on the next task, if there is one."""
        if self._next < len(self._tasks):
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs, self._work), daemon=True)  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            self._assign(process, ours)

    def results(self) -> Iterator[tuple[int, _Result | Death]]:
        """Wait for a worker to finish, die or overrun, and give it or a new one the next task."""
        oldest = min(each.since for each in self.busy)
        ready = wait([each.pipe for each in self.busy], max(oldest + self._deadline - time.monotonic(), 0))
        for worker in list(self.busy):
            late = time.monotonic() - worker.since > self._deadline
            if worker.pipe in ready or late:
                self.busy.remove(worker)
                yield worker.number, self._received(worker, late=worker.pipe not in ready)

    def dismiss(self) -> None:
        """End all processes."""
        for worker in self.busy:
            _end(worker)
        self.busy.clear()

    def _received(self, worker: _Worker, *, late: bool) -> _Result | Death:
        if late:
            _end(worker)
            self.hire()
            return Death(f"it takes longer than {self._deadline:g} seconds")
        try:
            result: _Result = worker.pipe.recv()
        except (EOFError, OSError):
            _end(worker)
            self.hire()
            return Death(_cause(worker.process.exitcode))
        if self._next < len(self._tasks):
            self._assign(worker.process, worker.pipe)
        else:
            _end(worker)
        return result

    def _assign(self, process: BaseProcess, pipe: Connection) -> None:
        number, self._next = self._next, self._next + 1
        self.busy.append(_Worker(process, pipe, number, time.monotonic()))
        with contextlib.suppress(OSError):  # it is dead; receiving from it tells
            pipe.send(self._tasks[number])


def _context() -> BaseContext:
    """Forking is quickest, where it is safe: this process has no threads."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


def _serve(pipe: Connection, work: Callable[[_Task], _Result]) -> None:
    """A worker's life: an interrupt is the parent's business, and without the parent there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(work(pipe.recv()))


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _cause(status: int | None) -> str:
    if status is not None and status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"its process was ended by {name}"
    return f"its process ended with status {status}"
