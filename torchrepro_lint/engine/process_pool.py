"""A fault-isolated process pool, whose tasks no crash ends, and the scheduler that distributes work over its processes by weight."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from torchrepro_lint.source.errors import OUT_OF_MEMORY
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.serialization import pickled, unpickled

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

# Seconds that one task may take: a file of 200,000 lines takes a tenth of that.
TASK_SECONDS = 120.0


class WorkerFailure(Record, frozen=True):
    """Why a worker ended before it finished a task."""

    reason: str


class _Unsendable(Record, frozen=True):
    """Stands for a result that is nested too deeply to be pickled."""


def cores() -> int:
    """How many processes can run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Whether processes are forked, and so share the memory of this one.
FORKS = sys.platform == "linux"


# The fraction of the work on a component that is serial: queries about all its files, answered by one process.
_SERIAL_FRACTION = 0.3


class Schedule(Record, frozen=True):
    """A schedule: the components that each process checks by itself, one bundle per process, and those that all share."""

    bundles: tuple[tuple[int, ...], ...]
    shared: tuple[int, ...]


def make_schedule(weights: Sequence[int], jobs: int) -> Schedule:
    """The schedule with the least makespan among the candidates, for components of these weights and ``jobs`` processes.

    The serial work on the first shared component overlaps with the bundles; that on further ones does not.
    """
    return min(_candidates(weights, jobs), key=lambda way: _makespan(weights, way, jobs))


def _candidates(weights: Sequence[int], jobs: int) -> Iterator[Schedule]:
    """Candidate schedules: no component is shared, one is, or the heaviest ones are."""
    order = sorted(range(len(weights)), key=lambda each: (-weights[each], each))
    shared = [(), *((each,) for each in order), *(tuple(order[:count]) for count in range(2, len(order) + 1))]
    for some in shared[: 4 * jobs + 1]:
        yield Schedule(_bin_packing([each for each in order if each not in some], weights, jobs), some)


def _bin_packing(order: Sequence[int], weights: Sequence[int], jobs: int) -> tuple[tuple[int, ...], ...]:
    """Greedy bin packing: the heaviest first, each to the process with the least load."""
    found: list[list[int]] = [[] for _ in range(min(jobs, len(order)))]
    loads = [0] * len(found)
    for each in order:
        least = loads.index(min(loads))
        found[least].append(each)
        loads[least] += weights[each]
    return tuple(map(tuple, found))


def _makespan(weights: Sequence[int], way: Schedule, jobs: int) -> float:
    """The estimated makespan of a schedule."""
    bundles = [sum(weights[each] for each in bundle) for bundle in way.bundles]
    asked = [weights[each] * _SERIAL_FRACTION for each in way.shared]
    first = max((*bundles, *asked[:1], (sum(bundles) + sum(asked[:1])) / jobs), default=0)
    return first + sum(asked[1:]) + sum(weights[each] for each in way.shared) * (1 - _SERIAL_FRACTION) / jobs


def run_tasks(
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    jobs: int,
    deadline: float = TASK_SECONDS,
    *,
    apart: bool = False,
    own: int = 0,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, _Result | WorkerFailure]]:
    """The number and result of each task, as they are finished, by ``jobs`` processes that take the tasks in order.

    With ``apart`` each process has a queue of its own with a contiguous share of the tasks, and steals from the longest queue
    when that is empty: for tasks whose neighbours have much in common. Of the last ``own`` tasks this process itself does as many
    as it can, from the end: their results need not be sent, but they delay the iteration. ``meanwhile`` is called once all
    workers have their first task.

    A task that kills its worker, or takes longer than ``deadline`` seconds, gets a ``WorkerFailure``; the others go on. No
    worker outlives the iteration.
    """
    queues = _WorkQueues(len(tasks), min(jobs, len(tasks)) if apart else 1)
    pool = _Pool(work, tasks, deadline, queues)
    try:
        others = jobs - 1 if own else jobs
        if own < len(tasks):  # some tasks are not for this process
            others = max(others, 1)
        for lane in range(min(others, len(tasks))):
            pool.start(lane)
        meanwhile()
        while (number := queues.last(len(tasks) - own)) is not None:
            yield number, work(tasks[number])
            yield from pool.results(patient=False)
        while pool.busy:
            yield from pool.results()
    finally:
        pool.terminate()


