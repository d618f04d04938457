"""Which files are linted, and which are linked with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchrepro_lint.exclusion import Exclusion, relative, walk
from torchrepro_lint.roots import Options, Root, Roots, Unmarked, unmarked
from torchrepro_lint.source.errors import shown, shown_name


class Given(NamedTuple):
    """A file to report on: as it is printed (``shown_name``), where it is (absolute), and its bytes where they come from elsewhere."""

    display: str
    path: str
    data: bytes | None = None


class Tree(NamedTuple):
    """A project: all its Python files and those to report on, both by their path from the root, with slashes."""

    root: Root
    files: tuple[str, ...]
    given: tuple[tuple[str, Given], ...]

    def place(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self.root.path, path.replace("/", os.sep))


class Plan(NamedTuple):
    """What a run is about, in order; ``errors`` are the given paths that do not exist or cannot be looked into, ``stdin`` what was piped in."""

    trees: tuple[Tree, ...]
    errors: tuple[str, ...]
    stdin: bytes | None = None


def plan(
    paths: Sequence[str],
    options: Options,
    force_exclude: bool = False,
    stdin: Given | None = None,
    fallback: Unmarked | None = None,
) -> Plan:
    """Find the files below ``paths`` and the projects they belong to; raises ``UsageError`` for bad settings.

    Where nothing marks a project, ``fallback`` is taken for one, else what the paths have in common.
    """
    missing = tuple(f"{shown(path)}: {error}" for path in paths if (error := _error(path)))
    present = [path for path in paths if os.path.lexists(path)]
    finder = _Finder(options, fallback or unmarked([*present, *([stdin.path] if stdin else [])]))
    found = [stdin] if stdin else []
    found += [given for path in present for given in finder.expand(path)]
    by_root: dict[str, dict[str, Given]] = {}
    for given in found:
        root = finder.roots.of(os.path.dirname(given.path))
        if force_exclude and finder.exclusion(root).excludes(given.path):
            continue
        by_root.setdefault(root.path, {}).setdefault(relative(given.path, root.path), given)
    return Plan(
        tuple(finder.tree(root, by_root[root]) for root in sorted(by_root)), missing, stdin.data if stdin else None
    )


def source_roots(tree: Tree) -> tuple[str, ...]:
    """Directories, from the root, in which absolute imports are looked up after the importing script's own."""
    src = ("src",) if any(path.startswith("src/") for path in tree.files) else ()
    return tuple(dict.fromkeys((*tree.root.settings.source_roots, *src, ".")))


def _error(path: str) -> str:
    """What is wrong with a given path: it is not there, or a folder that cannot be looked into."""
    if not os.path.lexists(path):
        return "no such file or directory"
    if os.path.isdir(path):
        try:
            os.scandir(path).close()
        except OSError as error:
            return f"cannot be read: {error.strerror}"
    return ""


class _Finder:
    def __init__(self, options: Options, fallback: Unmarked) -> None:
        self.roots = Roots(options, fallback)
        self._exclusions: dict[str, Exclusion] = {}
        # Each with its exclusion, whose identity is a part of the key.
        self._walked: dict[tuple[str, int], tuple[Exclusion, tuple[str, ...]]] = {}

    def exclusion(self, root: Root) -> Exclusion:
        if root.path not in self._exclusions:
            patterns = (*root.settings.exclude, *root.settings.extend_exclude)
            self._exclusions[root.path] = Exclusion(root.path, patterns)
        return self._exclusions[root.path]

    def expand(self, path: str) -> Iterator[Given]:
        """A given file is taken as it is, a given directory is searched even where it is excluded itself."""
        place = os.path.abspath(path)
        if not os.path.isdir(path):
            yield Given(shown_name(path), place)
            return
        root = self.roots.of(place)
        exclusion = self.exclusion(root)
        if place != root.path and exclusion.excludes(place, directory=True):
            exclusion = Exclusion(place, ())
        for file in self._below(place, exclusion):
            found = Given(shown_name(os.path.join(path, file[len(place) :].lstrip(os.sep))), file)
            own = self.roots.of(os.path.dirname(found.path))
            if own == root or not self.exclusion(own).matches(found.path):
                yield found

    def _below(self, place: str, exclusion: Exclusion) -> tuple[str, ...]:
        """The files below a directory, by absolute paths; looked for once."""
        key = place, id(exclusion)
        if key not in self._walked:
            self._walked[key] = exclusion, tuple(walk(place, exclusion))
        return self._walked[key][1]

    def tree(self, path: str, given: dict[str, Given]) -> Tree:
        """The whole project below a root."""
        root = self.roots.of(path)
        below = {relative(file, path) for file in self._below(os.path.abspath(root.top), self.exclusion(root))}
        return Tree(root, tuple(sorted(below | set(given))), tuple(sorted(given.items())))
