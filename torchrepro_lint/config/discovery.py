"""File discovery: the files to lint, the projects that they belong to, and what is excluded.

Exclusion follows the globs of the settings and every ``.gitignore`` that applies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.config.roots import (
    ConfigOptions,
    FallbackRoot,
    ProjectRoot,
    RootFinder,
    fallback_root,
    why_never_whole,
)
from torchrepro_lint.config.settings import OWN_FILE, nearest
from torchrepro_lint.source import files
from torchrepro_lint.source.errors import escaped, escaped_path
from torchrepro_lint.source.files import CONFIGURATIONS, PROGRAMS
from torchrepro_lint.source.patterns import GitignorePattern, lazy_pattern, parse_gitignore_line

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_PLAIN_NAME = lazy_pattern(r"[\w.-]+")
# A directory without a marker that has more Python files is not taken whole. It is not searched beyond so many entries, either.
MAX_UNMARKED_FILES = 20_000
_MAX_UNMARKED_ENTRIES = 10 * MAX_UNMARKED_FILES
# More files than these are not taken beside the given ones without a word, where nothing marks a project.
_MANY_UNASKED_FILES = 100
_READ = PROGRAMS + CONFIGURATIONS


class Exclusion:
    """The excluded paths of one project. Paths are absolute; an excluded directory is not searched."""

    def __init__(self, root: str, patterns: Sequence[str]) -> None:
        self.root = root
        # Most patterns are plain names, which need no regular expression, unless a negated pattern makes the order matter.
        plain = not any(one.startswith("!") for one in patterns)
        self._names = frozenset(one for one in patterns if plain and _PLAIN_NAME.fullmatch(one))
        self._patterns = _spec(_below_root(root, (one for one in patterns if one not in self._names)))
        self._ignores: dict[str, tuple[tuple[str, GitIgnoreSpec], ...]] = {}
        above = (root, *map(str, Path(root).parents))
        self._repository = next((at for at in above if os.path.exists(os.path.join(at, ".git"))), root)

    def excludes(self, path: str, directory: bool = False) -> bool:
        """Whether the settings or git exclude a path."""
        return self.matches(path, directory) or self._ignored(path, directory)

    def matches(self, path: str, directory: bool = False) -> bool:
        """Whether the globs of the settings match a path or a directory above it."""
        place = relative_path(path, self.root)
        if not self._names.isdisjoint(place.split("/")):
            return True
        return self._patterns is not None and self._patterns.match_file(place + "/" * directory)

    def _ignored(self, path: str, directory: bool) -> bool:
        """Whether git ignores a path: the deepest ignore file with a matching line decides, by its last such line."""
        for parent, spec in self._chain(os.path.dirname(path)):
            verdict = spec.check_file(relative_path(path, parent) + "/" * directory).include
            if verdict is not None:
                return verdict
        return False

    def _chain(self, directory: str) -> tuple[tuple[str, GitIgnoreSpec], ...]:
        """The ignore files that apply in a directory, each with its directory, deepest first."""
        if directory not in self._ignores:
            parent = os.path.dirname(directory)
            above = () if directory in (self._repository, parent) else self._chain(parent)
            lines = _ignore_lines(os.path.join(directory, ".gitignore"))
            if directory == self._repository:
                lines = _ignore_lines(os.path.join(directory, ".git", "info", "exclude")) + lines
            spec = _spec(lines)
            self._ignores[directory] = above if spec is None else ((directory, spec), *above)
        return self._ignores[directory]


def glob_matcher(patterns: Iterable[str], root: str = "") -> Callable[[str], bool]:
    """A test whether a path from the root matches any of some globs, with the syntax of .gitignore."""
    spec = _spec(_below_root(root, patterns))
    return lambda path: spec is not None and spec.match_file(path)


def relative_path(path: str, root: str) -> str:
    """A path below a root, with slashes; both are absolute and normal."""
    prefix = root if root.endswith(os.sep) else root + os.sep
    below = path[len(prefix) :] if path.startswith(prefix) else os.path.relpath(path, root)
    return below.replace(os.sep, "/")


class TooManyFiles(Exception):  # noqa: N818  nothing is wrong
    """A directory has more files than are searched."""


def python_files(top: str, exclusion: Exclusion, most: int | None, unread: dict[str, str]) -> Iterator[str]:
    """The Python files, notebooks and configuration files below a directory (absolute and normal path), in no promised order.

    Links to directories are not followed, so loops of links do no harm; only regular files are found. ``unread`` gets
    the directories that cannot be read, each with the reason. Raises ``TooManyFiles`` after ``most`` files and folders of any kind.
    """
    waiting, seen = [top], 0
    while waiting:
        directory = waiting.pop()
        try:
            entries = sorted(_entries(directory, most), key=lambda entry: entry.name)
        except OSError as error:
            unread[directory] = error.strerror or str(error)
            continue
        seen += len(entries)
        if most is not None and seen > most:
            raise TooManyFiles
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not (entry.name.endswith(_READ) and _is_regular(entry)):
                continue
            if exclusion.excludes(entry.path, is_directory):
                continue
            if is_directory:
                waiting.append(entry.path)
            else:
                yield entry.path


def _entries(directory: str, most: int | None) -> list[os.DirEntry[str]]:
    """The entries of a directory, at most one more than ``most``."""
    with os.scandir(directory) as entries:
        return list(entries if most is None else islice(entries, most + 1))


def _spec(lines: Iterable[str]) -> GitIgnoreSpec | None:
    read = [each for each in map(_read_pattern, lines) if each is not None]
    if not read:
        return None
    from inspect import signature

    from pathspec import GitIgnoreSpec, RegexPattern  # a project may have no patterns but plain names

    patterns: Any = [RegexPattern(re.compile(each.expression), each.excludes) for each in read]
    # From version 1 on pathspec may choose another matcher, which does not support all of our expressions.
    options: dict[str, Any] = {"backend": "simple"} if "backend" in signature(GitIgnoreSpec).parameters else {}
    return GitIgnoreSpec(patterns, **options)


def _read_pattern(line: str) -> GitignorePattern | None:
    """The pattern of a line; None for a malformed one, which matches nothing in git either."""
    try:
        return parse_gitignore_line(line)
    except ValueError:
        return None


def _below_root(root: str, patterns: Iterable[str]) -> Iterator[str]:
    """Patterns relative to a root; an absolute path below it is made relative."""
    prefix = root.replace(os.sep, "/").rstrip("/") + "/"
    for one in patterns:
        yield "/" + one[len(prefix) :] if one.startswith(prefix) else one


def _is_regular(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _ignore_lines(path: str) -> list[str]:
    try:
        return files.read_gitignore(path).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


class GivenFile(NamedTuple):
    """A file to lint: its name as printed, its absolute path, and its bytes if they do not come from disk."""

    display: str
    path: str
    data: bytes | None = None


class ProjectTree(NamedTuple):
    """The files of a project: all its Python files, and those to lint, by path from the root, with slashes.
    ``configurations`` are its YAML, JSON and TOML files.

    ``partial`` says why the directory is not taken whole. Then ``files`` are those to lint, and
    ``engine.import_closure`` adds what they import. ``unasked`` says that many of the files were neither given nor marked as a project.
    """

    root: ProjectRoot
    files: tuple[str, ...]
    given: tuple[tuple[str, GivenFile], ...]
    partial: str = ""
    unasked: bool = False
    configurations: tuple[str, ...] = ()

    def place(self, path: str) -> str:
        """The absolute path of a file."""
        return os.path.join(self.root.path, path.replace("/", os.sep))


class Plan(NamedTuple):
    """The plan of a run: its projects in order, errors for paths that do not exist or cannot be read, and piped input.

    ``notes`` are for the user: which projects are not what one may expect.
    """

    trees: tuple[ProjectTree, ...]
    errors: tuple[str, ...]
    stdin: bytes | None = None
    notes: tuple[str, ...] = ()


def plan(
    paths: Sequence[str],
    options: ConfigOptions,
    force_exclude: bool = False,
    stdin: GivenFile | None = None,
    fallback: FallbackRoot | None = None,
) -> Plan:
    """Find the files below ``paths`` and the projects they belong to; raises ``UsageError`` for bad settings.

    Files without a project marker belong to ``fallback``, or else to the working directory or the common parent of the paths.
    """
    missing = tuple(escaped(f"{path}: {error}") for path in paths if (error := _path_error(path)))
    present = [path for path in paths if os.path.lexists(path)]
    given_paths = [*present, *([stdin.path] if stdin else [])]
    finder = _Finder(options, fallback or fallback_root(given_paths, os.getcwd()))
    found = [stdin] if stdin else []
    found += [given for path in present for given in finder.expand(path)]
    by_root: dict[str, dict[str, GivenFile]] = {}
    for given in found:
        root = finder.roots.of(os.path.dirname(given.path))
        if force_exclude and finder.exclusion(root).excludes(given.path):
            continue
        by_root.setdefault(root.path, {}).setdefault(relative_path(given.path, root.path), given)
    trees = tuple(finder.tree(root, by_root[root]) for root in sorted(by_root))
    notes = tuple(told for tree in trees if (told := _told(tree)))
    return Plan(trees, (*missing, *finder.unread_folders(force_exclude)), stdin.data if stdin else None, notes)


def _told(tree: ProjectTree) -> str:
    """What is said of a project without a marker that is not taken whole, or that has much that nobody gave."""
    place = escaped(tree.root.top)
    if tree.partial:
        return (
            f"The project is only the given files and what they import, since {place} {tree.partial}; "
            f"put an empty {OWN_FILE} in the project's folder to have all of it read"
        )
    if not tree.unasked:
        return ""
    return (
        f"Nothing marks the project of the given files, so it is looked for in all {len(tree.files):,} Python files in {place}; "
        f"put an empty {OWN_FILE} in the project's own folder to mark it"
    )


def source_roots(tree: ProjectTree) -> tuple[str, ...]:
    """The search path of absolute imports: directories from the root, after the importing script's own."""
    src = ("src",) if any(path.startswith("src/") for path in tree.files) else ()
    return tuple(dict.fromkeys((*tree.root.settings.source_roots, *src, ".")))


