"""Interning of offsets: small numbers that thousands of records have alike, each once in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from torchrepro_lint.facts import Ref

# Texts of up to so many letters share the numbers of their offsets: a project has ten of each letter.
SHARED = 1 << 17


@cache
def numbers() -> Sequence[int]:
    """The numbers below ``SHARED``, each at its place."""
    return [*range(SHARED)]


def number(value: int) -> int:
    """A whole number: the same object for all that ask, if it is a likely offset."""
    return numbers()[value] if 0 <= value < SHARED else value


def ref(start: int, end: int, roots: tuple[str, ...], path: tuple[str, ...], base_end: int) -> Ref:
    """A reference whose offsets are shared."""
    if end < SHARED:
        shared = numbers()
        return Ref(shared[start], shared[end], roots, path, shared[base_end])
    return Ref(start, end, roots, path, base_end)
