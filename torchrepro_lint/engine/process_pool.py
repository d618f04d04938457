"""Processes that work through tasks, so that neither a crash nor an endless task takes the run down."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Generic, NamedTuple, TypeVar

from torchrepro_lint.source.errors import NO_ROOM
from torchrepro_lint.syntax.serialization import packed, unpacked

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

# Seconds that one task may take: a file of 200,000 lines takes a tenth of that.
DEADLINE = 120.0


class Death(NamedTuple):
    """What ended a worker in the midst of a task."""

    reason: str


class _Unsent(NamedTuple):
    """Stands for a result that is nested too deeply to be sent."""


def cores() -> int:
    """How many processes can run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Whether processes are forked, and so share what this one has.
FORKS = sys.platform == "linux"


def work_through(
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    jobs: int,
    deadline: float = DEADLINE,
    *,
    apart: bool = False,
    own: int = 0,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, _Result | Death]]:
    """The number and result of each task, as they are finished, by ``jobs`` processes that take the tasks in order.

    ``apart`` starts each process on a part of its own, for tasks whose neighbours have much in common. Of so many of the last
    tasks as ``own`` says this process does what it can itself, as one of them: nothing has to be sent then, but who waits for
    their end is whoever asks for the next result. ``meanwhile`` is done here while each process is at its first task.

    A task that kills its worker, or takes longer than ``deadline`` seconds, gets a ``Death``; the others go on. No worker
    outlives the iteration.
    """
    turns = _Turns(len(tasks), min(jobs, len(tasks)) if apart else 1)
    crew = _Crew(work, tasks, deadline, turns)
    try:
        others = jobs - 1 if own else jobs
        if own < len(tasks):  # some tasks are not for this process
            others = max(others, 1)
        for lane in range(min(others, len(tasks))):
            crew.hire(lane)
        meanwhile()
        while (number := turns.last(len(tasks) - own)) is not None:
            yield number, work(tasks[number])
            yield from crew.results(patient=False)
        while crew.busy:
            yield from crew.results()
    finally:
        crew.dismiss()


class _Turns:
    """Which task is next: each lane has a part of its own, and when that is done takes from the end of the longest."""

    def __init__(self, tasks: int, lanes: int) -> None:
        bounds = [tasks * lane // lanes for lane in range(lanes + 1)] if tasks else [0]
        self._left = [deque(range(start, end)) for start, end in itertools.pairwise(bounds)]

    def next(self, lane: int) -> int | None:
        """The number of a task that nobody has taken; None where there is none."""
        own = self._left[lane % len(self._left)] if self._left else ()
        if own:
            return own.popleft()
        longest = max(self._left, key=len, default=None)
        return longest.pop() if longest else None

    def last(self, least: int) -> int | None:
        """The last task that nobody has taken, if its number is at least ``least``."""
        part = self._left[-1] if self._left else None
        return part.pop() if part and part[-1] >= least else None


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection
    number: int
    since: float
    lane: int


class _Crew(Generic[_Task, _Result]):
    def __init__(
        self, work: Callable[[_Task], _Result], tasks: Sequence[_Task], deadline: float, turns: _Turns
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._deadline = deadline
        self._turns = turns
        self._context = _context()
        self.busy: list[_Worker] = []

    def hire(self, lane: int) -> None:
        """Start a process on the next task of a lane, if there is one."""
        number = self._turns.next(lane)
        if number is not None:
            ours, theirs = self._context.Pipe()
            # A forked worker has the other end, too, and would wait for ever for a parent that is killed.
            given = (theirs, self._work, ours if FORKS else None)
            process = self._context.Process(target=_serve, args=given, daemon=True)  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            self._assign(process, ours, number, lane)

    def results(self, *, patient: bool = True) -> Iterator[tuple[int, _Result | Death]]:
        """Wait for a worker to finish, die or overrun, and give it or a new one the next task; or see whether one has."""
        oldest = min((each.since for each in self.busy), default=0.0)
        left = max(oldest + self._deadline - time.monotonic(), 0) if patient else 0
        ready = wait([each.pipe for each in self.busy], left) if self.busy else []
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
            self.hire(worker.lane)
            return Death(f"it takes longer than {self._deadline:g} seconds")
        try:
            result: _Result | Death | _Unsent = unpacked(worker.pipe.recv_bytes())
        except (EOFError, OSError, MemoryError) as error:
            _end(worker)
            self.hire(worker.lane)
            return Death(NO_ROOM if isinstance(error, MemoryError) else _cause(worker.process.exitcode))
        number = self._turns.next(worker.lane)
        if number is None:
            _end(worker)
        else:
            self._assign(worker.process, worker.pipe, number, worker.lane)
        return self._work(self._tasks[worker.number]) if isinstance(result, _Unsent) else result

    def _assign(self, process: BaseProcess, pipe: Connection, number: int, lane: int) -> None:
        self.busy.append(_Worker(process, pipe, number, time.monotonic(), lane))
        with contextlib.suppress(OSError):  # it is dead; receiving from it tells
            pipe.send(self._tasks[number])


def _context() -> BaseContext:
    """Forking is quickest, where it is safe: this process has no threads."""
    return multiprocessing.get_context("fork" if FORKS else "spawn")


def _serve(pipe: Connection, work: Callable[[_Task], _Result], other: Connection | None) -> None:
    """A worker's life: an interrupt is the parent's business, and without the parent there is nothing to do."""
    if other is not None:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError):
        while True:
            data = _done(work, pipe.recv())
            # A connection's own pickler would look up the type of each record by Python code.
            pipe.send_bytes(data)


def _done(work: Callable[[_Task], _Result], task: _Task) -> bytes:
    """The result of a task, as it is sent."""
    try:
        result = work(task)
        try:
            return packed(result)
        except RecursionError:
            return packed(_Unsent())
    except MemoryError:
        return packed(Death(NO_ROOM))


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def _cause(status: int | None) -> str:
    if status is not None and status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"its process was ended by {name}"
    return f"its process ended with status {status}"
