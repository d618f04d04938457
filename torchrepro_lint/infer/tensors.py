"""What torch's functions, methods and layers give."""

# ruff: noqa: ARG001  # filled next

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call
from torchrepro_lint.infer.what import UNKNOWN, What

if TYPE_CHECKING:
    from torchrepro_lint.infer.kinds import Kinds
    from torchrepro_lint.infer.spot import Spot


def arithmetic(op: str, left: What, right: What) -> What:
    return What("tensor") if left.kind in ("tensor", "parameter", "int", "float", "bool", "ndarray") else UNKNOWN


def method(kinds: Kinds, receiver: What, word: str, call: Call, spot: Spot) -> What:
    return UNKNOWN


def function(kinds: Kinds, name: str, call: Call, spot: Spot) -> What | None:
    return None


def layer(kinds: Kinds, called: What, call: Call, spot: Spot) -> What:
    return UNKNOWN


def by_word(kinds: Kinds, receiver: What, word: str, call: Call, spot: Spot) -> What:
    return UNKNOWN
