"""The process pool: a task that kills its worker or never ends fails alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchrepro_lint.engine.process_pool import WorkerFailure, run_tasks

TOP = Path(__file__).parents[2]
posix = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")


def _square(number: int) -> int:
    return number * number


def _odd_one_out(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        os._exit(7)
    if number == 6:
        time.sleep(600)
    return number


def _greedy(number: int) -> int:
    if number == 3:
        raise MemoryError
    return number


def _process(_number: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_each_task_has_its_result(jobs: int) -> None:
    assert sorted(run_tasks(_square, range(20), jobs)) == [(number, number * number) for number in range(20)]


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_of_the_last_tasks_this_process_does_some_itself(jobs: int) -> None:
    found = dict(run_tasks(_process, range(30), jobs, own=10))
    assert sorted(found) == list(range(30))
    ours = {number for number, process in found.items() if process == os.getpid()}
    assert 29 in ours
    assert ours <= set(range(20, 30))


@posix
def test_a_death_elsewhere_costs_its_own_task_while_this_process_works() -> None:
    found = dict(run_tasks(_odd_one_out, range(200), 2, deadline=2, own=190))
    assert {number for number, answer in found.items() if isinstance(answer, WorkerFailure)} == {3, 5, 6}
    assert len(found) == 200


def test_a_task_that_the_memory_does_not_suffice_for_costs_itself_alone(capfd: pytest.CaptureFixture[str]) -> None:
    found = dict(run_tasks(_greedy, range(8), 2))
    assert found.pop(3) == WorkerFailure("it takes more memory than there is")
    assert found == {number: number for number in range(8) if number != 3}
    assert capfd.readouterr().err == ""


def test_no_task_starts_no_process() -> None:
    assert list(run_tasks(_square, [], 4)) == []


@posix
@pytest.mark.parametrize("jobs", [1, 3])
def test_a_death_costs_its_own_task(jobs: int) -> None:
    found = dict(run_tasks(_odd_one_out, range(10), jobs, deadline=2))
    assert found[3] == WorkerFailure("its process was ended by SIGKILL")
    assert found[5] == WorkerFailure("its process ended with status 7")
    assert found[6] == WorkerFailure("it takes longer than 2 seconds")
    assert [found[number] for number in (0, 1, 2, 4, 7, 8, 9)] == [0, 1, 2, 4, 7, 8, 9]


def _nested(depth: int) -> tuple[object, ...]:
    found: tuple[object, ...] = ()
    for _ in range(depth):
        found = (found,)
    return found


def test_a_result_that_is_nested_too_deeply_to_be_sent_arrives(capfd: pytest.CaptureFixture[str]) -> None:
    found = dict(run_tasks(_nested, [3, 100_000, 5], 2))
    assert (found[0], found[2]) == (_nested(3), _nested(5))
    depth, inner = 0, found[1]
    while isinstance(inner, tuple) and inner:
        depth, inner = depth + 1, inner[0]
    assert depth == 100_000
    assert capfd.readouterr().err == ""


@posix
def test_no_process_is_left_when_the_iteration_is_given_up() -> None:
    results = run_tasks(_process, range(1000), 2)
    _, process = next(results)
    results.close()
    assert isinstance(process, int)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


ORPHANED = """
import os, time
from torchrepro_lint.engine.process_pool import run_tasks

def work(number):
    os.write(1, b".")
    return number

for _ in run_tasks(work, range(3), 3):
    time.sleep(600)
"""


@posix
def test_no_worker_outlives_a_parent_that_is_killed() -> None:
    """Whoever reads what they say waits for the last of them."""
    parent = subprocess.Popen([sys.executable, "-c", ORPHANED], cwd=TOP, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.read(3) == b"..."
    parent.kill()
    assert parent.communicate(timeout=120)[0] == b""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no safe path yet")
def test_a_worker_that_is_not_forked_runs_no_module_of_the_working_directory(tmp_path: Path) -> None:
    for name in ("multiprocessing.py", "tempfile.py"):
        (tmp_path / name).write_text("open('ran', 'w').close()\n", encoding="utf-8")
    program = (
        "import operator, os, sys\nsys.path.pop(0)\nfrom torchrepro_lint.engine import process_pool\n"
        "process_pool.FORKS = False\nprint(sorted(process_pool.run_tasks(operator.neg, [1, 2], 2)))\n"
        "print('PYTHONSAFEPATH' in os.environ)\n"
    )
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**outside, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not (tmp_path / "ran").exists()
    assert ran.stdout == "[(0, -1), (1, -2)]\nFalse\n"
