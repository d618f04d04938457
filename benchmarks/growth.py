"""``python -m benchmarks.growth``: the cost of a cold run for 10,000 to a million lines.

Each size is a project of the first files of the same list of packages, so the larger ones hold the smaller ones. Later packages
are other code, which has more entry points and more that they run: what size alone costs shows beside, in a project that holds the
last but one as often, side by side, as makes the last.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.packages import grown, repeated, sources
from benchmarks.rows import OURS
from benchmarks.running import Figures, Row, measured

SIZES = (10_000, 50_000, 250_000, 1_000_000)
# The cost of a million lines by that of a quarter of them.
_MOST = 4.2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    add_options(parser)
    options = parser.parse_args()
    grow(options.sizes, options.growth_repeats)


def add_options(parser: argparse.ArgumentParser) -> None:
    """How often each size is measured, and which they are."""
    parser.add_argument("--growth-repeats", type=int, default=5, help="rounds that count (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many lines (default: %(default)s)")


def grow(sizes: Sequence[int], repeats: int) -> None:
    """Measure projects of these sizes, and print a table."""
    with tempfile.TemporaryDirectory() as scratch:
        trees = [grown(Path(scratch, str(size)), size) for size in sizes]
        if len(trees) > 1:
            trees.append(repeated(Path(scratch, "repeated"), trees[-2], round(sizes[-1] / sizes[-2])))
        lines = [sum(path.read_bytes().count(b"\n") for path in sources(tree)) for tree in trees]
        rows = [row for tree in trees for row in _rows(tree)]
        figures = measured(rows, repeats, repeats)
    print(", ".join(f"{a} {b}" for a, b in machine().items()), end="\n\n")
    print("\n".join(_table(lines, figures)))


def _rows(tree: Path) -> list[Row]:
    run = [*OURS, str(tree), "--no-cache", "--quiet", "--exit-zero"]
    alone = [*run, "--jobs", "1"]
    return [Row(f"{tree.name}, one process", alone, slow=True), Row(f"{tree.name}, all cores", run, slow=True)]


def _table(lines: Sequence[int], figures: Sequence[Figures]) -> Iterator[str]:
    yield "| lines | one process: CPU s | µs per line | peak MiB | all cores: wall s | CPU s | peak MiB |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for count, alone, together in zip(lines, figures[::2], figures[1::2], strict=True):
        rate = alone.seconds / count * 1e6
        first = f"{alone.seconds:.2f} | {rate:.1f} | {alone.memory:.0f}"
        yield f"| {count:,} | {first} | {together.wall:.2f} | {together.seconds:.2f} | {together.memory:.0f} |"
    if len(lines) > 2:
        yield "\nThe last row is the third from the end, side by side in one project."
        yield _ratio("The last but one", figures[-6:-4], figures[-4:-2])
        yield _ratio("The last", figures[-6:-4], figures[-2:])


def _ratio(what: str, small: Sequence[Figures], large: Sequence[Figures]) -> str:
    one, all_ = (b.seconds / a.seconds for a, b in zip(small, large, strict=True))
    wall = large[1].wall / small[1].wall
    costs = f"{one:.2f} times as much CPU in one process, {all_:.2f} times with all cores, {wall:.2f} times as much wall time"
    return f"{what} costs {costs}; for four times as many lines at most {_MOST} are wanted."


if __name__ == "__main__":
    main()
