"""What the runs of a file's commands have in common: its top level, run once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torchrepro_lint.happenings import Happening

_Answer = TypeVar("_Answer")


class Beginning:
    """The happenings with which several runs begin, and what was worked out from them alone, or with the runs."""

    def __init__(self, happenings: Sequence[Happening] = ()) -> None:
        self.happenings = tuple(happenings)
        self.known: dict[str, Any] = {}


class Begun(Protocol):
    """A trace that begins as others do."""

    @property
    def beginning(self) -> Beginning:
        """What it has in common with them."""
        ...

    @property
    def happenings(self) -> Sequence[Happening]:
        """All its events, those of the beginning first."""
        ...


def in_parts(
    run: Begun,
    name: str,
    compute: Callable[[int, Sequence[Happening]], _Answer],
    kept: dict[str, Any] | None = None,
) -> tuple[_Answer, ...]:
    """What ``compute`` makes of happenings, of which the first has an order: of those that the run begins with as others
    do, remembered by the name, and of its own.

    A run may be kept while files change that it does not come by: what asks for more than happenings, once the run is
    there, is remembered in what is ``kept`` for one project.
    """
    begun = run.beginning
    if not begun.happenings:
        return (compute(0, run.happenings),)
    remembered = begun.known if kept is None else kept.setdefault(f"{__name__} {id(begun)}", {})
    if name not in remembered:
        remembered[name] = compute(0, begun.happenings)
    known: _Answer = remembered[name]
    start = len(begun.happenings)
    return known, compute(start, run.happenings[start:])
