"""Repositories of a survey: what a command line names, and extraction within limits, which copies the files that are read of an
untrusted repository into an empty folder.

A repository is a folder, a git repository at a revision (``path@rev``), or an archive. Nothing is written outside that folder: a name
is checked before a file is made.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, NamedTuple

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

from torchrepro_lint.config.target import LOCKS
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import (
    CONFIGURATIONS,
    MAX_CONFIGURATION,
    MAX_MANIFEST,
    MAX_NOTEBOOK,
    MAX_PROGRAM,
    PROGRAMS,
    read_named_file,
)
from torchrepro_lint.source.patterns import lazy_pattern

# None of them ends with another one.
ARCHIVES = (".zip", ".whl", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")
# Last parts of a path that say nothing of a repository: the part before them is its name.
_PLAIN_PARTS = frozenset({"", ".git", "git", "repo", "repo.git", "code", "source", "src", "main", "master"})
_BARE = ("HEAD", "objects", "refs")
# The first bytes of a file that is no list of names.
_BINARY = lazy_pattern(rb"[\x00-\x08\x0e-\x1f]")


class Repository(NamedTuple):
    """A repository: its identity in the survey (the path as given, and the revision), its kind, its absolute path, the
    revision to read (of git), and its name, which is the same in another place or at another revision.

    ``kind`` is ``folder``, ``git``, ``archive``, or ``missing`` for something that is not there.
    """

    id: str
    kind: str
    path: str
    revision: str
    name: str


def named_repositories(given: Sequence[str]) -> tuple[Repository, ...]:
    """The repositories that arguments name, each once, sorted by identity; a text file lists more of them, one a line.

    Raises ``UsageError`` for a list that cannot be read, and where nothing is named.
    """
    found = {each.id: each for word in given for each in _named(word)}
    if not found:
        raise UsageError("no repositories to survey: the lists name none")
    return tuple(found[each] for each in sorted(found))


def _named(word: str) -> Iterator[Repository]:
    if os.path.isfile(word) and not word.endswith(ARCHIVES):
        top = os.path.dirname(word)
        yield from (_repository(os.path.join(top, line)) for line in _lines(word))
    else:
        yield _repository(word)


def _lines(file: str) -> Iterator[str]:
    try:
        data = read_named_file(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    if _BINARY.search(data[:1024]):
        raise UsageError(f"{file}: neither a list of repositories nor an archive ({', '.join(ARCHIVES)})")
    lines = (line.strip() for line in data.decode("utf-8-sig", "surrogateescape").splitlines())
    return (line for line in lines if line and not line.startswith("#"))


def _repository(word: str) -> Repository:
    place = os.path.abspath(word)
    if os.path.isfile(word):
        name, revision = _distribution(os.path.basename(place))
        return Repository(word, "archive", place, revision, name)
    if os.path.isdir(word):
        if all(os.path.exists(os.path.join(word, name)) for name in _BARE):
            return Repository(word, "git", place, "HEAD", _name(place))
        return Repository(word, "folder", place, "", _name(place))
    path, revision = _split_revision(word)
    if revision:
        return Repository(word, "git", os.path.abspath(path), revision, _name(os.path.abspath(path)))
    return Repository(word, "missing", place, "", _name(place))


def _split_revision(word: str) -> tuple[str, str]:
    """The path and the revision of ``path@rev``; a path and a revision may have other ``@``."""
    parts = word.split("@")
    splits = (("@".join(parts[:count]), "@".join(parts[count:])) for count in range(1, len(parts)))
    return next(((path, revision) for path, revision in splits if os.path.isdir(path) and revision), (word, ""))


def _name(place: str) -> str:
    """The last part of a path that says something, without the suffix ``.git``."""
    parts = [part for part in Path(place).parts if part.lower() not in _PLAIN_PARTS]
    return (parts[-1] if parts else place).removesuffix(".git")


def _distribution(file: str) -> tuple[str, str]:
    """The name and the version of an archive: of a wheel or an sdist those in its file's name."""
    try:
        if file.endswith(".whl"):
            name, version, *_ = parse_wheel_filename(file)
        else:
            name, version = parse_sdist_filename(file)
    except (InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
        return next((file.removesuffix(suffix) for suffix in ARCHIVES if file.endswith(suffix)), file), ""
    return str(name), str(version)


# Beside TOML files. ``PKG-INFO`` marks the top of an sdist.
MANIFESTS = ("requirements*.txt", "setup.cfg", "PKG-INFO", ".gitignore", *LOCKS)
# The analysis reads nothing that is longer, so it need not be unpacked. A TOML file may be a manifest, too.
_MAX_BYTES = {
    **dict.fromkeys(CONFIGURATIONS, MAX_CONFIGURATION),
    ".toml": MAX_MANIFEST,
    ".py": MAX_PROGRAM,
    ".ipynb": MAX_NOTEBOOK,
}
CHUNK = 1 << 20
DRIVE = lazy_pattern(r"[A-Za-z]:")


class UnpackLimits(NamedTuple):
    """Limits of one repository: bytes and files that are read of it, and bytes that come out of its compression at all."""

    read_bytes: int = 500_000_000
    files: int = 50_000
    entries: int = 1_000_000
    expanded_bytes: int = 8_000_000_000


class RefusedError(Exception):
    """A repository is not read; ``reason`` is a word for statistics, the text says more."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def is_read(path: str) -> bool:
    """Whether an analysis reads a file of this path, which has slashes."""
    folder, _, name = path.rpartition("/")
    if name.endswith(PROGRAMS + CONFIGURATIONS):
        return True
    own = any(fnmatch(name, pattern) for pattern in MANIFESTS)
    return own or (name.endswith(".txt") and folder.rpartition("/")[2] == "requirements")


def is_worth_reading(path: str, size: int, left_out: list[tuple[str, str]]) -> bool:
    """Whether the analysis reads a file of this size; one that is too long is told, unless it is a mere configuration."""
    most = _MAX_BYTES.get(os.path.splitext(path)[1], MAX_MANIFEST)
    if size > most != MAX_CONFIGURATION:
        left_out.append((path, f"has more than {most:,} bytes"))
    return size <= most


def skipped_links(path: str) -> list[tuple[str, str]]:
    """What is told of a link: nothing of one that would not be read."""
    return [(path, "a link, which is not followed")] if is_read(path) else []


def _safe_path(name: str) -> str:
    """The path of an archive's member, with slashes. Raises ``RefusedError`` for one that leaves the folder."""
    path = name.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or DRIVE.match(path) or ".." in parts or "\0" in name:
        raise RefusedError(
            "unsafe path", f"a member of the archive has the path {name[:200]!r}, which leaves the folder"
        )
    return "/".join(parts)


class Extraction:
    """The files that were copied so far into the folder ``into``, and what was left out."""

    def __init__(self, into: Path, limits: UnpackLimits) -> None:
        self.files = self.bytes = 0
        self.left_out: list[tuple[str, str]] = []
        # The first parts of the paths of all files, also of those that are not read.
        self.tops: set[str] = set()
        self._into, self._limits, self._entries = into, limits, 0

    def count_entry(self) -> None:
        """Count an entry of any kind. Raises ``RefusedError`` for too many."""
        self._entries += 1
        if self._entries > self._limits.entries:
            raise RefusedError("too many files", f"more than {self._limits.entries:,} entries")

    def member(self, name: str, is_folder: bool) -> str:
        """Count a member of an archive; its path, with slashes. Raises ``RefusedError`` for one that leaves the folder."""
        self.count_entry()
        path = _safe_path(name)
        if not is_folder:
            self.tops.add(path.partition("/")[0])
        return path

    def add_from(self, place: str, path: str) -> None:
        """Copy a file of a folder, or tell that it cannot be read."""
        try:
            source = open(place, "rb")  # noqa: SIM115  closed below
        except OSError as error:
            self.left_out.append((path, f"cannot be read: {error.strerror}"))
            return
        with source:
            self.add(path, source)

    def add(self, path: str, source: IO[bytes]) -> None:
        """Copy a file; ``path`` is safe. Raises ``RefusedError`` beyond the limits."""
        self.files += 1
        if self.files > self._limits.files:
            raise RefusedError("too many files", f"more than {self._limits.files:,} files to read")
        place = self._into.joinpath(*path.split("/"))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with open(place, "wb") as file:
                while piece := source.read(CHUNK):
                    self.bytes += len(piece)
                    if self.bytes > self._limits.read_bytes:
                        raise RefusedError("too large", f"more than {self._limits.read_bytes:,} bytes to read")
                    file.write(piece)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            self.left_out.append((path, "a file and a folder have this name"))
        except OSError as error:
            if error.errno is None or error.errno == errno.ENOSPC:  # of a codec, or of everything that follows
                raise
            self.left_out.append((path, f"cannot be copied: {error.strerror}"))