class _WorkQueues:
    """Work-stealing queues: each lane has one, and when it is empty takes from the end of the longest."""

    def __init__(self, tasks: int, lanes: int) -> None:
        bounds = [tasks * lane // lanes for lane in range(lanes + 1)] if tasks else [0]
        self._waiting = [deque(range(start, end)) for start, end in itertools.pairwise(bounds)]

    def next(self, lane: int) -> int | None:
        """The number of a task that is not taken yet; None where there is none."""
        own = self._waiting[lane % len(self._waiting)] if self._waiting else ()
        if own:
            return own.popleft()
        longest = max(self._waiting, key=len, default=None)
        return longest.pop() if longest else None

    def last(self, least: int) -> int | None:
        """The last task that is not taken yet, if its number is at least ``least``."""
        part = self._waiting[-1] if self._waiting else None
        return part.pop() if part and part[-1] >= least else None


class _Worker(Record, frozen=True):
    process: BaseProcess
    pipe: Connection
    number: int
    since: float
    lane: int


class _Pool(Generic[_Task, _Result]):
    def __init__(
        self, work: Callable[[_Task], _Result], tasks: Sequence[_Task], deadline: float, queues: _WorkQueues
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._deadline = deadline
        self._queues = queues
        self._context = _context()
        self.busy: list[_Worker] = []

    def start(self, lane: int) -> None:
        """Start a worker on the next task of a lane, if there is one."""
        number = self._queues.next(lane)
        if number is not None:
            ours, theirs = self._context.Pipe()
            # A forked worker inherits the other end, too, and would wait for ever for a parent that is killed.
            given = (theirs, self._work, ours if FORKS else None)
            process = self._context.Process(target=_serve, args=given, daemon=True)  # type: ignore[attr-defined]
            with contextlib.nullcontext() if FORKS else _safe_path():
                process.start()
            theirs.close()
            self._assign(process, ours, number, lane)

    def results(self, *, patient: bool = True) -> Iterator[tuple[int, _Result | WorkerFailure]]:
        """The results of workers that finished, died or overran; each, or its successor, gets the next task.

        Unless ``patient``, this does not wait.
        """
        from multiprocessing.connection import wait

        oldest = min((each.since for each in self.busy), default=0.0)
        left = max(oldest + self._deadline - time.monotonic(), 0) if patient else 0
        ready = wait([each.pipe for each in self.busy], left) if self.busy else []
        for worker in list(self.busy):
            late = time.monotonic() - worker.since > self._deadline
            if worker.pipe in ready or late:
                self.busy.remove(worker)
                yield worker.number, self._received(worker, late=worker.pipe not in ready)

    def terminate(self) -> None:
        """End all processes."""
        for worker in self.busy:
            _end(worker)
        self.busy.clear()

    def _received(self, worker: _Worker, *, late: bool) -> _Result | WorkerFailure:
        if late:
            _end(worker)
            self.start(worker.lane)
            return WorkerFailure(f"it takes longer than {self._deadline:g} seconds")
        try:
            result: _Result | WorkerFailure | _Unsendable = unpickled(worker.pipe.recv_bytes())
        except (EOFError, OSError, MemoryError) as error:
            _end(worker)
            self.start(worker.lane)
            return WorkerFailure(
                OUT_OF_MEMORY if isinstance(error, MemoryError) else exit_cause(worker.process.exitcode)
            )
        number = self._queues.next(worker.lane)
        if number is None:
            _end(worker)
        else:
            self._assign(worker.process, worker.pipe, number, worker.lane)
        return self._work(self._tasks[worker.number]) if isinstance(result, _Unsendable) else result

    def _assign(self, process: BaseProcess, pipe: Connection, number: int, lane: int) -> None:
        self.busy.append(_Worker(process, pipe, number, time.monotonic(), lane))
        with contextlib.suppress(OSError):  # it is dead, which the next receive reports
            pipe.send(self._tasks[number])


def _context() -> BaseContext:
    """Fork where that is safe, because it is fastest: this process has no threads."""
    import multiprocessing  # a small project is read by one process

    return multiprocessing.get_context("fork" if FORKS else "spawn")


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """A Python that is started inside looks for no modules in the working directory, whose code is only read: it is started with
    ``-c``. Before 3.11 Python has no such option.
    """
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _serve(pipe: Connection, work: Callable[[_Task], _Result], other: Connection | None) -> None:
    """The loop of a worker: it leaves interrupts to the parent, and ends with it."""
    if other is not None:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError):
        while True:
            data = _packed_result(work, pipe.recv())
            # Packed by ourselves: the connection's own pickler is slower, since it looks up the type of each record in Python code.
            pipe.send_bytes(data)


def _packed_result(work: Callable[[_Task], _Result], task: _Task) -> bytes:
    """The result of a task as bytes."""
    try:
        result = work(task)
        try:
            return pickled(result)
        except RecursionError:
            return pickled(_Unsendable())
    except MemoryError:
        return pickled(WorkerFailure(OUT_OF_MEMORY))


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()


def exit_cause(status: int | None) -> str:
    """How a process ended, by its exit code; a negative one is the number of a signal."""
    if status is not None and status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"its process was ended by {name}"
    return f"its process ended with status {status}"
