"""What the runs of a file's commands have in common: its top level, run once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torchrepro_lint.happenings import Happening
    from torchrepro_lint.runs import Run

_Answer = TypeVar("_Answer")


class Beginning:
    """The happenings with which several runs begin, and what was worked out from them alone, by its names."""

    def __init__(self, happenings: Sequence[Happening] = ()) -> None:
        self.happenings = tuple(happenings)
        self.known: dict[str, Any] = {}


def in_parts(run: Run, name: str, compute: Callable[[int, Sequence[Happening]], _Answer]) -> tuple[_Answer, ...]:
    """What ``compute`` makes of happenings, of which the first has an order: of those that the run begins with as others
    do, remembered by the name, and of its own.
    """
    begun = run.beginning
    if not begun.happenings:
        return (compute(0, run.happenings),)
    if name not in begun.known:
        begun.known[name] = compute(0, begun.happenings)
    known: _Answer = begun.known[name]
    start = len(begun.happenings)
    return known, compute(start, run.happenings[start:])
