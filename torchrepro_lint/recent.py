"""A table of bounded size: of many answers those that were asked for last."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from sys import maxsize
from typing import Any, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Remembers at least the ``most`` answers that were asked for last, and fewer than twice as many; all without ``most``.

    What it holds can be worked out again: what is not found may have been there.
    """

    __slots__ = ("_most", "_new", "_old")

    def __init__(self, most: int | None) -> None:
        self._most = maxsize if most is None else most
        self._new: dict[_Key, _Value] = {}
        # What was asked for before the new ones; of these, all that is asked for again is new.
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key, default: Any = None) -> Any:
        """What is remembered; ``default`` where nothing is."""
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return default
            self[key] = found
        return found

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Remember an answer, which is not None."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, {}
        self._new[key] = value

    def __iter__(self) -> Iterator[_Key]:
        """What is remembered."""
        return iter({**self._old, **self._new})

    def pop(self, key: _Key, _default: None = None) -> None:
        """Forget what has changed."""
        self._new.pop(key, None)
        self._old.pop(key, None)
