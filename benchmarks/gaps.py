"""``python -m benchmarks.gaps PATHS…``: why programs lead into code that is not followed, the most frequent reasons first.

Each path is read as a project of its own. A gap counts once for its place and reason, however many programs lead there; beside it
stands how many programs have a gap of that reason. ``--examples N`` shows the first places of each reason.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.domain.operations.gaps import Gap, gaps_of_run
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import prepare
from torchrepro_lint.syntax.nodes import Attribute, Call, Ref, Subscript
from torchrepro_lint.syntax.visitor import last_identifier

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import ProgramEffects


class Place(NamedTuple):
    """A gap of a program: the project and the program, where it is, what is called there, and the reason."""

    project: str
    program: str
    where: str
    call: str
    reason: str


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATHS")
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="places to show for each reason")
    options = parser.parse_args()
    found, programs = [], 0
    for path in options.paths:
        count, gaps = places(os.path.normpath(path))
        programs += count
        found += gaps
    print("\n".join(ranking(found, programs, options.examples)))


def places(path: str) -> tuple[int, list[Place]]:
    """How many programs a project has, and their gaps."""
    options = ConfigOptions(isolated=True)
    count, found = 0, []
    for tree in plan([path], options).trees:
        checker, _ = prepare(tree, honour_comments=True)
        parts = Partition(checker, read_tree(tree).files)
        for project in parts.all():
            for program in project.programs:
                count += 1
                name = f"{program.entry.path}:{program.entry.function or ''}"
                for _, gap in gaps_of_run(project, program):
                    at = gap.trace_event
                    row = project.position(at.path, at.event.value.start if at.event.value else 0).row
                    found.append(Place(path, name, f"{at.path}:{row}", gap.call, reason(project, gap)))
    return count, found


def reason(project: ProgramEffects, gap: Gap) -> str:
    """Why a call is not followed, by what is called."""
    call, path = gap.trace_event.event.value, gap.trace_event.path
    assert isinstance(call, Call)
    if gap.unknown != "runs":
        return gap.unknown.split(" as ")[0]
    func, names = call.func, gap.trace_event.names
    outside = [name for name in names if ":" not in name]
    if names and not outside:
        return "a method that only subclasses define"
    if outside:
        return f"an object of {outside[0].partition('.')[0].partition('(')[0]}, or of what it gives"
    match func:
        case Ref(roots=roots, path=()):
            return f"a variable: {_origin(project, path, roots[0])}"
        case Ref(path=(*_, word)):
            return "an attribute of self" if _is_self(func) else f"a method {word!r} of an unknown object"[:24] + "…"
        case Subscript():
            return "an element"
        case Call():
            return f"what {last_identifier(func.func) or 'a call'}(...) returns"
        case Attribute():
            return "a method of a call's result"
    return "another expression"


def _is_self(func: Ref) -> bool:
    return len(func.path) == 1 and func.roots[0].endswith(".self")


def _origin(project: ProgramEffects, path: str, root: str) -> str:
    name = f"{path}{root}"
    if project.resolver.parameter(name) is not None:
        return "a parameter"
    kinds = sorted({how for how, _ in project.resolver.assigned(name)})
    values = sorted({type(value).__name__ for _, value in project.resolver.assigned(name)})
    return f"assigned {'/'.join(values)} {'/'.join(kinds)}" if kinds else "not assigned"


def ranking(found: list[Place], programs: int, examples: int) -> Iterator[str]:
    """The lines of a Markdown table, and the examples below."""
    by_reason: dict[str, dict[tuple[str, str], Place]] = defaultdict(dict)
    hit: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for each in found:
        by_reason[each.reason].setdefault((each.project, each.where), each)
        hit[each.reason].add((each.project, each.program))
    every = {(each.project, each.program) for each in found}
    yield f"{len(every)} of {programs} programs have a gap, at {len({(e.project, e.where) for e in found})} places."
    yield ""
    yield "| reason | places | programs |"
    yield "|---|---|---|"
    order = sorted(by_reason, key=lambda reason: (-len(by_reason[reason]), reason))
    yield from (f"| {each} | {len(by_reason[each])} | {len(hit[each])} |" for each in order)
    for each in order if examples else ():
        yield f"\n{each}"
        yield from (f"  {one.project}/{one.where} {one.call}" for one in list(by_reason[each].values())[:examples])


if __name__ == "__main__":
    main()
