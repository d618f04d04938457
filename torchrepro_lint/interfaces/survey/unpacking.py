"""Unpacking of untrusted repositories: the files that an analysis reads, copied into an empty folder, within limits.

Nothing of a repository is run: links are never made or followed, and git reads a revision by ``git archive`` with every filter
of the repository switched off. What is left out is told, and a repository that tries to leave its folder, or grows beyond the
limits, is refused as a whole.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import stat
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any, NamedTuple

from torchrepro_lint.config.settings import Settings
from torchrepro_lint.interfaces.survey.repositories import (
    CHUNK,
    DRIVE,
    MANIFESTS,
    Extraction,
    RefusedError,
    Repository,
    UnpackLimits,
    is_read,
    is_worth_reading,
    skipped_links,
)
from torchrepro_lint.source.files import CONFIGURATIONS, PROGRAMS

# Folders of environments and tools beside the code of a folder, which the settings exclude by default: they may be large.
_EXCLUDED = frozenset({*Settings().exclude, ".git"})
# A text has no such ratio; below so many bytes any ratio is harmless.
_MAX_RATIO = 200
_FREE_BYTES = 64_000_000
_SYMBOLIC_LINK, _SUBMODULE = "120000", "160000"


class Unpacked(NamedTuple):
    """What was unpacked: the number of files and bytes, the revision that was read, and what was left out, each with its reason."""

    files: int
    bytes: int
    revision: str
    left_out: tuple[tuple[str, str], ...]


def content_digest(repository: Repository, limits: UnpackLimits) -> str:
    """The digest of a repository's content: of an archive its bytes, of git the tree of the revision, of a folder the files
    that are read. Raises ``RefusedError`` and ``OSError``.
    """
    if repository.kind == "git":
        return _Git(repository).tree()
    total = hashlib.blake2b(digest_size=16)
    if repository.kind == "archive":
        with open(repository.path, "rb") as file:
            while piece := file.read(CHUNK):
                total.update(piece)
        return total.hexdigest()
    for path, size in _folder(repository.path, limits, []):
        total.update(f"{path}\0{size}\0".encode("utf-8", "surrogateescape"))
        with suppress(OSError), open(os.path.join(repository.path, path), "rb") as file:
            while piece := file.read(CHUNK):
                total.update(piece)
    return total.hexdigest()


def unpack(repository: Repository, into: Path, limits: UnpackLimits) -> Unpacked:
    """Unpack what is read of a repository into an existing empty folder. Raises ``RefusedError`` and ``OSError``."""
    taken = Extraction(into, limits)
    revision = repository.revision
    try:
        if repository.kind == "folder":
            for path, _ in _folder(repository.path, limits, taken.left_out):
                taken.add_from(os.path.join(repository.path, path), path)
        elif repository.kind == "git":
            git = _Git(repository)
            revision = git.commit()
            patterns = git.patterns(taken)
            if patterns:
                with git.archive(patterns) as stream:
                    _take_tar(stream, taken)
        elif repository.path.endswith((".zip", ".whl")):
            _take_zip(repository.path, taken)
        else:
            with _decompressed(repository.path, limits) as stream:
                _take_tar(stream, taken, stream)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise RefusedError("damaged archive", f"the archive cannot be read: {error}") from None
    except (RuntimeError, OSError) as error:  # a zip file with a password; a stream that is no gzip
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RefusedError("damaged archive", f"the archive cannot be read: {error}") from None
    if repository.kind == "archive" and not repository.path.endswith(".whl") and len(taken.tops) == 1:
        _unwrap(into)
    return Unpacked(taken.files, taken.bytes, revision, tuple(sorted(taken.left_out)))


def _unwrap(into: Path) -> None:
    """Take the one folder that holds everything, as in an sdist, for the top; but not a package, which is no top."""
    only = next(into.iterdir(), into)
    if only == into or not only.is_dir() or (only / "__init__.py").exists():
        return
    moved = into.parent / f"{into.name}.unwrapped"
    only.rename(moved)
    into.rmdir()
    moved.rename(into)


def _folder(top: str, limits: UnpackLimits, left_out: list[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """The files of a folder that are read, sorted in each folder, with their sizes; links are left out."""
    waiting, entries = [""], 0
    while waiting:
        folder = waiting.pop()
        try:
            found = sorted(os.scandir(os.path.join(top, folder)), key=lambda entry: entry.name)
        except OSError as error:
            left_out.append((folder or ".", f"cannot be read: {error.strerror}"))
            continue
        entries += len(found)
        if entries > limits.entries:
            raise RefusedError("too many files", f"more than {limits.entries:,} entries")
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                left_out += skipped_links(path)
            elif entry.is_dir():
                if entry.name not in _EXCLUDED:
                    waiting.append(path)
            elif entry.is_file() and is_read(path) and is_worth_reading(path, size := entry.stat().st_size, left_out):
                yield path, size


def _special_file(path: str) -> RefusedError:
    return RefusedError("unsafe file", f"{path[:200]!r} of the archive is a device or a pipe")


def _take_tar(stream: Any, taken: Extraction, bounds: _BoundedReader | None = None) -> None:
    """The files of a tar stream. In an archive of unknown origin, which has bounds, a link out of the folder is a reason to
    refuse it; git's own archive has the links that people committed, which are left out.
    """
    declared = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            path = taken.member(member.name, member.isdir())
            declared += member.size
            if bounds:
                bounds.require(declared)
            if member.issym() or member.islnk():
                if bounds is None:  # git has told of it
                    continue
                if _leaves(path, member.linkname, symbolic=member.issym()):
                    raise RefusedError("unsafe link", f"the link {path[:200]!r} of the archive leaves the folder")
                taken.left_out += skipped_links(path)
            elif member.isfile():
                if is_read(path) and is_worth_reading(path, member.size, taken.left_out):
                    source = archive.extractfile(member)
                    assert source is not None
                    taken.add(path, source)
            elif not member.isdir():
                raise _special_file(path)


def _leaves(path: str, target: str, symbolic: bool) -> bool:
    """Whether the target of a link is outside the folder: that of a symbolic one is relative to the link's own folder."""
    target = target.replace("\\", "/")
    if target.startswith("/") or DRIVE.match(target):
        return True
    joined = os.path.normpath(os.path.join(os.path.dirname(path), target) if symbolic else target).replace("\\", "/")
    return joined == ".." or joined.startswith("../")


