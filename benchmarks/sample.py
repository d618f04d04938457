"""``python -m benchmarks.sample --select TRL3,TRL5 --count 120 --seed 7 PATHS…``: a random sample of findings for manual review.

Each path is linted as a project of its own. What is drawn depends on the findings, their count and the seed alone, and not on
the order of the paths. The output is Markdown: each finding with the lines of source around it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parent.parent
_AROUND = 6


class Found(NamedTuple):
    """A finding: ``shown`` is its file below the path that was given, ``cell`` the notebook's, from 1; rows count from 1."""

    shown: str
    cell: int
    row: int
    column: int
    last: int
    code: str
    message: str
    filename: str


def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sample", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATHS")
    parser.add_argument("--select", default="TRL3,TRL5", metavar="A,B,…", help="rules (default: %(default)s)")
    parser.add_argument("--count", type=int, default=120, help="how many findings (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the draw (default: %(default)s)")
    options = parser.parse_args()
    found = findings(options.paths, options.select)
    print("\n".join(rendered(drawn(found, options.count, options.seed), len(found), options.seed)))


def findings(paths: Sequence[str], select: str) -> list[Found]:
    """The findings of each path, linted in a process of its own; in the order of their places."""
    return sorted(found for path in paths for found in _linted(os.path.normpath(path), select))


def drawn(found: Sequence[Found], count: int, seed: int) -> list[Found]:
    """So many of them at random, all where there are no more; in the order of their places."""
    return sorted(random.Random(seed).sample(sorted(found), min(count, len(found))))


def rendered(sample: Sequence[Found], total: int, seed: int) -> Iterator[str]:
    """The lines of the Markdown."""
    yield f"# {len(sample)} of {total} findings, drawn with seed {seed}"
    for number, found in enumerate(sample, 1):
        cell = f":cell {found.cell}" if found.cell else ""
        yield f"\n## {number}. {found.shown}{cell}:{found.row}:{found.column} {found.code}\n\n{found.message}\n"
        yield from ("```python", *_excerpt(found), "```")


def _linted(path: str, select: str) -> Iterator[Found]:
    command = [sys.executable, "-m", "torchrepro_lint", path, "--select", select, "--output-format", "json-lines"]
    command += ["--quiet", "--exit-zero", "--jobs", "1"]
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(_ROOT)}, capture_output=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{path}: {ran.stderr.decode()}")
    for line in ran.stdout.decode().splitlines():
        one = json.loads(line)
        start, name = one["location"], one["filename"]
        below = os.path.relpath(name, os.path.abspath(path))
        shown = path if below == "." else os.path.join(path, below)
        where = (one["cell"] or 0, start["row"], start["column"], one["end_location"]["row"])
        yield Found(shown, *where, one["code"], one["message"], name)


def _excerpt(found: Found) -> Iterator[str]:
    """The numbered lines around a finding, its own marked."""
    lines = _lines(found)
    for row in range(max(found.row - _AROUND, 1), min(found.last + _AROUND, len(lines)) + 1):
        mark = ">" if found.row <= row <= found.last else " "
        yield f"{mark}{row:5} {lines[row - 1]}".rstrip()


def _lines(found: Found) -> list[str]:
    text = Path(found.filename).read_text(encoding="utf-8", errors="replace")
    if not found.cell:
        return text.splitlines()
    source = json.loads(text)["cells"][found.cell - 1]["source"]
    return (source if isinstance(source, str) else "".join(source)).splitlines()


if __name__ == "__main__":
    main()
