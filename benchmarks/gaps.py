"""``python -m benchmarks.gaps PATH...``: where programs lead into code that is not followed, by the frequency of the reasons.

For each PATH it counts the programs, those whose run saves or measures something, and those with a gap. Below, the reasons: in how
many programs and at how many places each stands, and some of the places. What cannot be followed most often is worth the most.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.domain.operations.callee_origins import REASONS
from torchrepro_lint.domain.operations.program_gaps import causes_of_gaps, explained
from torchrepro_lint.domain.programs import all_programs, is_relevant
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import gc_disabled, prepare
from torchrepro_lint.syntax.qualified_names import split_name


class Place(NamedTuple):
    """A gap of a program: the kind of its reason, the repository, the program, and the sentence of TRL003."""

    kind: str
    repository: str
    program: str
    sentence: str


class Repository(NamedTuple):
    """A repository with its numbers of programs: all, those that matter, those with a gap, those that matter with a gap."""

    name: str
    programs: int
    matter: int
    unfollowed: int
    matter_unfollowed: int
    places: tuple[Place, ...]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="folders of repositories")
    parser.add_argument("--examples", type=int, default=4, help="how many places of each reason (default: %(default)s)")
    options = parser.parse_args()
    print("\n".join(table([measured(path) for path in options.paths], options.examples)))


def measured(path: Path) -> Repository:
    """The gaps of all programs in a folder."""
    counts = [0, 0, 0, 0]
    places: list[Place] = []
    with gc_disabled():
        for tree in plan((os.fspath(path),), ConfigOptions(isolated=True)).trees:
            parts = Partition(prepare(tree, honour_comments=False)[0], read_tree(tree).files)
            given = dict(tree.given)
            prefix = os.path.relpath(tree.root.path, path).removeprefix(".")
            for project in parts.all():
                for program in all_programs(project):
                    if program.entry.path not in given:
                        continue
                    found = causes_of_gaps(project, program)
                    matters = is_relevant(project, program)
                    for index, counted in enumerate((True, matters, bool(found), matters and bool(found))):
                        counts[index] += counted
                    name = split_name(program.entry.function or "")[2]
                    entry = "/".join(filter(None, (prefix, program.entry.path))) + f":{name}" * bool(name)
                    places += (
                        Place(each.reason.kind, path.name, entry, str(explained(project, each))) for each in found
                    )
    return Repository(path.name, *counts, tuple(places))


def table(found: Sequence[Repository], most: int) -> Iterator[str]:
    """The repositories, then the reasons by the number of programs."""
    yield "| repository | programs | with a gap | that matter | with a gap |"
    yield "|---|---:|---:|---:|---:|"
    for name, *numbers in (*(each[:-1] for each in found), ("all", *_totals(found))):
        programs, matter, unfollowed, matter_unfollowed = numbers
        yield f"| {name} | {programs} | {unfollowed} | {matter} | {matter_unfollowed} |"
    yield from ("", "| reason | programs | places | such as |", "|---|---:|---:|---|")
    places = [place for each in found for place in each.places]
    kinds = {kind: [each for each in places if each.kind == kind] for kind in REASONS}
    for kind, own in sorted(kinds.items(), key=lambda each: (-_programs(each[1]), each[0])):
        if own:
            sentences = list(dict.fromkeys(f"{each.repository}: {each.sentence}" for each in own))
            shown = "<br>".join(each.replace("|", "\\|") for each in sentences[:most])
            yield f"| {kind} | {_programs(own)} | {len(sentences)} | {shown} |"


def _totals(found: Iterable[Repository]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(each[1:-1] for each in found), strict=True)))


def _programs(places: Iterable[Place]) -> int:
    return len({(each.repository, each.program) for each in places})


if __name__ == "__main__":
    main()
