"""``python -m benchmarks.single FOLDER``: the cost of the command line for one changed file of a large project.

A copy of the folder is linted once. Then each of some files, at equal distances in the order of their paths, gets a new
function at its end and is linted alone, and is put back and linted once more, which does not count.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.packages import sources
from benchmarks.rows import OURS
from benchmarks.running import Row, Run, run_once

_CHANGE = b"\n\ndef added(values):\n    return [value for value in values if value]\n"
_WORST = 5


class _One(NamedTuple):
    file: str
    run: Run


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.single", description=__doc__)
    parser.add_argument("folder", type=Path, help="a project")
    parser.add_argument("--count", type=int, default=40, help="how many files (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(options.folder, Path(scratch, "project"))
        files = sources(copy)
        chosen = files[:: max(1, len(files) // options.count)][: options.count]
        _print(len(files), list(_measured(copy, chosen, Path(scratch, "cache"))))


def _measured(tree: Path, files: Sequence[Path], cache: Path) -> Iterator[_One]:
    run_once(_row(tree, cache))
    for file in files:
        before = file.read_bytes()
        file.write_bytes(before + _CHANGE)
        yield _One(str(file.relative_to(tree)), run_once(_row(file, cache)))
        file.write_bytes(before)
        run_once(_row(file, cache))


def _row(place: Path, cache: Path) -> Row:
    return Row(place.name, [*OURS, str(place), "--quiet", "--exit-zero", "--cache-dir", str(cache)])


def _print(count: int, found: Sequence[_One]) -> None:
    print(f"{len(found)} of {count:,} files, each changed and linted alone", end="\n\n")
    print("| seconds | median | nine of ten | most |\n|---|---:|---:|---:|")
    for name, values in (("wall", [one.run.wall for one in found]), ("CPU", [one.run.cost.seconds for one in found])):
        tenths = statistics.quantiles(values, n=10, method="inclusive")
        print(f"| {name} | {statistics.median(values):.2f} | {tenths[-1]:.2f} | {max(values):.2f} |")
    worst = sorted(found, key=lambda one: -one.run.cost.seconds)[:_WORST]
    print("\nMost CPU:", ", ".join(f"{one.file} {one.run.cost.seconds:.2f}" for one in worst))


if __name__ == "__main__":
    main()
