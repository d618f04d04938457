"""Tables that stay, in little room: lists keep room for more, and of one value take twice what a tuple takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


def tight(rows: Mapping[_Item, Iterable[_Value]]) -> dict[_Item, tuple[_Value, ...]]:
    """The rows of a table that is complete."""
    return {key: tuple(each) for key, each in rows.items()}
