"""What is left out: the globs of the settings and every ``.gitignore`` that applies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pathspec


class Exclusion:
    """The exclusions of one project. Paths are absolute; a directory that is excluded is not looked into."""

    def __init__(self, root: str, patterns: Iterable[str]) -> None:
        self.root = root
        self._patterns = globs(root, patterns)
        self._ignores: dict[str, pathspec.GitIgnoreSpec | None] = {}
        self._repository = next((at for at in _upwards(root) if os.path.exists(os.path.join(at, ".git"))), root)

    def excludes(self, path: str, directory: bool = False) -> bool:
        """Whether the settings or git leave out a path."""
        return self.matches(path, directory) or self._ignored(path, directory)

    def matches(self, path: str, directory: bool = False) -> bool:
        """Whether the globs of the settings match a path or a directory above it."""
        return self._patterns.match_file(relative(path, self.root) + "/" * directory)

    def _ignored(self, path: str, directory: bool) -> bool:
        """What git says: the deepest file that has an opinion decides, within it the last line that matches."""
        for parent in _upwards(os.path.dirname(path)):
            spec = self._spec(parent)
            verdict = spec.check_file(relative(path, parent) + "/" * directory).include if spec else None
            if verdict is not None:
                return verdict
            if parent == self._repository:
                break
        return False

    def _spec(self, directory: str) -> pathspec.GitIgnoreSpec | None:
        if directory not in self._ignores:
            lines = _lines(os.path.join(directory, ".gitignore"))
            if directory == self._repository:
                lines = _lines(os.path.join(directory, ".git", "info", "exclude")) + lines
            self._ignores[directory] = pathspec.GitIgnoreSpec.from_lines(lines) if lines else None
        return self._ignores[directory]


def globs(root: str, patterns: Iterable[str]) -> pathspec.GitIgnoreSpec:
    """Globs as .gitignore reads them; an absolute path under the root means what it names."""
    prefix = root.replace(os.sep, "/").rstrip("/") + "/"
    return pathspec.GitIgnoreSpec.from_lines(
        "/" + one[len(prefix) :] if one.startswith(prefix) else one for one in patterns
    )


def relative(path: str, root: str) -> str:
    """A path below a root, with slashes; both are absolute and normal."""
    return os.path.relpath(path, root).replace(os.sep, "/")


def walk(top: str, exclusion: Exclusion) -> Iterator[str]:
    """The Python files below a directory, spelt as ``top`` is, in no promised order.

    Links to directories are not followed, so a loop of them cannot be entered; what is not a regular file is left out.
    """
    waiting = [top]
    while waiting:
        try:
            entries = sorted(os.scandir(waiting.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not (entry.name.endswith(".py") and _regular(entry)):
                continue
            if exclusion.excludes(os.path.abspath(entry.path), is_directory):
                continue
            if is_directory:
                waiting.append(entry.path)
            else:
                yield entry.path


def _regular(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _upwards(directory: str) -> Iterator[str]:
    while True:
        yield directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return
        directory = parent


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []
