"""Project roots: which directory is a project's root, which file holds its settings, and arithmetic on paths below the
root.

Project paths are relative to the root, with slashes; the root itself is the empty path.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.config.settings import OWN_FILE, PYPROJECT, Settings, load_settings, settings_table
from torchrepro_lint.source.files import top_folders

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        pass
    else:
        pass


class ConfigOptions(NamedTuple):
    """Options of the command line about settings, which override every settings file."""

    config: Path | None = None
    isolated: bool = False
    overrides: Callable[[Settings], Settings] = lambda settings: settings


class ProjectRoot(NamedTuple):
    """A project root: its absolute path, the settings file, and the effective settings.

    The project's files are those below ``top``, which is the root itself if something marks it as a project.
    """

    path: str
    config: Path | None
    settings: Settings
    top: str


class FallbackRoot(NamedTuple):
    """The project root to use where nothing marks a project, and the directory below which its files are."""

    root: str
    top: str


def fallback_root(paths: Iterable[str]) -> FallbackRoot:
    """The common parent of some paths; for paths in a package, the parent of the outermost package.

    So a file of a package has the same project as the package. What lies beside the package does not belong to the project:
    that may be all of ``site-packages``, or someone's home.
    """
    parents = [place if os.path.isdir(place) else os.path.dirname(place) for place in map(os.path.abspath, paths)]
    try:
        top = os.path.commonpath(parents) if parents else os.getcwd()
    except ValueError:  # they are on different disks
        top = Path(parents[0]).anchor
    if not _is_package(top):
        return FallbackRoot(top, top)
    while _is_package(os.path.dirname(top)):
        top = os.path.dirname(top)
    return FallbackRoot(os.path.dirname(top), top)


def _is_package(directory: str) -> bool:
    """Whether a directory is an importable package; the checkout of a repository named ``owner-name`` is not."""
    if not os.path.basename(directory).isidentifier():
        return False
    return os.path.isfile(os.path.join(directory, "__init__.py")) and os.path.dirname(directory) != directory


class RootFinder:
    """Finds the project root of each directory, once."""

    def __init__(self, options: ConfigOptions, fallback: FallbackRoot) -> None:
        self._options = options
        self._fallback = fallback
        self._found: dict[str, str] = {}
        self._roots: dict[str, ProjectRoot] = {}

    def of(self, directory: str) -> ProjectRoot:
        """The root of an absolute directory.

        It is the nearest directory above with our settings, else with a pyproject.toml, else with .git, else the fallback.
        Raises ``UsageError`` for settings that cannot be read.
        """
        if directory not in self._found:
            self._found[directory] = self._search(directory)
        path = self._found[directory]
        if path not in self._roots:
            self._roots[path] = self._load(path)
        return self._roots[path]

    def _search(self, directory: str) -> str:
        parents = [directory, *map(str, Path(directory).parents)]
        # Paths with only a disk in common are no project: each directory is one.
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
        """The settings file in a directory."""
        own, shared = Path(directory, OWN_FILE), Path(directory, PYPROJECT)
        if own.is_file():
            return own
        # Files that are overridden are not opened, so that errors in them do not matter.
        if self._options.isolated or self._options.config or not shared.is_file():
            return None
        return shared if settings_table(shared) is not None else None

    def _load(self, path: str) -> ProjectRoot:
        options = self._options
        config = None if options.isolated else options.config or self._config(path)
        settings = load_settings(config) if config else Settings()
        marked = path != self._fallback.root or any(mark(path) for mark in self._marks())
        return ProjectRoot(path, config, options.overrides(settings), path if marked else self._fallback.top)


# Partitioning does not pay where one component has this share of a project.
_LARGEST_SHARE = 0.8


# Only the largest folders are looked for in the others.
_MOST_FOLDERS = 12


def likely_has_components(sizes: Mapping[str, int], data: Callable[[str], bytes]) -> bool:
    """Whether a project is likely to have several large connected components, judged by import statements in its bytes."""
    from torchrepro_lint.query.fixpoint import UnionFind  # a recalled run does without

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
            if most < _LARGEST_SHARE * every and not groups.together(folder, other):
                text = text or data(path)
                if word in text and (b"import " + word in text or b"from " + word in text):
                    groups.join(folder, other)
                    most = max(groups.sums(weights))
    return most < _LARGEST_SHARE * every
