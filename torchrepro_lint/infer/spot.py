"""Where an expression is evaluated."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.infer.bindings import Env


class Spot(NamedTuple):
    """A place of a file: the bindings there, and through how many more calls values may be followed."""

    path: str
    env: Env
    hops: int
