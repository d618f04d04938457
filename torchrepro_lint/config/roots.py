"""Project roots: which directory is a project's root, what decided that, which file holds its settings, and which
directories are never taken whole.

Project paths are relative to the root, with slashes; the root itself is the empty path.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.settings import (
    OWN_FILE,
    PYPROJECT,
    RuleOverrides,
    Settings,
    load_settings,
    parse_torch_version,
    settings_table,
)
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import read_program, top_folders

_SETUP = ("setup.py", "setup.cfg")
_REQUIREMENTS = "requirements*.txt"
# What the top directory of a repository or of an unpacked sdist has.
_TOPS = (".git", ".hg", "PKG-INFO")
# The entries of a directory among which a requirements file or a Python file is looked for.
_MOST_ENTRIES = 20_000
# The files of a package in which an import of it is looked for.
_MOST_SEARCHED = 200
# Directories that many programs share, beside those of the environment.
_TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108  nothing is written there


class ConfigOptions(NamedTuple):
    """Options of the command line about settings, which override every settings file."""

    config: Path | None = None
    isolated: bool = False
    overrides: Callable[[Settings], Settings] = lambda settings: settings
    # Whether ``--torch-version`` is one of the overrides.
    has_torch_version: bool = False
    # An absolute directory; those above it, which others may own, decide nothing. Empty: all of them are asked.
    top: str = ""


def config_options(
    overrides: RuleOverrides,
    config: Path | None = None,
    isolated: bool = False,
    more: Callable[[Settings], Settings] = lambda settings: settings,
) -> ConfigOptions:
    """The options of a command, whose ``overrides`` and then ``more`` override every settings file. Raises ``UsageError``."""
    if config is not None and isolated:
        raise UsageError("--config cannot be combined with --isolated")
    has_version = overrides.torch_version is not None
    if overrides.torch_version is not None:
        try:
            parse_torch_version(overrides.torch_version)
        except ValueError as error:
            raise UsageError(f"--torch-version: {error}") from None
    return ConfigOptions(config, isolated, lambda settings: more(overrides.apply_to(settings)), has_version)


class ProjectRoot(NamedTuple):
    """A project root: its absolute path, the settings file, and the effective settings.

    The project's files are those below ``top``, which is the root itself if something marks it as a project.
    ``decided_by`` is the marker, ``setup.py``, or else in words what made this directory the root; ``version_from`` says what
    the torch version of the settings comes from.
    """

    path: str
    config: Path | None
    settings: Settings
    top: str
    decided_by: str = ""
    marked: bool = True
    version_from: str = "the torch-version setting"


class FallbackRoot(NamedTuple):
    """The project root to use where nothing marks a project, the directory below which its files are, and what decided."""

    root: str
    top: str
    decided_by: str = "the common parent of the given paths"


def fallback_root(paths: Iterable[str], working_directory: str | None = None) -> FallbackRoot:
    """The working directory where it holds some paths, else their common parent; for a directory in a package, the parent of the
    outermost package.

    So a file of a package has the same project as the package. What lies beside the package does not belong to the project:
    that may be all of ``site-packages``, or someone's home.
    """
    parents = [place if os.path.isdir(place) else os.path.dirname(place) for place in map(os.path.abspath, paths)]
    top, decided_by = _unmarked(parents, working_directory)
    if not _is_package(top):
        return FallbackRoot(top, top, decided_by)
    while _is_package(os.path.dirname(top)):
        top = os.path.dirname(top)
    return FallbackRoot(os.path.dirname(top), top, f"the package {os.path.basename(top)}")


def _unmarked(parents: Sequence[str], working_directory: str | None) -> tuple[str, str]:
    """The directory that holds others where nothing marks a project, and what decided that."""
    try:
        top = os.path.commonpath(parents) if parents else working_directory or os.getcwd()
    except ValueError:  # they are on different disks
        top = Path(parents[0]).anchor
    here = working_directory
    # The root of a file system holds everything, so that it says nothing.
    if here is not None and os.path.dirname(here) != here and os.path.join(top, "").startswith(os.path.join(here, "")):
        return here, "the working directory"
    return top, FallbackRoot._field_defaults["decided_by"]


def _is_package(directory: str) -> bool:
    """Whether a directory is an importable package; the checkout of a repository named ``owner-name`` is not."""
    if not os.path.basename(directory).isidentifier():
        return False
    return os.path.isfile(os.path.join(directory, "__init__.py")) and os.path.dirname(directory) != directory


def why_never_whole(directory: str) -> str:
    """Why a directory is never taken whole as a project: ``is the home directory``; empty for an ordinary directory."""
    return _why_shared(os.path.realpath(directory), os.environ.get("HOME", ""), os.environ.get("TMPDIR", ""))


@lru_cache(maxsize=1024)
def _why_shared(place: str, _home: str, temporary: str) -> str:
    if os.path.dirname(place) == place:
        return "is the root of the file system"
    home = os.path.expanduser("~")
    home = os.path.realpath(home) if os.path.isabs(home) else ""
    if place == home:
        return "is the home directory"
    if os.path.join(home, "").startswith(os.path.join(place, "")):
        return "holds the home directory"
    named = (temporary, os.environ.get("TEMP", ""), os.environ.get("TMP", ""), *_TEMPORARY)
    return "is the directory of temporary files" if place in {os.path.realpath(each) for each in named if each} else ""


class RootFinder:
    """Finds the project root of each directory, once."""

    def __init__(self, options: ConfigOptions, fallback: FallbackRoot) -> None:
        self._options = options
        self._fallback = fallback
        self._found: dict[str, tuple[str, str]] = {}
        self._roots: dict[str, ProjectRoot] = {}
        self._marks: dict[str, str] = {}
        self._modules: dict[str, bool] = {}

    def of(self, directory: str) -> ProjectRoot:
        """The root of an absolute directory. Raises ``UsageError`` for settings that cannot be read.

        It is the first of:

        1. the nearest directory with our settings;
        2. the nearest one with a pyproject.toml;
        3. in a repository (.git or .hg) or an unpacked sdist (PKG-INFO), the outermost one with a setup.py, setup.cfg or
           requirements*.txt that has no Python files above it in there, else the repository or sdist itself;
        4. elsewhere, the nearest one with a setup.py or setup.cfg, else with a requirements*.txt, that is no part of a package;
        5. the fallback.

        For 3 and 4, a package whose files import it by its own name is no root, but the directory above it, where that name is found.

        In a repository the nearest setup.py or requirements file decides nothing by itself: many have one for a CUDA extension in
        ``models/ops``, for the documentation, or for each example. As a project of its own such a folder would be cut off from the code
        that it imports and from the programs that run it: fairseq has 5 such folders, NVIDIA's DeepLearningExamples 10. Where there
        is nothing but such folders, in a collection of examples say, each is a project. A home directory is marked by our settings
        only: a .git for the user's dotfiles makes no project of all that lies below.
        """
        if directory not in self._found:
            self._found[directory] = self._search(directory)
        path, decided_by = self._found[directory]
        if path not in self._roots:
            self._roots[path] = self._load(path, decided_by)
        return self._roots[path]

    def _search(self, directory: str) -> tuple[str, str]:
        parents = [directory, *map(str, Path(directory).parents)]
        if self._options.top in parents:
            parents = parents[: parents.index(self._options.top) + 1]
        for parent in parents:
            if (config := self._config(parent)) is not None:
                return parent, config.name
        near = [*takewhile(lambda parent: not why_never_whole(parent), parents)]
        return self._marked(near) or self._unmarked(directory)

    def _marked(self, parents: Sequence[str]) -> tuple[str, str] | None:
        """The nearest directory that something marks, among one and those above it."""
        for parent in parents:
            if os.path.isfile(os.path.join(parent, PYPROJECT)):
                return parent, PYPROJECT
        for number, parent in enumerate(parents):
            for name in _TOPS:
                if os.path.exists(os.path.join(parent, name)):
                    return self._in_repository(parents[: number + 1]) or (parent, name)
        own = [each for each in parents if not _is_package(os.path.dirname(each))]
        found = [(each, mark) for each in own if (mark := self._mark(each))]
        nearest = next((each for each in found if each[1] in _SETUP), found[0] if found else None)
        return _importable(parents, *nearest) if nearest is not None else None

    def _in_repository(self, parents: Sequence[str]) -> tuple[str, str] | None:
        """The outermost marked directory of a repository, the last of the given ones, if no Python files lie above it."""
        for parent in reversed(parents):
            if mark := self._mark(parent):
                return _importable(parents, parent, mark)
            if self._has_modules(parent):
                return None
        return None

    def _mark(self, directory: str) -> str:
        """The name of the setup file in a directory, else of its first requirements file; else empty."""
        if directory not in self._marks:
            self._marks[directory] = next(
                (name for name in _SETUP if os.path.isfile(os.path.join(directory, name))),
                min(_names(directory, _REQUIREMENTS), default=""),
            )
        return self._marks[directory]

    def _has_modules(self, directory: str) -> bool:
        if directory not in self._modules:
            self._modules[directory] = any(_names(directory, "*.py")) or any(_names(directory, "*.ipynb"))
        return self._modules[directory]

    def _unmarked(self, directory: str) -> tuple[str, str]:
        # Paths with only a disk in common are no project: each directory is one.
        if os.path.dirname(self._fallback.root) == self._fallback.root:
            return directory, "the directory of the given file"
        return self._fallback.root, self._fallback.decided_by

    def _config(self, directory: str) -> Path | None:
        """The settings file in a directory."""
        own, shared = Path(directory, OWN_FILE), Path(directory, PYPROJECT)
        # Unlike the method of ``Path``, this raises nothing in a directory that may not be searched.
        if os.path.isfile(own):
            return own
        # Files that are overridden are not opened, so that errors in them do not matter.
        if self._options.isolated or self._options.config or not os.path.isfile(shared):
            return None
        return shared if settings_table(shared) is not None else None

    def _load(self, path: str, decided_by: str) -> ProjectRoot:
        options = self._options
        config = None if options.isolated else options.config or self._config(path)
        settings = options.overrides(load_settings(config) if config else Settings())
        mark = os.path.basename(decided_by)
        marked = mark in (OWN_FILE, PYPROJECT, *_SETUP, *_TOPS) or fnmatch(mark, _REQUIREMENTS)
        at_fallback = not marked and path == self._fallback.root
        root = ProjectRoot(path, config, settings, self._fallback.top if at_fallback else path, decided_by, marked)
        return root._replace(version_from="the option --torch-version") if options.has_torch_version else root


def _importable(parents: Sequence[str], directory: str, mark: str) -> tuple[str, str]:
    """The directory above a marked package that its files import by its own name: ``from domainbed.lib import misc``; else itself."""
    above = next((each for each in parents[parents.index(directory) :] if not _is_package(each)), directory)
    if above == directory or not _imports_itself(directory):
        return directory, mark
    return above, Path(directory, mark).relative_to(above).as_posix()


def _imports_itself(package: str) -> bool:
    """Whether a file in a package, or in a package within, imports it by its own name."""
    word = re.escape(os.path.basename(package)).encode()
    imports = re.compile(rb"^[ \t]*(?:from|import)[ \t]+" + word + rb"\b", re.MULTILINE)
    folders = [package, *(str(each.parent) for each in sorted(Path(package).glob("*/__init__.py")))]
    files = (os.path.join(folder, name) for folder in folders for name in sorted(_names(folder, "*.py")))
    return any(imports.search(_read(file)) for file in islice(files, _MOST_SEARCHED))


def _read(file: str) -> bytes:
    try:
        return read_program(file)
    except OSError:
        return b""


def _names(directory: str, pattern: str) -> list[str]:
    """The names of the files in a directory that match a pattern."""
    try:
        with os.scandir(directory) as entries:
            found = [each for each in islice(entries, _MOST_ENTRIES) if fnmatch(each.name, pattern)]
        return [each.name for each in found if each.is_file()]
    except OSError:
        return []


class UnionFind:
    """Union-find over words: at first each word is a group by itself."""

    def __init__(self, words: Iterable[str]) -> None:
        self._above = {word: word for word in words}

    def join(self, one: str, other: str) -> None:
        """Put both words in one group."""
        self._above[self._top(one)] = self._top(other)

    def together(self, one: str, other: str) -> bool:
        """Whether both are in one group."""
        return self._top(one) == self._top(other)

    def sorted(self) -> tuple[tuple[str, ...], ...]:
        """The groups, and what is in them, sorted."""
        found: dict[str, list[str]] = {}
        for word in sorted(self._above):
            found.setdefault(self._top(word), []).append(word)
        return tuple(sorted(map(tuple, found.values())))

    def sums(self, weights: Mapping[str, int]) -> Collection[int]:
        """The total weight of each group."""
        found: dict[str, int] = {}
        for word, weight in weights.items():
            top = self._top(word)
            found[top] = found.get(top, 0) + weight
        return found.values()

    def _top(self, word: str) -> str:
        above = self._above
        while above[word] != word:
            above[word] = word = above[above[word]]
        return word


# Partitioning does not pay where one component has this share of a project.
_LARGEST_SHARE = 0.8


# Only the largest folders are looked for in the others.
_MOST_FOLDERS = 12


def likely_has_components(sizes: Mapping[str, int], data: Callable[[str], bytes]) -> bool:
    """Whether a project is likely to have several large connected components, judged by import statements in its bytes."""
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