def _path_error(path: str) -> str:
    """The error of a given path that does not exist or cannot be asked about, or of a directory that cannot be read; else empty."""
    try:
        os.lstat(path)
    except PermissionError as error:  # the directory that holds it may not be searched
        return f"cannot be read: {error.strerror}"
    except (OSError, ValueError):
        return f"no such file or directory{similar_path(path)}"
    if os.path.isdir(path):
        try:
            os.scandir(path).close()
        except OSError as error:
            return f"cannot be read: {error.strerror}"
    return ""


def similar_path(path: str) -> str:
    """``; did you mean 'examples/'?`` for a path that does not exist, where a path of a similar name does; else empty."""
    parent, name = os.path.split(path.rstrip(os.sep))
    rest = ""
    while parent and not os.path.lexists(parent):
        rest = os.path.join(name, rest)
        parent, name = os.path.split(parent)
    try:
        near = nearest(name, sorted(os.listdir(parent or ".")))
    except OSError:
        return ""
    if near in (None, name):  # a name that is listed in a directory that may not be searched is no other name
        return ""
    found = os.path.join(parent, near)
    whole = os.path.join(found, rest).rstrip(os.sep)
    found = whole if os.path.lexists(whole) else found
    return f"; did you mean {found + os.sep * os.path.isdir(found)!r}?"


