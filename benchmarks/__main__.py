"""``python -m benchmarks``: one table of what a cold run costs beside a bare parse of the same files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.measuring import Figure, Task, measure, stages
from benchmarks.packages import TIMM, sources, unpacked

_TITLES = {
    "start_libcst": "import libcst, and nothing else",
    "parse_ast": "ast.parse",
    "parse_libcst": "libcst.parse_module",
    "lint": "torchrepro-lint, cold",
}
# The command line itself turns the collector off, whatever it was.
TASKS = (
    Task("start_libcst", "on"),
    Task("parse_ast", "on"),
    Task("parse_libcst", "on"),
    Task("parse_libcst", "off"),
    Task("lint", "off"),
)


def main() -> None:
    """Measure and print."""
    options = _options()
    directory = options.directory or unpacked(options.package)
    result = _result(directory, options)
    print(json.dumps(result, indent=2) if options.json else _render(result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--package", default=TIMM, metavar="NAME==VERSION", help="a pure-Python wheel (default: %(default)s)"
    )
    parser.add_argument("--directory", type=Path, help="measure the files of a directory instead of a package's")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each task that count (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def _result(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    files = sources(directory)
    figures = measure(TASKS, directory, options.repeats)
    return {
        "corpus": "a directory" if options.directory else options.package,
        "files": len(files),
        "lines": sum(path.read_bytes().count(b"\n") for path in files),
        "repeats": options.repeats,
        "machine": machine(),
        "tasks": [{**figure.task._asdict(), **_numbers(figure)} for figure in figures],
        "ratio": _ratios(figures),
        "stages": stages(directory, min(options.repeats, 3)),
    }


def _numbers(figure: Figure) -> dict[str, float]:
    numbers = {"seconds": figure.seconds, "least": figure.least, "most": figure.most, "memory_mib": figure.memory}
    return {name: round(value, 3) for name, value in numbers.items()}


def _ratios(figures: list[Figure]) -> dict[str, float]:
    """How many bare parses a run costs, by the collector's state during the parse."""
    lint = next(figure for figure in figures if figure.task.name == "lint")
    return {
        f"collector {figure.task.collector}": round(lint.seconds / figure.seconds, 2)
        for figure in figures
        if figure.task.name == "parse_libcst"
    }


def _render(result: dict[str, Any]) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    lines = [
        f"{result['corpus']}: {result['files']} files, {result['lines']:,} lines; {machine}",
        f"CPU seconds of whole processes (user and system), median of {result['repeats']} interleaved runs",
        "",
        "| process | collector | CPU s | least to most | µs per line | peak MiB |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += (_row(each, result["lines"]) for each in result["tasks"])
    ratios = "; ".join(f"{name}: {value:.2f}" for name, value in result["ratio"].items())
    laps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result["stages"].items())
    return "\n".join([*lines, "", f"Ratio of a cold run to a bare parse — {ratios}", f"Stages (CPU s): {laps}"])


def _row(task: dict[str, Any], lines: int) -> str:
    spread = f"{task['least']:.2f} to {task['most']:.2f}"
    rate = task["seconds"] / max(lines, 1) * 1e6
    cells = (_TITLES[task["name"]], task["collector"], f"{task['seconds']:.2f}", spread, f"{rate:.1f}")
    return f"| {' | '.join(cells)} | {task['memory_mib']:.0f} |"


if __name__ == "__main__":
    main()
