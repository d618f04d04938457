"""Costs of processes: CPU time and peak memory, and what each stage of a run takes of it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parent.parent


class Cost(NamedTuple):
    """User and system seconds of a process, and the peak resident memory of the largest one in MiB."""

    seconds: float
    memory: float


def stages(directory: Path, repeats: int) -> dict[str, float]:
    """The median CPU seconds of each stage of a run in one process, the collector off as in the command line."""
    rounds = [_stages(directory) for _ in range(repeats)]
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def _stages(directory: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.tasks", "stages", str(directory), "off"]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    laps: dict[str, float] = json.loads(done.stdout)
    return laps


def awaited(process: subprocess.Popen[bytes]) -> Cost:
    """Wait for a process to end; what it and those that it has waited for have cost."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)
