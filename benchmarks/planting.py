"""``python -m benchmarks.planting --select TRL3,TRL5 --count 60 --seed 1 PATHS…``: plants causes into real code, and counts those reported.

Each path is a project. The operators of ``benchmarks.plants`` take turns; each draws its place at random among all that it finds
in the paths, by the seed and its own name alone. One cause is planted at a time into a copy of the project, the file is linted
in that copy, and the cause counts as reported where its rule names its lines, and did not name them before.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.packages import sources
from benchmarks.plants import Operator, Plant, Source, planted, rows
from benchmarks.plants.table import OPERATORS

_ROOT = Path(__file__).parent.parent


class Place(NamedTuple):
    """A plant, by whom it is planted, and in which file of which project."""

    operator: Operator
    project: str
    path: str
    plant: Plant


class Verdict(NamedTuple):
    """What became of a plant: ``reported``, ``missed``, or ``there`` where the rule named the lines before."""

    place: Place
    answer: str
    change: tuple[str, ...]


def main() -> None:
    """Draw, plant, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planting", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATHS")
    parser.add_argument("--select", default="TRL", metavar="A,B,…", help="rules, by prefixes (default: %(default)s)")
    parser.add_argument("--count", type=int, default=60, help="how many causes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    options = parser.parse_args()
    chosen = [one for one in OPERATORS if one.code.startswith(tuple(options.select.split(",")))]
    verdicts = run(options.paths, chosen, options.count, options.seed)
    print("\n".join(rendered(verdicts)))


def run(paths: Sequence[str], operators: Sequence[Operator], count: int, seed: int) -> list[Verdict]:
    """Plant so many causes, or as many as there are places; what was there before is not counted, and another drawn."""
    queues = [places(paths, operator, seed) for operator in operators]
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as scratch:
        while queues and len(verdicts) < count:
            for queue in list(queues):
                verdict = next((one for one in map(Copies(Path(scratch)).judge, queue) if one.answer != "there"), None)
                if verdict is None:
                    queues.remove(queue)
                elif len(verdicts) < count:
                    verdicts.append(verdict)
                    print(f"{verdict.answer}: {verdict.place.operator.name}, {verdict.place.path}", file=sys.stderr)
    return verdicts


def places(paths: Sequence[str], operator: Operator, seed: int) -> Iterator[Place]:
    """The places of an operator in random order, no two of one file before all files have had one."""
    files = [(project, path) for project in sorted(paths) for path in sources(Path(project))]
    draw = random.Random(f"{seed} {operator.name}")
    draw.shuffle(files)
    left: list[Iterator[Place]] = []
    for project, path in files:
        found = [Place(operator, project, str(path.relative_to(project)), plant) for plant in _found(path, operator)]
        draw.shuffle(found)
        if found:
            yield found[0]
            left.append(iter(found[1:]))
    for rest in left:
        yield from rest


def rendered(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The lines of the Markdown: a table by operator, and each plant with its change, the missed ones first."""
    reported = sum(one.answer == "reported" for one in verdicts)
    yield f"# {reported} of {len(verdicts)} planted causes reported\n\n| operator | rule | reported | missed |\n|---|---|---:|---:|"
    for operator in dict.fromkeys(one.place.operator for one in verdicts):
        answers = [one.answer for one in verdicts if one.place.operator == operator]
        yield f"| {operator.name} | {operator.code} | {answers.count('reported')} | {answers.count('missed')} |"
    for one in sorted(verdicts, key=lambda one: one.answer):
        place = one.place
        yield f"\n## {one.answer}: {place.operator.code} {place.operator.name}, {place.project}/{place.path}\n\n```diff"
        yield from (*one.change, "```")


class Copies:
    """Copies of projects below a directory, in which one file at a time is another."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def judge(self, place: Place) -> Verdict:
        """Plant, lint, take back."""
        copy = self._copy(place.project)
        file = copy / place.path
        before = file.read_bytes()
        text = before.decode()
        new = planted(text, place.plant.edits)
        change = tuple(_change(text, new))
        try:
            file.write_bytes(new.encode())
            found = self._rows(copy, file, place)
        finally:
            file.write_bytes(before)
        first, last = rows(text, place.plant)
        if not any(first <= row <= last for row in found):
            return Verdict(place, "missed", change)
        there = place.plant.around and len(self._rows(copy, file, place)) >= len(found)
        return Verdict(place, "there" if there else "reported", change)

    def _copy(self, project: str) -> Path:
        copy = self._scratch / os.path.abspath(project).strip(os.sep).replace(os.sep, "+")
        if not copy.is_dir():
            shutil.copytree(project, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            if not (copy / "pyproject.toml").exists():
                (copy / "pyproject.toml").write_text('[project]\nname = "planted"\nversion = "0"\n')
        return copy

    def _rows(self, copy: Path, file: Path, place: Place) -> list[int]:
        command = [sys.executable, "-m", "torchrepro_lint", str(file), "--select", place.operator.code]
        command += ["--output-format", "json-lines", "--quiet", "--exit-zero", "--jobs", "1", "--ignore-noqa"]
        command += ["--cache-dir", str(self._scratch / "cache"), *place.plant.options]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
        if ran.returncode:
            raise SystemExit(f"{file}: {ran.stderr.decode()}")
        return [json.loads(line)["location"]["row"] for line in ran.stdout.decode().splitlines()]


def _found(path: Path, operator: Operator) -> list[Plant]:
    """All plants of a file that Python can read."""
    try:
        text = path.read_bytes().decode()
        source = Source(text) if all(re.search(hint, text, re.MULTILINE) for hint in operator.hints) else None
    except (SyntaxError, ValueError, RecursionError):
        return []
    return list(operator.find(source)) if source else []


def _change(before: str, after: str) -> Iterator[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    yield from list(lines)[2:]


if __name__ == "__main__":
    main()
