"""The timeline of a run: what touches which generator, flag, variable and device, in order, and what is missing.

Records only: they know nothing of how they are printed. ``moments`` makes them.
"""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.source.text import Position
from torchrepro_lint.trace.contexts import Step

# The lanes, from left to right: the generators, then what decides how torch computes.
LANES = (
    ("torch", "torch's generators"),
    ("numpy", "NumPy's global generator"),
    ("python", "Python's global generator"),
    ("own", "generators of their own"),
    ("flags", "torch's flags"),
    ("variables", "environment variables"),
    ("device", "the device"),
)

# What may happen in a lane. A draw of many stands for those that the same statement of the entry file leads to.
KINDS = ("seed", "entropy", "draw", "set", "remove", "operation", "accelerator", "work", "backward")


class Trouble(NamedTuple):
    """What is wrong with a moment, or missing from the run, in a few words; ``code`` is the rule that speaks of it."""

    lane: str
    code: str
    text: str


class Moment(NamedTuple):
    """One thing that happens in a run.

    ``kind`` is one of ``KINDS``; ``what`` names the family, flag or variable, the operation for ``operation``. ``value``
    is what a flag or variable is set to, as text, None where it is removed or not a constant. ``conditions`` are the tests
    on the way, ``if args.seed is not None``. ``times`` is how many draws this one stands for. ``way`` leads from the entry
    point to the place, which it does not repeat.
    """

    lane: str
    kind: str
    what: str
    text: str
    value: str | None
    conditions: tuple[str, ...]
    path: str
    place: Position
    times: int
    way: tuple[Step, ...]
    trouble: Trouble | None


class Lane(NamedTuple):
    """A lane and what came of it: ``untouched``, ``seeded``, ``late`` (drawn from first), ``unseeded``, ``entropy``,
    ``unknown`` (a call that is not followed may seed it); ``touched`` for what is no generator.
    """

    key: str
    title: str
    state: str


class Timeline(NamedTuple):
    """A run: where it starts (``function`` where that is a command and not the module), for which torch and device."""

    path: str
    function: str | None
    torch: str
    device: str
    lanes: tuple[Lane, ...]
    moments: tuple[Moment, ...]
    missing: tuple[Trouble, ...]
