"""Costs of processes: CPU time and peak memory of each task, interleaved so that a busy spell hits all alike."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parent.parent


class Task(NamedTuple):
    """A task of ``benchmarks.tasks``, with Python's garbage collector ``on`` or ``off`` at its start."""

    name: str
    collector: str


class Cost(NamedTuple):
    """User and system seconds of a process, and the peak resident memory of the largest one in MiB."""

    seconds: float
    memory: float


class Figure(NamedTuple):
    """What a task costs: the median of its runs, with the least and the most seconds."""

    task: Task
    seconds: float
    least: float
    most: float
    memory: float


def measure(tasks: Sequence[Task], directory: Path, repeats: int) -> list[Figure]:
    """Run every task in turn, ``repeats`` times over; one round before, to fill the file cache, does not count."""
    costs: dict[Task, list[Cost]] = {task: [] for task in tasks}
    for turn in range(repeats + 1):
        for task in tasks:
            cost, _ = _run(task, directory)
            if turn:
                costs[task].append(cost)
    return [_figure(task, costs[task]) for task in tasks]


def stages(directory: Path, repeats: int) -> dict[str, float]:
    """The median CPU seconds of each stage of a run, the collector off as in the command line."""
    rounds = [json.loads(_run(Task("stages", "off"), directory)[1]) for _ in range(repeats)]
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def _run(task: Task, directory: Path) -> tuple[Cost, bytes]:
    command = [sys.executable, "-m", "benchmarks.tasks", task.name, str(directory), task.collector]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    cost = awaited(process)
    if process.returncode:
        raise SystemExit(f"{task.name} failed with status {process.returncode}")
    return cost, output


def awaited(process: subprocess.Popen[bytes]) -> Cost:
    """Wait for a process to end; what it and those that it has waited for have cost."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def _figure(task: Task, costs: Sequence[Cost]) -> Figure:
    seconds = [cost.seconds for cost in costs]
    memory = statistics.median(cost.memory for cost in costs)
    return Figure(task, statistics.median(seconds), min(seconds), max(seconds), memory)
