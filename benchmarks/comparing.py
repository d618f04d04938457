"""``python -m benchmarks.comparing``: ours beside every tool that looks for any of this, and beside bare parsers.

All rows of a round run one after the other on the same files, round after round, so that a busy spell of the machine hits
all alike; what counts is the median. The slow tools take part in the first ``--slow-repeats`` rounds only.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import machine
from benchmarks.measuring import Cost, awaited
from benchmarks.packages import joined, sources
from benchmarks.tools import program

_ROOT = Path(__file__).parent.parent
# A change that a person makes: a new function at the end of a module, another one each time.
_CHANGE = "\n\ndef added_{number}(values):\n    return [value for value in values if value]\n"


class Row(NamedTuple):
    """A command to measure: ``before`` puts things in place for it, unmeasured; ``slow`` rows take part in few rounds."""

    name: str
    command: Sequence[str]
    before: Callable[[], object] | None = None
    slow: bool = False
    standard_input: Path | None = None


def main() -> None:
    """Measure and print one table."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        shutil.copytree(options.directory or joined(), tree)
        rows = [row for row in _rows(tree, Path(scratch), options) if not options.only or row.name in options.only]
        costs = _measure(rows, options.repeats, options.slow_repeats)
        files = sources(tree)
        lines = sum(path.read_bytes().count(b"\n") for path in files)
        print(f"{len(files)} files, {lines:,} lines; {', '.join(f'{a} {b}' for a, b in machine().items())}\n")
        print(_table(rows, costs))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    parser.add_argument("--directory", type=Path, help="measure a copy of a directory instead of the pinned packages")
    parser.add_argument("--repeats", type=int, default=5, help="rounds that count (default: %(default)s)")
    parser.add_argument("--slow-repeats", type=int, default=5, help="those with the slow tools (default: %(default)s)")
    parser.add_argument("--semgrep-rules", type=Path, nargs="*", default=[], help="rule files that semgrep runs")
    parser.add_argument("--subset", default="timm", help="what pylint is given of the tree (default: %(default)s)")
    parser.add_argument("--only", nargs="*", help="measure these rows only")
    return parser.parse_args()


def _rows(tree: Path, scratch: Path, options: argparse.Namespace) -> list[Row]:
    return [*_our_rows(tree, scratch), *_parsers(tree), *_others(tree, scratch, options)]