class _Finder:
    def __init__(self, options: ConfigOptions, fallback: FallbackRoot) -> None:
        self.roots = RootFinder(options, fallback)
        self._given: set[str] = set()
        # Directories below given ones that cannot be read, by absolute path: the name as printed, and the reason.
        self._unread: dict[str, tuple[str, str]] = {}
        self._exclusions: dict[str, Exclusion] = {}
        self._walked: dict[tuple[str, Exclusion], tuple[tuple[str, ...], dict[str, str]]] = {}

    def exclusion(self, root: ProjectRoot) -> Exclusion:
        if root.path not in self._exclusions:
            patterns = (*root.settings.exclude, *root.settings.extend_exclude)
            self._exclusions[root.path] = Exclusion(root.path, patterns)
        return self._exclusions[root.path]

    def expand(self, path: str) -> Iterator[GivenFile]:
        """The files of a given path: a file is always linted, a directory is searched even if it is excluded itself."""
        place = os.path.abspath(path)
        if not os.path.isdir(path):
            yield GivenFile(escaped_path(path), place)
            return
        self._given.add(place)
        root = self.roots.of(place)
        exclusion = self.exclusion(root)
        if place != root.path and exclusion.excludes(place, directory=True):
            exclusion = Exclusion(place, ())
        for file in self._below(place, exclusion):
            if file.endswith(CONFIGURATIONS):
                continue
            found = GivenFile(_shown(path, place, file), file)
            own = self.roots.of(os.path.dirname(found.path))
            if own == root or not self.exclusion(own).matches(found.path):
                yield found
        for folder, reason in self._walked[place, exclusion][1].items():
            own = self.roots.of(os.path.dirname(folder))
            if own == root or not self.exclusion(own).matches(folder, directory=True):
                self._unread.setdefault(folder, (_shown(path, place, folder), reason))

    def unread_folders(self, force_exclude: bool) -> Iterator[str]:
        """The error of each directory below a given one that cannot be read; a given one has its error from ``_path_error``."""
        for folder, (shown, reason) in sorted(self._unread.items()):
            excluded = force_exclude and self.exclusion(self.roots.of(os.path.dirname(folder))).excludes(folder, True)
            if folder not in self._given and not excluded:
                yield f"{shown}: cannot be read: {reason}"

    def _below(self, place: str, exclusion: Exclusion, most: int | None = None) -> tuple[str, ...]:
        """The absolute paths of the files below a directory; searched once. Raises ``TooManyFiles``."""
        key = place, exclusion
        if key not in self._walked:
            unread: dict[str, str] = {}
            self._walked[key] = tuple(python_files(place, exclusion, most, unread)), unread
        return self._walked[key][0]

    def is_given(self, root: ProjectRoot) -> bool:
        """Whether the directory of a project, or one around it, was given."""
        return any(os.path.join(root.top, "").startswith(os.path.join(place, "")) for place in self._given)

    def tree(self, path: str, given: dict[str, GivenFile]) -> ProjectTree:
        """The whole project below a root; of a directory that is never taken whole, what was given."""
        root = self.roots.of(path)
        below, partial = self._whole(root)
        found = {relative_path(file, path) for file in below}
        configurations = {each for each in found if each.endswith(CONFIGURATIONS)}
        files = found - configurations
        files.update(given)
        asked = root.marked or self.is_given(root) or len(files) - len(given) <= _MANY_UNASKED_FILES
        return ProjectTree(
            root, tuple(sorted(files)), tuple(sorted(given.items())), partial, not asked, tuple(sorted(configurations))
        )

    def _whole(self, root: ProjectRoot) -> tuple[tuple[str, ...], str]:
        """The files below a root, or why it is not taken whole."""
        top, exclusion = os.path.abspath(root.top), self.exclusion(root)
        if self.is_given(root):
            return self._below(top, exclusion), ""
        if partial := why_never_whole(top):
            return (), partial
        if root.marked:
            return self._below(top, exclusion), ""
        try:
            below = self._below(top, exclusion, _MAX_UNMARKED_ENTRIES)
        except TooManyFiles:
            return (), f"has more than {_MAX_UNMARKED_ENTRIES:,} files and no marker of a project"
        if sum(file.endswith(PROGRAMS) for file in below) > MAX_UNMARKED_FILES:
            return (), f"has more than {MAX_UNMARKED_FILES:,} Python files and no marker of a project"
        return below, ""


def _shown(given: str, place: str, path: str) -> str:
    """A path below a given directory (absolute: ``place``) as it is printed."""
    return escaped_path(os.path.join(given, path[len(place) :].lstrip(os.sep)))
