"""Scheduling of tasks with back-pressure: on the cores of this machine, or on a Dask cluster, which does all distribution.

At most a few tasks for each core are handed over at a time, and a result is given on as soon as it is there, so that neither tasks
nor results pile up. Dask runs the tasks of a worker that dies again on another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING, Any

from torchrepro_lint import __version__
from torchrepro_lint.interfaces.survey.isolation import end_helpers, isolated, open_helpers, packed, unpacked
from torchrepro_lint.interfaces.survey.task import Result, Task, blank_run, failed
from torchrepro_lint.source.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client

# Tasks that wait at each core beside the one that runs, so that no core waits for the next.
_AHEAD = 2
_CONNECT_SECONDS = 30


def local_results(tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """The result of each task as it is done, by ``jobs`` processes at a time. No process outlives the iteration."""
    open_helpers()
    coming = iter(tasks)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            running = {pool.submit(isolated, task) for task in islice(coming, jobs * _AHEAD)}
            while running:
                done, running = wait(running, None, FIRST_COMPLETED)  # torchrepro: ignore[TRL505] sorted at the end
                running |= {pool.submit(isolated, task) for task in islice(coming, len(done))}
                for future in done:
                    yield unpacked(future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_helpers()


def cluster_results(tasks: Iterable[Task], address: str) -> Iterator[Result]:
    """The result of each task as it is done, by the workers of the Dask cluster whose scheduler has this address.

    Raises ``UsageError`` where there is none, and where a worker has another version of this package.
    """
    from distributed import Client, as_completed

    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--scheduler {address}: no Dask scheduler answers there: {' '.join(str(error).split())}"
        ) from None
    with client:
        slots = _require_same_version(client, address)
        coming = enumerate(tasks)
        waiting: dict[Any, Task] = {}

        def submit(count: int) -> list[Any]:
            """Hand over the next tasks."""
            futures = []
            for number, task in islice(coming, count):
                future = client.submit(isolated, task, key=f"torchrepro-survey-{number}", pure=False)
                waiting[future.key] = task
                futures.append(future)
            return futures

        first = submit(slots * (1 + _AHEAD))
        done = as_completed(first, loop=client.loop, raise_errors=False)  # torchrepro: ignore[TRL505] sorted at the end
        for future in done:
            task = waiting.pop(future.key)
            yield _result(future, task)
            future.release()
            done.update(submit(1))


def worker_version() -> str:
    """The version of this package, as a worker has it."""
    return __version__


def _require_same_version(client: Client, address: str) -> int:
    """The number of tasks that the workers run at once. Raises ``UsageError`` where there are none of this version."""
    client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    try:
        versions = client.run(worker_version)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--scheduler {address}: its workers need torchrepro-lint {__version__}: {error}") from None
    other = sorted({version for version in versions.values() if version != __version__})
    if other:
        raise UsageError(
            f"--scheduler {address}: its workers have torchrepro-lint {other[0]}, and this is {__version__}"
        )
    return sum(client.nthreads().values())


def _result(future: Any, task: Task) -> Result:
    """The result of a task that a cluster has done, or given up because its workers died."""
    if future.status == "finished":
        return unpacked(future.result())
    error = future.exception()
    return unpacked(
        packed(failed(blank_run(task), "worker", f"{type(error).__name__}: {' '.join(str(error).split())}"))
    )
