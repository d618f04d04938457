"""Programs: entry points with their traces and effect summaries, and what is left of a program when its trace is not kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.syntax.nodes import path_of

if TYPE_CHECKING:
    from torchrepro_lint.effects import Effects
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.entry_points import Entry


class Program(NamedTuple):
    """An entry point, what its run reaches, and what that does."""

    entry: Entry
    run: Run
    effects: Effects


class Reached(NamedTuple):
    """Of a program: the functions that it reaches, their files, and whether it may run on an accelerator."""

    functions: frozenset[str]
    paths: frozenset[str]
    accelerated: bool


class Work(NamedTuple):
    """What the workers of a loader run, and what that does."""

    run: Run
    effects: Effects


def reached(functions: Iterable[str], *, accelerated: bool) -> Reached:
    """What a program reaches, by its functions."""
    return Reached(frozenset(functions), frozenset(map(path_of, functions)), accelerated)
