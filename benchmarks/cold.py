"""``python -m benchmarks.cold FOLDER``: the cost of the first run over small projects, most of which is start-up.

Each of twelve public repositories of 600 to 7,000 lines below the folder is linted without a cache. The figures are milliseconds of
CPU time, user and system: of the whole process, and of the check phase alone, as a process that measures its stages tells. They are
medians of all rounds after a first one, which compiles modules and fills the file cache. ``--vs`` measures another checkout in turns
with this one. Two more rows, ``--help`` and ``rule``, show whether what analyses nothing has stayed as quick as it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import machine
from benchmarks.measuring import awaited
from benchmarks.packages import sources
from benchmarks.running import ROOT, environment

# Two of them have files that Python cannot read, as one in six public repositories has.
REPOSITORIES = (
    "Pytorch-UNet",
    "pytorch-template",
    "nanoGPT",
    "awd-lstm-lm",
    "lightning-hydra-template",
    "attention-is-all-you-need-pytorch",
    "tacotron2",
    "pytorch-classification",
    "mae",
    "Deformable-DETR",
    "guided-diffusion",
    "pointnet2",
)
_OTHERS = (("--help",), ("rule", "TRL101"))


class Cost(NamedTuple):
    """Milliseconds of CPU time: of a whole process, and of the check phase."""

    whole: float
    check: float = 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the repositories are")
    parser.add_argument("--vs", type=Path, metavar="DIR", help="another checkout, measured in turns with this one")
    parser.add_argument("--repeats", type=int, default=5, help="rounds that count (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=REPOSITORIES, metavar="NAME", help="these repositories")
    options = parser.parse_args()
    checkouts = [ROOT, options.vs.resolve()] if options.vs else [ROOT]
    places = [options.folder.resolve() / name for name in options.only]
    costs = measured(checkouts, places, options.repeats)
    print(f"{options.repeats} rounds; {', '.join(f'{a} {b}' for a, b in machine().items())}\n")
    print("\n".join(_table(places, costs)))


def measured(checkouts: Sequence[Path], places: Sequence[Path], repeats: int) -> dict[str, list[Cost]]:
    """The costs of each repository and command, one for each checkout."""
    names = [*(place.name for place in places), *(" ".join(words) for words in _OTHERS)]
    rounds: dict[str, list[list[Cost]]] = {name: [[] for _ in checkouts] for name in names}
    for turn, place, (number, checkout) in itertools.product(range(repeats + 1), places, enumerate(checkouts)):
        cost = _linted(checkout, place)
        if turn:
            rounds[place.name][number].append(cost)
    for turn, words, (number, checkout) in itertools.product(range(repeats + 1), _OTHERS, enumerate(checkouts)):
        cost = Cost(_process(checkout, words))
        if turn:
            rounds[" ".join(words)][number].append(cost)
    return {name: [_median(one) for one in each] for name, each in rounds.items()}


def _linted(checkout: Path, place: Path) -> Cost:
    whole = _process(checkout, (str(place), "--quiet", "--exit-zero", "--no-cache"))
    command = [sys.executable, "-m", "benchmarks.tasks", "stages", str(place), "off"]
    laps = json.loads(subprocess.check_output(command, cwd=checkout, env=_environment(checkout)))
    return Cost(whole, laps["check"] * 1000)


def _process(checkout: Path, words: Sequence[str]) -> float:
    command = [sys.executable, "-m", "torchrepro_lint", *words]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=checkout, env=_environment(checkout), stdin=nowhere, stdout=nowhere, stderr=nowhere
    )
    return awaited(process).seconds * 1000


def _environment(checkout: Path) -> dict[str, str]:
    return {**environment(), "PYTHONPATH": str(checkout)}


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


def _table(places: Sequence[Path], costs: Mapping[str, Sequence[Cost]]) -> list[str]:
    """A line for each repository, in Markdown: the figures here, those of the other checkout, and their ratios; then the medians."""
    lines = {place.name: sum(file.read_bytes().count(b"\n") for file in sources(place)) for place in places}
    compared = len(next(iter(costs.values()))) > 1
    heads = ["", "lines", "whole", "check", *(["whole there", "check there", "whole", "check"] if compared else [])]
    rows = [_row(name, f"{lines[name]:,}" if name in lines else "", each) for name, each in costs.items()]
    own = [costs[name] for name in lines]
    middle = [_median([each[at] for each in own]) for at in range(1 + compared)]
    total = _row("median", f"{statistics.median(lines.values()):,.0f}", middle)
    if compared:  # of the ratios, not the ratio of the medians
        ratios = [Cost(here.whole / there.whole, here.check / there.check) for here, there in own]
        total[-2:] = [f"{each:.2f}" for each in _median(ratios)]
    cells = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows[: len(lines)], total, *rows[len(lines) :]]
    return [f"| {' | '.join(each)} |" for each in cells]


def _row(name: str, lines: str, costs: Sequence[Cost]) -> list[str]:
    figures = [f"{each:.0f}" if each else "" for cost in costs for each in cost]
    if len(costs) > 1:
        here, there = costs
        figures += [f"{one / other:.2f}" if other else "" for one, other in zip(here, there, strict=True)]
    return [name, lines, *figures]


if __name__ == "__main__":
    main()
