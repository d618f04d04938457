"""The files of a project as they are on disk, each read again when it has changed."""

from __future__ import annotations

import os
from collections.abc import Collection

from torchrepro_lint.config.discovery import Tree
from torchrepro_lint.engine.read_project import Means, read_tree
from torchrepro_lint.engine.reading import Reading, read, too_large
from torchrepro_lint.source.decoding import is_notebook
from torchrepro_lint.source.files import State, TooLarge, program, state

# The server has threads.
_MEANS = Means(jobs=0, cached=True)


class OnDisk:
    """``files`` are the readings by path from the root, as of when each was last looked at."""

    def __init__(self, tree: Tree) -> None:
        self._root = tree.root.path
        self._parser = tree.root.settings.parser
        readings = read_tree(tree, means=_MEANS)
        readings.store()
        self.files = readings.files
        places = {path: self.place(path) for path in self.files}
        self._states = {path: readings.seen[place][0] for path, place in places.items() if place in readings.seen}

    def place(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self._root, *path.split("/"))

    def is_current(self, path: str) -> bool:
        """Whether a file is as it was read."""
        return path in self.files and self._states.get(path) == self._state(path)

    def look_at(self, path: str, opened: tuple[bytes, Reading] | None = None) -> bool:
        """Read a file if it has changed, and say whether it has; ``opened`` is a content whose reading is known."""
        seen = self._state(path)
        if seen is not None and path in self.files and self._states.get(path) == seen:
            return False
        known = self.files.pop(path, None)
        self._states.pop(path, None)
        try:
            self.files[path] = self._read(path, opened)
        except OSError:
            return known is not None
        if seen is not None:
            self._states[path] = seen
        return True

    def _read(self, path: str, opened: tuple[bytes, Reading] | None) -> Reading:
        try:
            data = program(self.place(path))
        except TooLarge as error:
            return too_large(error)
        return opened[1] if opened and opened[0] == data else read(data, is_notebook(path), self._parser)

    def keep(self, paths: Collection[str]) -> set[str]:
        """Forget all files but these, and say which those were."""
        gone = self.files.keys() - set(paths)
        self.files = {path: self.files[path] for path in sorted(self.files.keys() - gone)}
        return gone

    def _state(self, path: str) -> State | None:
        try:
            return state(self.place(path))
        except OSError:
            return None
