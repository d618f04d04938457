"""What may go wrong with an input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Failure(NamedTuple):
    """What went wrong: ``crash``, ``hang``, ``differs`` or ``lost``, and how it shows."""

    sort: str
    told: str


def controls_in(what: str, text: str) -> Iterator[Failure]:
    """A failure where a control character comes through that a terminal may obey."""
    if found := _CONTROL.search(text):
        yield Failure("lost", f"{what} lets {found[0]!r} through")
