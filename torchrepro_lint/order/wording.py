"""What an arbitrary order decides, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchrepro_lint.order.taint import Taken
    from torchrepro_lint.source.text import Position
    from torchrepro_lint.syntax.nodes import Expression

_SAID = {
    "passed on": "it is passed on",
    "returned": "it is returned",
    "stored": "it decides what is stored where",
    "drawn from": "a random choice is made from it",
    "drawn for": "random numbers are drawn along it",
    "trained with": "training goes along it",
    "written": "it is written down",
}


def decided(position: Callable[[str, int], Position], path: str, at: Expression, taken: Taken) -> str:
    """``it is passed on in line 12``; the line where it is another one than that of ``at``, with the file where that is not
    ``path``.
    """
    said = _SAID[taken.how]
    row = position(taken.path, taken.node.start).row
    if taken.path != path:
        return f"{said} ({taken.path}:{row})"
    return said if row == position(path, at.start).row else f"{said} (line {row})"
