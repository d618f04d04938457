"""Where a project begins, and which file holds its settings.

The folders of a project's files; paths are relative to its root, which is the empty one.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.settings import OWN_FILE, PYPROJECT, Settings, load, table
from torchrepro_lint.query.fixpoint import UnionFind


class Options(NamedTuple):
    """What the command line says about settings; it overrules every file."""

    config: Path | None = None
    isolated: bool = False
    overrides: Callable[[Settings], Settings] = lambda settings: settings


class Root(NamedTuple):
    """A project's directory (absolute), the file that its settings come from, and the settings in force.

    Its files are those below ``top``: the directory itself where something marks it as a project's.
    """

    path: str
    config: Path | None
    settings: Settings
    top: str


class Unmarked(NamedTuple):
    """What is taken for a project where nothing marks one: its root, and the directory below which its files are."""

    root: str
    top: str


def unmarked(paths: Iterable[str]) -> Unmarked:
    """The common parent of some paths; for what lies in a package, the parent of the outermost package.

    So a file of a package has the same project as the package. What lies beside the package is none of it: that may be
    all of ``site-packages``, or of someone's home.
    """
    parents = [place if os.path.isdir(place) else os.path.dirname(place) for place in map(os.path.abspath, paths)]
    try:
        top = os.path.commonpath(parents) if parents else os.getcwd()
    except ValueError:  # they are on different disks
        top = Path(parents[0]).anchor
    if not _is_package(top):
        return Unmarked(top, top)
    while _is_package(os.path.dirname(top)):
        top = os.path.dirname(top)
    return Unmarked(os.path.dirname(top), top)


def _is_package(directory: str) -> bool:
    """Whether it can be imported: not so the checkout of a repository that is called ``owner-name``."""
    if not os.path.basename(directory).isidentifier():
        return False
    return os.path.isfile(os.path.join(directory, "__init__.py")) and os.path.dirname(directory) != directory


class Roots:
    """Finds the root of each directory, once."""

    def __init__(self, options: Options, fallback: Unmarked) -> None:
        self._options = options
        self._fallback = fallback
        self._found: dict[str, str] = {}
        self._roots: dict[str, Root] = {}

    def of(self, directory: str) -> Root:
        """The root of an absolute directory.

        It is the nearest directory with our settings, else the nearest with a pyproject.toml, else with .git, else the
        fallback. Raises ``UsageError`` for settings that cannot be read.
        """
        if directory not in self._found:
            self._found[directory] = self._search(directory)
        path = self._found[directory]
        if path not in self._roots:
            self._roots[path] = self._load(path)
        return self._roots[path]

    def _search(self, directory: str) -> str:
        parents = [directory, *map(str, Path(directory).parents)]
        # Paths that have no more than a disk in common are no project: each directory is taken for itself.
        alone = os.path.dirname(self._fallback.root) == self._fallback.root
        fallback = directory if alone else self._fallback.root
        return next((parent for mark in self._marks() for parent in parents if mark(parent)), fallback)

    def _marks(self) -> tuple[Callable[[str], bool], ...]:
        return (
            lambda directory: self._config(directory) is not None,
            lambda directory: os.path.isfile(os.path.join(directory, PYPROJECT)),
            lambda directory: os.path.exists(os.path.join(directory, ".git")),
        )

    def _config(self, directory: str) -> Path | None:
        """The file in a directory that holds settings for us."""
        own, shared = Path(directory, OWN_FILE), Path(directory, PYPROJECT)
        if own.is_file():
            return own
        # Files that are to be overruled are not opened: a mistake in them does not matter.
        if self._options.isolated or self._options.config or not shared.is_file():
            return None
        return shared if table(shared) is not None else None

    def _load(self, path: str) -> Root:
        options = self._options
        config = None if options.isolated else options.config or self._config(path)
        settings = load(config) if config else Settings()
        marked = path != self._fallback.root or any(mark(path) for mark in self._marks())
        return Root(path, config, options.overrides(settings), path if marked else self._fallback.top)


# Nobody gains anything where one part has so much of a project.
_NEARLY_ALL = 0.8
# Of more folders only the largest are looked for in the others.
_MOST_FOLDERS = 12


def top_folders(paths: Collection[str]) -> dict[str, str]:
    """For each file the outermost folder around it with Python files directly in it; the root is none but for what lies directly
    in it.
    """
    folders = {posixpath.dirname(path) for path in paths} - {""}
    return {path: next((each for each in reversed([*parents(path)]) if each in folders), "") for path in paths}


def join(folder: str, word: str) -> str:
    """A path below a folder; the root is empty."""
    return f"{folder}/{word}" if folder else word


def parents(path: str) -> Iterator[str]:
    """The folders above a path, nearest first; the root, empty, is the last."""
    while path:
        path = posixpath.dirname(path)
        yield path


def falls_apart(sizes: Mapping[str, int], data: Callable[[str], bytes]) -> bool:
    """Whether a project is likely to have several parts of some size (see ``parts``), as far as the bytes of its files tell."""
    folders = top_folders(sizes)
    weights = Counter[str]()
    for path, folder in folders.items():
        weights[folder] += sizes[path]
    groups, every = UnionFind(weights), sum(weights.values())
    found = (folder for folder, _ in weights.most_common(_MOST_FOLDERS) if folder)
    largest = {folder: posixpath.basename(folder).encode("utf-8", "surrogateescape") for folder in found}
    most = max(groups.sums(weights), default=0)
    for path, folder in sorted(folders.items()):
        text = b""
        for other, word in largest.items():
            if most < _NEARLY_ALL * every and not groups.together(folder, other):
                text = text or data(path)
                if word in text and (b"import " + word in text or b"from " + word in text):
                    groups.join(folder, other)
                    most = max(groups.sums(weights))
    return most < _NEARLY_ALL * every