def _take_zip(path: str, taken: Extraction) -> None:
    size = os.path.getsize(path)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = taken.member(member.filename, member.is_dir())
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                taken.left_out += skipped_links(name)
            elif mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _special_file(name)
            elif not member.is_dir() and is_read(name) and is_worth_reading(name, member.file_size, taken.left_out):
                if member.file_size > _FREE_BYTES and member.file_size > _MAX_RATIO * member.compress_size:
                    raise RefusedError("bomb", f"{name[:200]!r} of the archive expands more than {_MAX_RATIO} times")
                with archive.open(member) as source:
                    taken.add(name, source)
                if taken.bytes > _FREE_BYTES and taken.bytes > _MAX_RATIO * size:
                    raise RefusedError("bomb", f"the archive expands more than {_MAX_RATIO} times")


class _BoundedReader:
    """A stream that refuses to give more bytes than an honest archive of its size has."""

    def __init__(self, stream: IO[bytes], compressed: int, limits: UnpackLimits) -> None:
        self._stream, self._given = stream, 0
        self._most = limits.expanded_bytes
        self._most_by_ratio = max(_FREE_BYTES, _MAX_RATIO * compressed)

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises ``RefusedError`` for too many of them."""
        data = self._stream.read(size)
        self._given += len(data)
        self.require(self._given)
        return data

    def require(self, size: int) -> None:
        """Raise ``RefusedError`` if no honest archive has so many bytes."""
        if size > self._most_by_ratio:
            raise RefusedError("bomb", f"the archive expands more than {_MAX_RATIO} times")
        if size > self._most:
            raise RefusedError("too large", f"the archive expands to more than {self._most:,} bytes")


@contextmanager
def _decompressed(path: str, limits: UnpackLimits) -> Iterator[_BoundedReader]:
    openers: dict[str, Callable[..., Any]] = {
        ".gz": gzip.open,
        ".tgz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    opener = openers.get(os.path.splitext(path)[1], open)
    with opener(path, "rb") as stream:
        yield _BoundedReader(stream, os.path.getsize(path), limits)


class _Git:
    """A git repository at a revision, read without its filters, hooks, replacements and remotes."""

    # Whatever the repository itself has configured. A pack is mapped in small windows, to fit into the limit of memory.
    _OPTIONS = (
        "core.fsmonitor=false", "core.attributesFile=", "core.hooksPath=", "core.packedGitWindowSize=32m",
        "core.packedGitLimit=256m", "core.bigFileThreshold=16m", "protocol.allow=never", "safe.directory=*",
    )  # fmt: skip

    def __init__(self, repository: Repository) -> None:
        self._path, self._revision = repository.path, repository.revision
        self._filters: list[str] = []
        names = self._run("config", "--local", "--includes", "--name-only", "--get-regexp", r"^filter\.", ok=(0, 1))
        for key in sorted({key.rpartition(".")[0] for key in names.splitlines()}):
            self._filters += [f"{key}.smudge=", f"{key}.clean=", f"{key}.process=", f"{key}.required=false"]

    def commit(self) -> str:
        """The commit of the revision."""
        return self._run("rev-parse", "--verify", "--end-of-options", f"{self._revision}^{{commit}}").strip()

    def tree(self) -> str:
        """The identity of the tree of the revision."""
        return self._run("rev-parse", "--verify", "--end-of-options", f"{self._revision}^{{tree}}").strip()

    def patterns(self, taken: Extraction) -> list[str]:
        """The pathspecs of all files that are read, none of which matches nothing; what is left out is told to ``taken``."""
        blobs: list[tuple[str, str]] = []
        listing = self._run("ls-tree", "-r", "-z", "--full-tree", self.commit())
        for line in listing.split("\0")[:-1]:
            about, _, path = line.partition("\t")
            mode, _, name = about.split()
            taken.count_entry()
            if mode == _SUBMODULE:
                taken.left_out.append((path, "a submodule, which is another repository"))
            elif mode == _SYMBOLIC_LINK:
                taken.left_out += skipped_links(path)
            elif is_read(path):
                blobs.append((name, path))
        missing = self._missing([name for name, _ in blobs])
        absent = [path for name, path in blobs if name in missing]
        taken.left_out += [(path, "not in this git repository, which is incomplete") for path in absent]
        found = {_pathspec(path) for name, path in blobs if name not in missing}
        return [*sorted(found), *(f":(top,exclude,literal){path}" for path in absent)] if found else []

    def _missing(self, names: list[str]) -> frozenset[str]:
        """Which objects a repository lacks: a partial clone has not all of them."""
        told = self._run("cat-file", "--batch-check=%(objectname)", given="\n".join(names)) if names else ""
        return frozenset(line.split()[0] for line in told.splitlines() if line.endswith(" missing"))

    @contextmanager
    def archive(self, patterns: list[str]) -> Iterator[IO[bytes]]:
        """The tar stream of the files that match any of some pathspecs."""
        command = self._command("archive", "--format=tar", self.commit(), "--", *patterns)
        with subprocess.Popen(  # noqa: S603  no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_git_environment(self._path),
        ) as git:
            assert git.stdout is not None
            assert git.stderr is not None
            try:
                yield git.stdout
                git.stdout.read()
            except tarfile.TarError:
                git.kill()
                raise RefusedError("git", _first_line(git.stderr.read())) from None
            except BaseException:
                git.kill()
                raise
            if git.wait():
                raise RefusedError("git", _first_line(git.stderr.read()))

    def _run(self, *words: str, ok: tuple[int, ...] = (0,), given: str = "") -> str:
        try:
            ran = subprocess.run(  # noqa: S603  no shell
                self._command(*words),
                input=given.encode(),
                capture_output=True,
                env=_git_environment(self._path),
                check=False,
            )
        except FileNotFoundError:
            raise RefusedError("git", "git is not installed") from None
        if ran.returncode not in ok:
            raise RefusedError("git", _first_line(ran.stderr))
        return ran.stdout.decode("utf-8", "surrogateescape")

    def _command(self, *words: str) -> list[str]:
        options = [word for option in (*self._OPTIONS, *self._filters) for word in ("-c", option)]
        return ["git", "--no-replace-objects", *options, "-C", self._path, *words]


def _pathspec(path: str) -> str:
    """A pathspec that matches a file to read, and others of its kind; a star of one without ``glob`` matches slashes, too."""
    name = path.rpartition("/")[2]
    suffix = next((each for each in PROGRAMS + CONFIGURATIONS if name.endswith(each)), "")
    if suffix:
        return f":(top)*{suffix}"
    pattern = next((each for each in MANIFESTS if fnmatch(name, each)), "requirements/*.txt")
    return f":(top,glob)**/{pattern}"


def _git_environment(path: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {
        **kept,
        "GIT_CEILING_DIRECTORIES": os.path.dirname(path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }


def _first_line(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else "git failed without a word"
