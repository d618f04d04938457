"""Answers that are compared with those before, so that what was worked out from them can stay (see ``memo`` and ``reads``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeAlias

Compute: TypeAlias = Callable[[], Iterable[str]]


class Firm(NamedTuple):
    """How an answer is worked out, its bit, and the bits of what it was worked out from."""

    compute: Compute
    bit: int
    seen: int


class Again(NamedTuple):
    """An answer that was worked out again: its bit, from what, and whether it is the same, and still a firm one."""

    bit: int
    seen: int
    same: bool


def others(again: list[Again], firm: Collection[Firm]) -> int:
    """The bits of answers that are others now; ``firm`` are all that there are.

    What was worked out with the help of an answer that has not been compared yet proves nothing: it may rest on what
    itself was before. Where such answers lead in a circle, all that rests on them has changed.
    """
    changed = 0
    while again:
        doubtful = _resting_on((each.bit for each in again), firm)
        left = [each for each in again if each.seen & doubtful]
        if len(left) == len(again):
            return changed | doubtful
        changed |= _union(each.bit for each in again if not (each.same or each.seen & doubtful))
        again = left
    return changed


def _resting_on(some: Iterable[int], firm: Collection[Firm]) -> int:
    """The bits of some answers, and of those that were worked out from them, directly or not."""
    before, bits = 0, _union(some)
    while bits != before:
        before = bits
        for each in firm:
            if each.seen & bits:
                bits |= each.bit
    return bits


def _union(bits: Iterable[int]) -> int:
    found = 0
    for each in bits:
        found |= each
    return found
