"""Call paths: the steps from an entry point to a cause, as they are reported."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.source.text import Position


class Step(NamedTuple):
    """A step of the way from an entry point to a cause: a place of the project, and what happens there."""

    path: str
    place: Position
    text: str
