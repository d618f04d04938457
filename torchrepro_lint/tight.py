"""Tables that stay, in little room: lists keep room for more, and of one value take twice what a tuple takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def tight(rows: Mapping[_Key, Iterable[_Value]]) -> dict[_Key, tuple[_Value, ...]]:
    """The rows of a table that is complete."""
    return {key: tuple(each) for key, each in rows.items()}
