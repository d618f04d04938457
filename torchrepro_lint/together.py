"""What the files of a project say by names, put together for all of them, and kept up to date file by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class Together(Generic[_Value]):
    """What each file says, by its path: values by names."""

    def __init__(self) -> None:
        self._parts: dict[str, Mapping[str, Sequence[_Value]]] = {}
        self._paths: dict[str, list[str]] = {}

    def update(self, parts: Iterable[tuple[str, Mapping[str, Sequence[_Value]]]]) -> None:
        """Take over what all files say now, the same files each time; what is the same object is not looked into."""
        for path, part in parts:
            before = self._parts.get(path)
            if before is part:
                continue
            for name in before or ():
                self._paths[name].remove(path)
                if not self._paths[name]:
                    del self._paths[name]
            for name in part:
                self._paths.setdefault(name, []).append(path)
            self._parts[path] = part

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._paths)

    def of(self, name: str) -> Iterator[tuple[str, Sequence[_Value]]]:
        """The values of a name, by file, sorted."""
        return ((path, self._parts[path][name]) for path in sorted(self._paths.get(name, ())))
