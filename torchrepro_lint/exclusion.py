"""What is left out: the globs of the settings and every ``.gitignore`` that applies."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import signature
from typing import Any

from pathspec import GitIgnoreSpec as Spec
from pathspec import RegexPattern

from torchrepro_lint.source import files
from torchrepro_lint.source.globs import Line, read_line

# From version 1 on pathspec takes another matcher where one is installed, which does not know all that is in our expressions.
_OPTIONS: dict[str, Any] = {"backend": "simple"} if "backend" in signature(Spec).parameters else {}
_NAME = re.compile(r"[\w.-]+")


class Exclusion:
    """The exclusions of one project. Paths are absolute; a directory that is excluded is not looked into."""

    def __init__(self, root: str, patterns: Sequence[str]) -> None:
        self.root = root
        # Most patterns are plain names, which need no regular expression; a negated one makes the order matter.
        plain = not any(one.startswith("!") for one in patterns)
        self._names = frozenset(one for one in patterns if plain and _NAME.fullmatch(one))
        self._patterns = _spec(_anchored(root, (one for one in patterns if one not in self._names)))
        self._ignores: dict[str, tuple[tuple[str, Spec], ...]] = {}
        self._repository = next((at for at in _upwards(root) if os.path.exists(os.path.join(at, ".git"))), root)

    def excludes(self, path: str, directory: bool = False) -> bool:
        """Whether the settings or git leave out a path."""
        return self.matches(path, directory) or self._ignored(path, directory)

    def matches(self, path: str, directory: bool = False) -> bool:
        """Whether the globs of the settings match a path or a directory above it."""
        place = relative(path, self.root)
        if not self._names.isdisjoint(place.split("/")):
            return True
        return self._patterns is not None and self._patterns.match_file(place + "/" * directory)

    def _ignored(self, path: str, directory: bool) -> bool:
        """What git says: the deepest file that has an opinion decides, within it the last line that matches."""
        for parent, spec in self._chain(os.path.dirname(path)):
            verdict = spec.check_file(relative(path, parent) + "/" * directory).include
            if verdict is not None:
                return verdict
        return False

    def _chain(self, directory: str) -> tuple[tuple[str, Spec], ...]:
        """The ignore files that apply in a directory, each with where it lies, the deepest first."""
        if directory not in self._ignores:
            parent = os.path.dirname(directory)
            above = () if directory in (self._repository, parent) else self._chain(parent)
            lines = _lines(os.path.join(directory, ".gitignore"))
            if directory == self._repository:
                lines = _lines(os.path.join(directory, ".git", "info", "exclude")) + lines
            spec = _spec(lines)
            self._ignores[directory] = above if spec is None else ((directory, spec), *above)
        return self._ignores[directory]


def globs(patterns: Iterable[str], root: str = "") -> Callable[[str], bool]:
    """Whether a path from the root fits globs as .gitignore reads them."""
    spec = _spec(_anchored(root, patterns))
    return lambda path: spec is not None and spec.match_file(path)


def relative(path: str, root: str) -> str:
    """A path below a root, with slashes; both are absolute and normal."""
    prefix = root if root.endswith(os.sep) else root + os.sep
    below = path[len(prefix) :] if path.startswith(prefix) else os.path.relpath(path, root)
    return below.replace(os.sep, "/")


def walk(top: str, exclusion: Exclusion) -> Iterator[str]:
    """The Python files and notebooks below a directory, whose path is absolute and normal, in no promised order.

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
            if not is_directory and not (entry.name.endswith((".py", ".ipynb")) and _regular(entry)):
                continue
            if exclusion.excludes(entry.path, is_directory):
                continue
            if is_directory:
                waiting.append(entry.path)
            else:
                yield entry.path


def _spec(lines: Iterable[str]) -> Spec | None:
    read = (each for each in map(_read, lines) if each is not None)
    patterns: Any = [RegexPattern(re.compile(each.expression), each.excludes) for each in read]
    return Spec(patterns, **_OPTIONS) if patterns else None


def _read(line: str) -> Line | None:
    """A line that is no pattern matches nothing, as git has it."""
    try:
        return read_line(line)
    except ValueError:
        return None


def _anchored(root: str, patterns: Iterable[str]) -> Iterator[str]:
    """Patterns below a root; an absolute path under it means what it names."""
    prefix = root.replace(os.sep, "/").rstrip("/") + "/"
    for one in patterns:
        yield "/" + one[len(prefix) :] if one.startswith(prefix) else one


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
        return files.patterns(path).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
