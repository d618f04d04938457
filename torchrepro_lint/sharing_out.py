"""Which process checks which parts of a project, so that all are done at about the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

# What share of the work on a part is asked of all its files together, by one process.
_ASKED = 0.3


class Shares(NamedTuple):
    """The numbers of the parts that each process checks by itself, one bundle for each, and of those that all check together."""

    bundles: tuple[tuple[int, ...], ...]
    shared: tuple[int, ...]


def share_out(weights: Sequence[int], jobs: int) -> Shares:
    """How parts of these weights are checked soonest by so many processes.

    What is asked of all files of the first part that all check together is worked out while the others are checked; that of
    further ones before they are.
    """
    return min(_ways(weights, jobs), key=lambda way: _time(weights, way, jobs))


def _ways(weights: Sequence[int], jobs: int) -> Iterator[Shares]:
    """No part is shared, or one, or the heaviest ones."""
    order = sorted(range(len(weights)), key=lambda each: (-weights[each], each))
    shared = [(), *((each,) for each in order), *(tuple(order[:count]) for count in range(2, len(order) + 1))]
    for some in shared[: 4 * jobs + 1]:
        yield Shares(_bundles([each for each in order if each not in some], weights, jobs), some)


def _bundles(order: Sequence[int], weights: Sequence[int], jobs: int) -> tuple[tuple[int, ...], ...]:
    """The heaviest first, each to whoever has least."""
    found: list[list[int]] = [[] for _ in range(min(jobs, len(order)))]
    loads = [0] * len(found)
    for each in order:
        least = loads.index(min(loads))
        found[least].append(each)
        loads[least] += weights[each]
    return tuple(map(tuple, found))


def _time(weights: Sequence[int], way: Shares, jobs: int) -> float:
    """How long that takes, about."""
    bundles = [sum(weights[each] for each in bundle) for bundle in way.bundles]
    asked = [weights[each] * _ASKED for each in way.shared]
    first = max((*bundles, *asked[:1], (sum(bundles) + sum(asked[:1])) / jobs), default=0)
    return first + sum(asked[1:]) + sum(weights[each] for each in way.shared) * (1 - _ASKED) / jobs
