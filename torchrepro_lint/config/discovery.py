"""What is left out: the globs of the settings and every ``.gitignore`` that applies.

Which files are linted, and which are linked with them.

Files that are given by more than one name: links, and what they lead to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple, TypeVar

from pathspec import GitIgnoreSpec as Spec
from pathspec import RegexPattern

from torchrepro_lint.config.roots import Options, Root, Roots, Unmarked, unmarked
from torchrepro_lint.source import files
from torchrepro_lint.source.errors import shown, shown_name
from torchrepro_lint.source.globs import Line, read_line
from torchrepro_lint.source.text import Fix

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
