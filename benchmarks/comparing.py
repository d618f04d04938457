"""``python -m benchmarks.comparing``: this tool beside other linters for reproducibility, and beside bare parsers.

What counts is the median. Tools that take a second for a thousand lines get a part of the files, and take part in the first
``--slow-repeats`` rounds only; a ratio to them is of our own run on the same part. Semgrep runs the rules that lie in
``semgrep`` below the cache directory, or those that are given.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.packages import cache, joined, sources
from benchmarks.rows import our_rows, parser_rows, quick_rows, slow_rows
from benchmarks.running import Row, measured, table
from benchmarks.targets import reached


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    add_options(parser)
    compare(parser.parse_args())


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that ``compare`` reads."""
    parser.add_argument("--directory", type=Path, help="measure a copy of a directory instead of the pinned packages")
    parser.add_argument("--repeats", type=int, default=5, help="rounds that count (default: %(default)s)")
    parser.add_argument("--slow-repeats", type=int, default=5, help="those with the slow tools (default: %(default)s)")
    parser.add_argument("--slow-subset", default="lightning", help="what the slow tools get (default: %(default)s)")
    parser.add_argument("--semgrep-rules", type=Path, nargs="*", help="rule files that semgrep runs")
    parser.add_argument("--only", nargs="*", help="measure these rows only")


def compare(options: argparse.Namespace) -> None:
    """Measure on a copy of the files, and print the table and what of it was to be reached."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        shutil.copytree(options.directory or joined(), tree)
        rows = _rows(tree, Path(scratch), options)
        figures = measured(rows, options.repeats, options.slow_repeats)
        files = sources(tree)
        lines = sum(path.read_bytes().count(b"\n") for path in files)
    print(f"{len(files)} files, {lines:,} lines; {', '.join(f'{a} {b}' for a, b in machine().items())}\n")
    print(table(figures), reached(figures, options.slow_subset), sep="\n\n")


def _rows(tree: Path, scratch: Path, options: argparse.Namespace) -> list[Row]:
    rules = options.semgrep_rules
    if rules is None:
        rules = sorted((cache() / "semgrep").glob("*.yaml"))
    rows = [*our_rows(tree, scratch / "caches"), *parser_rows(tree), *quick_rows(tree, scratch / "ruff", rules)]
    if (tree / options.slow_subset).is_dir():
        part = scratch / options.slow_subset
        shutil.copytree(tree / options.slow_subset, part)
        Path(part, "pyproject.toml").touch()  # a project of its own
        rows += slow_rows(part)
    return [row for row in rows if not options.only or row.name in options.only]


if __name__ == "__main__":
    main()
