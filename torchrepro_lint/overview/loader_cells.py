"""What is said of a run's loaders: their order, and the random numbers of their workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.overview.records import Cell, Place
from torchrepro_lint.syntax.nodes import path_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.loaders.sites import Loader
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context

_NONE = "No DataLoader was found in this run."


def loader_cells(context: Context, program: Program) -> Iterator[Cell]:
    """Both of them, for the loaders that the run makes."""
    found = list(_loaders(context, program))
    if not found:
        yield Cell("loaders", "unused", "no loader", _NONE)
        yield Cell("workers", "unused", "no loader", _NONE)
        return
    closed = [each for each in found if not each[1].arguments.complete]
    if closed:
        place = _place(context, *closed[0])
        because = f"The arguments of {_counted(len(closed))} cannot be read, first at {place}."
        yield Cell("loaders", "unknown", "arguments not known", because)
        yield Cell("workers", "unknown", "arguments not known", because)
        return
    yield _order([each for _, each in found])
    yield _workers([each for _, each in found])


def _loaders(context: Context, program: Program) -> Iterator[tuple[str, Loader]]:
    """One for each call that makes a loader."""
    reached = program.run.functions
    for path in sorted({path_of(function) for function in reached}):
        seen: set[int] = set()
        for each in context.project.loaders(path):
            if each.site.function in reached and id(each.site.call) not in seen:
                seen.add(id(each.site.call))
                yield path, each


def _order(found: Sequence[Loader]) -> Cell:
    shuffled = sum(each.shuffles for each in found)
    if not shuffled:
        return Cell(
            "loaders", "good", "nothing is shuffled", f"{_counted(len(found))}, none of which shuffles by itself."
        )
    if any(each.shuffles and not each.passes("generator") for each in found):
        because = (
            f"{_counted(len(found))}, of which {shuffled} may shuffle; their order is drawn from torch's generator."
        )
        return Cell("loaders", "risk", "global generator shuffles", because)
    because = f"{_counted(len(found))}; those that shuffle ({shuffled}) have a generator of their own."
    return Cell("loaders", "good", "own generators", because)


def _workers(found: Sequence[Loader]) -> Cell:
    working = sum(each.has_workers for each in found)
    if not working:
        return Cell("workers", "good", "no workers", f"{_counted(len(found))}, all in the main process.")
    because = f"{_counted(len(found))}, {working} with workers: what they draw is fixed, or they draw nothing."
    return Cell("workers", "good", "nothing left open", because)


def _counted(number: int) -> str:
    return "1 loader" if number == 1 else f"{number} loaders"


def _place(context: Context, path: str, loader: Loader) -> str:
    return str(Place(path, *context.project.position(path, loader.site.call.start)))
