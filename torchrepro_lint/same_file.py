"""Files that are given by more than one name: links, and what they lead to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeVar

from torchrepro_lint.files import Given
from torchrepro_lint.source.text import Fix

T = TypeVar("T")


class SameFile:
    """The names, from the root, under which one tree has each file."""

    def __init__(self, given: Iterable[tuple[str, Given]]) -> None:
        by_place: dict[str, list[tuple[bool, str]]] = {}
        for path, one in given:
            place = os.path.realpath(one.path)
            by_place.setdefault(place, []).append((one.path != place, path))
        self._first: dict[str, str] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        for names in by_place.values():
            if len(names) > 1:
                first, *others = (path for _, path in sorted(names))
                self._others[first] = tuple(others)
                self._first.update(dict.fromkeys(others, first))

    def first(self, path: str) -> str:
        """The name by which a file is written: its own, where that is given, else the first in order."""
        return self._first.get(path, path)

    def fix(self, fix: Fix) -> Fix:
        """A fix of other files under the names by which they are written."""
        return fix._replace(elsewhere=tuple((self.first(path), edits) for path, edits in fix.elsewhere))

    def spread(self, by_path: Mapping[str, T]) -> dict[str, T]:
        """What holds for files by their first names, for all their names."""
        found = dict(by_path)
        for path, value in by_path.items():
            found.update(dict.fromkeys(self._others.get(path, ()), value))
        return found
