"""``python -m benchmarks.surveying REPOS... --out FOLDER``: what a survey costs, and how much of that is the cluster's.

The repositories are surveyed once on this machine and once on a Dask cluster of as many processes on the same cores, each time into
a new dataset. The cost is processor time, which other work on the machine does not change, of everything that a survey starts. The
overhead of the cluster is what scheduler, workers and client take beyond the tasks, as a share of the tasks' own processor time, less
what the survey without a cluster takes beyond them. From the time for one repository follows, on paper, that of 100,000 on 64 cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import machine
from benchmarks.measuring import awaited

_ROOT = Path(__file__).parent.parent
# Its statistical profiler samples the worker's own threads, which only wait for a survey's tasks; see docs/survey.md.
_CLUSTER = """
import os
import sys
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "false"
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
_FIGURES = """SELECT count(*) AS repositories, sum(cpu_seconds) AS tasks, median(cpu_seconds) AS median,
  quantile_cont(cpu_seconds, 0.95) AS most, max(peak_bytes) / 1048576 AS peak, quantile_cont(peak_bytes, 0.5) / 1048576 AS usual,
  sum(files)::BIGINT AS files, sum(entry_points)::BIGINT AS entries, sum(reproducible)::BIGINT AS good,
  sum(findings)::BIGINT AS findings FROM runs"""
_REASONS = "SELECT status, reason, count(*) AS repositories FROM runs GROUP BY ALL ORDER BY ALL"
_MANY, _CORES = 100_000, 64


class Survey(NamedTuple):
    """What one survey took: seconds on the clock, and processor time of all its processes together."""

    wall: float
    seconds: float
    figures: dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.surveying", description=__doc__)
    parser.add_argument("repositories", nargs="+", metavar="REPOS")
    parser.add_argument("--out", type=Path, required=True, help="a new folder for the datasets")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (default: the cores)")
    parser.add_argument("--deadline", default="300", help="seconds of processor time for a repository (default: 300)")
    parser.add_argument("--only", choices=("here", "cluster"), help="measure only one of the two")
    given = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    limit = ["--deadline", given.deadline]
    done = {}
    if given.only != "cluster":
        done["here"] = surveyed(given.repositories, given.out / "here", ["--jobs", str(given.jobs), *limit])
        report(done["here"], given.out / "here")
    if given.only != "here":
        done["cluster"] = on_a_cluster(given.repositories, given.out / "cluster", given.jobs, limit)
        report(done["cluster"], given.out / "cluster")
    if len(done) == 2:
        beyond = {name: each.seconds - each.figures["tasks"] for name, each in done.items()}
        overhead = (beyond["cluster"] - beyond["here"]) / done["cluster"].figures["tasks"]
        print(f"overhead of the cluster: {overhead:.1%} of the work", end="\n\n")


def surveyed(repositories: list[str], out: Path, options: list[str]) -> Survey:
    """A survey, and the processor time of its process and of all that it started."""
    command = [sys.executable, "-m", "torchrepro_lint", "survey", *repositories, "-o", str(out), "--quiet", *options]
    started = time.monotonic()
    with subprocess.Popen(command, cwd=Path.cwd(), env=_environment()) as process:
        own = awaited(process)
        if process.returncode:
            raise SystemExit(f"the survey ended with status {process.returncode}")
    wall = time.monotonic() - started
    figures = asked(out, _FIGURES)[0]
    return Survey(wall, own.seconds, figures)


def on_a_cluster(repositories: list[str], out: Path, jobs: int, limit: list[str]) -> Survey:
    """The same on a cluster, whose processes count from their start to their end."""
    command = [sys.executable, "-c", _CLUSTER, str(jobs)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        address = cluster.stdout.readline().decode().strip()
        found = surveyed(repositories, out, ["--scheduler", address, *limit])
        cluster.stdin.close()
        cost = awaited(cluster)
    return found._replace(seconds=found.seconds + cost.seconds)


def report(survey: Survey, out: Path) -> None:
    """Print the figures of a survey."""
    figures = survey.figures
    count, tasks = figures["repositories"], figures["tasks"]
    hours = _MANY * survey.seconds / count / 3600
    print(f"{out.name}: {count} repositories, {figures['files']:,} files, {figures['entries']:,} entry points that save or "
          f"measure something, {figures['good']:,} of them reproducible, {figures['findings']:,} findings")  # fmt: skip
    print(
        f"  {survey.wall:.0f} s on the clock, {survey.seconds:.0f} s of processor time, of which {tasks:.0f} s in the tasks"
    )
    print(f"  {60 * count / survey.seconds:.1f} repositories per minute and core")
    print(f"  seconds of a task: median {figures['median']:.2f}, 95th percentile {figures['most']:.2f}")
    print(
        f"  peak memory of a task's largest process: median {figures['usual']:.0f} MiB, most {figures['peak']:.0f} MiB"
    )
    print(
        f"  {_MANY:,} repositories on {_CORES} cores: {hours:.0f} hours of processor time, {hours / _CORES:.1f} hours"
    )
    for row in asked(out, _REASONS):
        print(f"  {row['repositories']:5} {row['status']} {row['reason']}")
    print()


def asked(out: Path, query: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    command = [
        sys.executable,
        "-m",
        "torchrepro_lint",
        "survey",
        "show",
        str(out),
        "--output-format",
        "json",
        "--sql",
        query,
    ]
    ran = subprocess.run(command, stdout=subprocess.PIPE, env=_environment(), check=True)
    (table,) = json.loads(ran.stdout)
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0"}


if __name__ == "__main__":
    main()
