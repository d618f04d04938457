"""``python -m benchmarks.records``: what a record costs as ``Small`` and as a named tuple, side by side, as ratios.

Memory is by how much a process grows (Linux). Times are the least of several, and include the loop.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from timeit import repeat
from typing import Any, NamedTuple

from benchmarks.machine import machine
from torchrepro_lint.syntax.nodes import Ref

_FIELDS: tuple[Any, ...] = (1, 7, (":main.<locals>.x",), ("shape",), 2)
_MANY = 200_000
_ROUNDS = 7
_KEPT: list[list[object]] = []


class _Named(NamedTuple):
    """``Ref`` as a named tuple."""

    start: int
    end: int
    roots: tuple[str, ...]
    path: tuple[str, ...]
    base_end: int


def main() -> None:
    """Measure and print."""
    small, named, new = Ref(*_FIELDS), _Named(*_FIELDS), tuple.__new__
    print(", ".join(f"{a} {b}" for a, b in machine().items()), end="\n\n")
    print("| a record of five fields | named tuple | small | ratio |\n|---|---:|---:|---:|")
    _row("bytes", _bytes(lambda: _Named(*_FIELDS)), _bytes(lambda: Ref(*_FIELDS)))
    _row("made, ns", _time(lambda: _Named(1, 7, (), (), 2)), _time(lambda: Ref(1, 7, (), (), 2)))
    _row(
        "made without its constructor, ns",
        _time(lambda: new(_Named, (1, 7, (), (), 2))),
        _time(lambda: Ref(1, 7, (), (), 2)),
    )
    _row("a field read, ns", _time(lambda: named.roots), _time(lambda: small.roots))


def _row(what: str, before: float, after: float) -> None:
    print(f"| {what} | {before:.0f} | {after:.0f} | {after / before:.2f} |")


def _bytes(make: Callable[[], object]) -> float:
    """How much the process grows by each of many; they stay, or the next would take their room."""
    before = _resident()
    many = [make() for _ in range(_MANY)]
    _KEPT.append(many)
    return (_resident() - before - sys.getsizeof(many)) / _MANY


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _time(act: Callable[[], object]) -> float:
    return min(repeat(act, number=_MANY, repeat=_ROUNDS)) / _MANY * 1e9


if __name__ == "__main__":
    main()