def _our_rows(tree: Path, scratch: Path) -> list[Row]:
    caches = str(scratch / "caches")
    files = sources(tree)
    changed = files[len(files) // 2]
    ours = [sys.executable, "-m", "torchrepro_lint"]
    run = [*ours, str(tree), "--quiet", "--exit-zero"]
    cached = [*run, "--cache-dir", caches]
    original = changed.read_bytes()
    numbers = itertools.count()

    def restore() -> None:
        changed.write_bytes(original)
        _age(changed)
        subprocess.run(cached, cwd=_ROOT, check=True, env=_environment(), capture_output=True)

    def change() -> None:
        restore()  # so that everything else is known
        changed.write_bytes(original + _CHANGE.format(number=next(numbers)).encode())

    one = [*ours, str(changed), "--quiet", "--exit-zero", "--cache-dir", caches]
    piped = [*ours, "-", "--stdin-filename", str(changed), "--quiet", "--exit-zero", "--cache-dir", caches]
    return [
        Row("ours, cold, one process", [*run, "--no-cache", "--jobs", "1"]),
        Row("ours, cold, all cores", [*run, "--no-cache"]),
        Row("ours, nothing changed", cached, restore),
        Row("ours, one file changed, whole tree", cached, change),
        Row("ours, one file changed, that file", one, change),
        Row("ours, one file on standard input", piped, restore, standard_input=changed),
        Row("ours, --help", [*ours, "--help"]),
        Row("ours, rule TRL101", [*ours, "rule", "TRL101"]),
    ]


def _parsers(tree: Path) -> list[Row]:
    tasks = [sys.executable, "-m", "benchmarks.tasks"]
    return [
        Row("libcst.parse_module, one process", [*tasks, "parse_libcst", str(tree), "on"]),
        Row("ast.parse, one process", [*tasks, "parse_ast", str(tree), "on"]),
    ]


def _others(tree: Path, scratch: Path, options: argparse.Namespace) -> list[Row]:
    cache = scratch / "ruff"
    rules = [word for path in options.semgrep_rules for word in ("--config", str(path))]
    select = ["check", "--select", "F,NPY", "--quiet", "--exit-zero", "--isolated"]
    asked: list[tuple[str, str, str, list[str], bool]] = [
        ("ruff check --select F,NPY, cold", "ruff", "ruff", [*select, "--no-cache", str(tree)], False),
        ("ruff check --select F,NPY, warm", "ruff", "ruff", [*select, "--cache-dir", str(cache), str(tree)], False),
        ("torchdetscan", "torchdetscan", "torchdetscan", [str(tree)], False),
        ("TorchFix", "torchfix", "torchfix", [str(tree)], True),
        ("flake8 with TorchFix", "flake8", "flake8", ["--isolated", "--select", "TOR", str(tree)], True),
        (
            "pylint with dslinter, " + options.subset,
            "dslinter",
            "pylint",
            [*_DSLINTER, str(tree / options.subset)],
            True,
        ),
    ]
    if rules:
        arguments = ["scan", "--metrics=off", "--disable-version-check", "--quiet", *rules, str(tree)]
        asked.insert(3, (f"semgrep, {len(options.semgrep_rules)} rules", "semgrep", "semgrep", arguments, False))
    rows = []
    for name, tool, command, arguments, slow in asked:
        found = program(tool, command)
        if found is None:
            print(f"{name}: cannot be installed here", file=sys.stderr)
        else:
            rows.append(Row(name, [str(found), *arguments], slow=slow))
    return rows


# Of its rules, those that look for randomness.
_DSLINTER = ("--load-plugins=dslinter", "--disable=all", "--enable=W5506")


def _measure(rows: Sequence[Row], repeats: int, slow_repeats: int) -> dict[str, list[tuple[float, Cost]]]:
    costs: dict[str, list[tuple[float, Cost]]] = {row.name: [] for row in rows}
    for turn in range(repeats + 1):
        for row in rows:
            if row.slow and turn > slow_repeats - (slow_repeats == 1):
                continue
            cost = _run(row)
            # The first round fills the file cache; a slow tool that is run once counts there.
            if turn or (row.slow and slow_repeats == 1):
                costs[row.name].append(cost)
    return costs


def _run(row: Row) -> tuple[float, Cost]:
    """The wall seconds of a command, and what it cost."""
    if row.before:
        row.before()
    given = row.standard_input.open("rb") if row.standard_input else subprocess.DEVNULL
    started = time.perf_counter()
    process = subprocess.Popen(
        row.command, cwd=_ROOT, env=_environment(), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    cost = awaited(process)
    wall = time.perf_counter() - started
    if not isinstance(given, int):
        given.close()
    return wall, cost


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0", "SEMGREP_SEND_METRICS": "off"}


def _age(path: Path) -> None:
    """Let a file look as if it had not been written just now: such a one is read again, since it may change once more."""
    before = time.time() - 60
    os.utime(path, (before, before))


def _table(rows: Sequence[Row], costs: dict[str, list[tuple[float, Cost]]]) -> str:
    lines = ["| command | wall s | least to most | CPU s | peak MiB | rounds |", "|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        found = costs[row.name]
        walls = [wall for wall, _ in found]
        cpu, memory = (statistics.median(cost[at] for _, cost in found) for at in (0, 1))
        spread = f"{min(walls):.2f} to {max(walls):.2f}"
        cells = (row.name, f"{statistics.median(walls):.2f}", spread, f"{cpu:.2f}", f"{memory:.0f}", str(len(found)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
