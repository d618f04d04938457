"""Repositories of a survey: what the arguments and the lists of a command line name, without reading any of it.

A repository is a folder, a git repository at a revision (``path@rev``), or an archive.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import read_named_file
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
