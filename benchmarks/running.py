"""Interleaved measurement: all commands of a round one after the other, round after round, so that load affects all alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import Cost, awaited
from benchmarks.packages import cache

ROOT = Path(__file__).parent.parent


class Row(NamedTuple):
    """A command to measure: ``before`` puts things in place for it, unmeasured; ``slow`` rows take part in few rounds."""

    name: str
    command: Sequence[str]
    before: Callable[[], object] | None = None
    slow: bool = False
    standard_input: Path | None = None


class Run(NamedTuple):
    """One run of a command: its wall seconds, and what it and its processes cost."""

    wall: float
    cost: Cost


class Figures(NamedTuple):
    """The runs of a row that count."""

    row: Row
    runs: tuple[Run, ...]

    @property
    def wall(self) -> float:
        """The median of the wall seconds."""
        return statistics.median(run.wall for run in self.runs)

    @property
    def seconds(self) -> float:
        """The median of the CPU seconds of all its processes together."""
        return statistics.median(run.cost.seconds for run in self.runs)

    @property
    def memory(self) -> float:
        """The median of the peaks, in MiB, each that of the largest process."""
        return statistics.median(run.cost.memory for run in self.runs)


def measured(rows: Sequence[Row], repeats: int, slow_repeats: int) -> list[Figures]:
    """The figures of all rows. A round before, which fills the file cache, does not count; a slow row that runs once does."""
    runs: dict[str, list[Run]] = {row.name: [] for row in rows}
    for turn in range(repeats + 1):
        for row in rows:
            if row.slow and turn > slow_repeats - (slow_repeats == 1):
                continue
            run = run_once(row)
            if turn or (row.slow and slow_repeats == 1):
                runs[row.name].append(run)
    return [Figures(row, tuple(runs[row.name])) for row in rows]


def run_once(row: Row) -> Run:
    """Run a command; what it prints is thrown away."""
    if row.before:
        row.before()
    given = row.standard_input.open("rb") if row.standard_input else subprocess.DEVNULL
    started = time.perf_counter()
    process = subprocess.Popen(
        row.command, cwd=ROOT, env=environment(), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    cost = awaited(process)
    wall = time.perf_counter() - started
    if not isinstance(given, int):
        given.close()
    return Run(wall, cost)


def environment() -> dict[str, str]:
    """What every command runs in: with compiled modules, as an installed tool has them, wherever a checkout keeps none."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(cache() / "compiled"), "PYTHONHASHSEED": "0"}
    return {**kept, **own, "SEMGREP_SEND_METRICS": "off"}


def table(figures: Sequence[Figures]) -> str:
    """One line for each row, in Markdown."""
    lines = ["| command | wall s | least to most | CPU s | peak MiB | rounds |", "|---|---:|---:|---:|---:|---:|"]
    for each in figures:
        walls = [run.wall for run in each.runs]
        spread = f"{min(walls):.2f} to {max(walls):.2f}"
        cells = (
            each.row.name,
            f"{each.wall:.2f}",
            spread,
            f"{each.seconds:.2f}",
            f"{each.memory:.0f}",
            str(len(walls)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
