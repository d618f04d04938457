"""What an arbitrary order decides, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.facts import Expression
    from torchrepro_lint.order.taint import Taken
    from torchrepro_lint.rule import Context

_SAID = {
    "passed on": "it is passed on",
    "returned": "it is returned",
    "stored": "it decides what is stored where",
    "drawn from": "a random choice is made from it",
    "drawn for": "random numbers are drawn along it",
    "trained with": "training goes along it",
    "written": "it is written down",
}


def decided(context: Context, at: Expression, taken: Taken) -> str:
    """``it is passed on in line 12``; the line where it is another one, with the file where that is another one."""
    said = _SAID[taken.how]
    row = _row(context, taken.path, taken.node.start)
    if taken.path != context.path:
        return f"{said} ({taken.path}:{row})"
    return said if row == _row(context, context.path, at.start) else f"{said} (line {row})"


def _row(context: Context, path: str, offset: int) -> int:
    return context.project.position(path, offset).row
