"""Atomic file writes: a file is replaced in one step, and files that one fix changed together are written all or none.

New bytes go into a temporary file beside the target, which then takes its place. Signals that end a run wait meanwhile.
``FileAliases`` are the names of one file by links, of which one is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

from torchrepro_lint.config.discovery import GivenFile
from torchrepro_lint.source.decoding import Source, decode, encode
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Fix
from torchrepro_lint.syntax.nodes import Record

# The attribute in which Linux keeps a file's access control list.
_ACL_ATTRIBUTE = "system.posix_acl_access"
# Machine, process and a random number: from the name one can tell whether a process is still writing the file.
_TEMPORARY_NAME = lazy_pattern(r"\.torchrepro-lint-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")


def write_atomically(data: bytes, file: Path) -> None:
    """Write a file atomically, creating its folder; if this raises ``OSError``, the old content stays.

    A link's target is written, and a file keeps its mode. Something else than a regular file, such as ``/dev/stdout``, is
    written to directly. A file without write permission is left alone, and so are those that ``refusal_to_replace`` names.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # Test the given path: /dev/stdout may lead to a pipe, which has no path.
    if file.exists() and not file.is_file():
        file.write_bytes(data)
        return
    place = os.path.realpath(file)
    if os.path.exists(place):
        with open(place, "r+b") as there:
            if refused := refusal_to_replace(os.fstat(there.fileno())):
                raise OSError(errno.EPERM, refused, str(file))
    remove_stale_temporaries(os.path.dirname(place))
    temporary = stage(data, place)
    try:
        os.replace(temporary, place)
    except BaseException:
        remove_temporary(temporary)
        raise


def refusal_to_replace(state: os.stat_result) -> str:
    """Why a file in this state must not be replaced by another; empty if it may be."""
    if not stat.S_ISREG(state.st_mode):
        return "it is not a regular file"
    if state.st_nlink > 1:
        return "it has other hard links, which would keep the old content"
    if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
        return "it belongs to another user"
    return ""


def stage(data: bytes, place: str) -> str:
    """Write bytes to a temporary file beside ``place``, with the mode, group and attributes of that file; returns its path.

    The bytes are synced to disk when this returns. If it raises ``OSError``, no file is left.
    """
    there = os.stat(place) if os.path.exists(place) else None
    temporary = os.path.join(
        os.path.dirname(place), f".torchrepro-lint-{_machine_id()}-{os.getpid()}-{os.urandom(4).hex()}"
    )
    handle = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600 if there else 0o666
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if there is not None:
            _copy_metadata(temporary, place, there)
    except BaseException:
        remove_temporary(temporary)
        raise
    return temporary


def remove_temporary(temporary: str) -> None:
    """Remove a file that ``stage`` made, if it is still there."""
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def remove_stale_temporaries(folder: str) -> None:
    """Remove temporary files of killed processes in a folder; those that a process may still be writing stay."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        found = _TEMPORARY_NAME.fullmatch(name)
        if found and found[1] == _machine_id() and not _is_running(int(found[2])):
            remove_temporary(os.path.join(folder, name))


def _copy_metadata(temporary: str, place: str, there: os.stat_result) -> None:
    """Copy group, extended attributes and mode of a file to its replacement; a group that we may not set is skipped."""
    if hasattr(os, "chown") and os.stat(temporary).st_gid != there.st_gid:
        with contextlib.suppress(OSError):
            os.chown(temporary, -1, there.st_gid)
    if hasattr(os, "listxattr"):
        for name in os.listxattr(place):
            # The access control list must be copied: without it the mode, which holds the list's mask, opens the file to others.
            with contextlib.nullcontext() if name == _ACL_ATTRIBUTE else contextlib.suppress(OSError):
                os.setxattr(temporary, name, os.getxattr(place, name))
    os.chmod(temporary, stat.S_IMODE(there.st_mode))


@cache
def _machine_id() -> str:
    import platform
    from hashlib import blake2b

    return blake2b(platform.node().encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _is_running(process: int) -> bool:
    """Whether there is such a process. On Windows it is taken to run, since ``os.kill`` would end it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


_ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM during a short block that must not be interrupted."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class FileChange(Record, frozen=True):
    """A file that fixes changed: its source before and after.

    ``partners`` are the files (absolute) that a fix changed together with it, ``settled`` the codes of the findings that
    the change fixes.
    """

    given: GivenFile
    before: Source
    after: Source
    partners: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()

    def encoded(self, data: bytes) -> bytes:
        """The new bytes of the file, which were ``data``."""
        return encode(self.after, data)


class WriteResult(Record, frozen=True):
    """The result of a write: errors, and the changes that were not made."""

    errors: tuple[str, ...]
    left: tuple[FileChange, ...]


class _Staged(Record, frozen=True):
    """A change whose new bytes lie in a temporary file, and the identity of the target when it was read."""

    change: FileChange
    temporary: str
    seen: tuple[int, ...]


class _Refusal(Exception):  # noqa: N818  it says why a file is left alone, and is no error of ours
    """Why a file is not written."""


def write(change: FileChange) -> str | None:
    """Replace one file on disk; see ``write_all``. Returns an error or None."""
    return next(iter(write_all((change,)).errors), None)


def write_all(changes: Iterable[FileChange], beside: Iterable[str] = ()) -> WriteResult:
    """Replace files on disk, keeping their modes; a link's target is written.

    A file that has changed since it was read, or whose encoding does not round-trip, is left alone, and with it its partners.
    So is one that has other hard links, or belongs to another user. However a run ends, each file is the old one or the new
    one. Temporary files of killed runs are removed, also ``beside`` the files with these paths.
    """
    given = list(changes)
    for folder in sorted(
        {os.path.dirname(os.path.realpath(path)) for path in (*(each.given.path for each in given), *beside)}
    ):
        remove_stale_temporaries(folder)
    staged: dict[str, _Staged] = {}
    try:
        errors = _stage_all(given, staged)
        _unstage_partners(staged, errors)
        with signals_blocked():
            for path in list(staged):
                if error := _put_in_place(staged.pop(path)):
                    errors[path] = error
    finally:
        for each in staged.values():
            remove_temporary(each.temporary)
    left = tuple(each for each in given if each.given.path in errors)
    return WriteResult(tuple(errors[path] for path in sorted(errors)), left)


def _stage_all(changes: list[FileChange], staged: dict[str, _Staged]) -> dict[str, str]:
    """Stage each change that can be written; the errors by path."""
    errors: dict[str, str] = {}
    known: dict[str, FileChange] = {}
    for change in changes:
        other = known.setdefault(os.path.realpath(change.given.path), change)
        if other is not change and other.after == change.after:
            continue
        try:
            if other is not change:
                raise _Refusal(f"it is the same file as {other.given.display}, which was fixed; run again")
            staged[change.given.path] = _stage(change)
        except _Refusal as refusal:
            errors[change.given.path] = f"{change.given.display}: not fixed: {refusal}"
        except OSError as error:
            errors[change.given.path] = f"{change.given.display}: cannot be written: {error.strerror or error}"
    return errors


def _unstage_partners(staged: dict[str, _Staged], errors: dict[str, str]) -> None:
    """Unstage the partners of files that are not written."""
    while left := [path for path, one in staged.items() if not errors.keys().isdisjoint(one.change.partners)]:
        for path in left:
            one = staged.pop(path)
            remove_temporary(one.temporary)
            cause = "the fix also changes another file, which cannot be written"
            errors[path] = f"{one.change.given.display}: not fixed: {cause}"


def _stage(change: FileChange) -> _Staged:
    path = os.path.realpath(change.given.path)
    _require_replaceable(os.stat(path))  # before it is opened, too: opening a pipe may block for ever
    with open(path, "r+b") as file:
        state = os.fstat(file.fileno())
        _require_replaceable(state)
        data = file.read()
    found = decode(data, change.before.notebook is not None)
    if isinstance(found, Source):
        found = found.with_program(change.before.program)  # that of a notebook leaves out cells that do not parse
    if found != change.before or not _round_trips(change.before, data):
        raise _Refusal("it changed in the meantime, or its encoding cannot be preserved")
    try:
        encoded = change.encoded(data)
    except UnicodeEncodeError:
        raise _Refusal(f"the encoding {change.before.encoding} lacks a character of the fix") from None
    return _Staged(change, stage(encoded, path), _identity(state))


def _require_replaceable(state: os.stat_result) -> None:
    if refused := refusal_to_replace(state):
        raise _Refusal(refused)


def _round_trips(source: Source, data: bytes) -> bool:
    try:
        return encode(source, data) == data
    except UnicodeEncodeError:
        return False


def _put_in_place(staged: _Staged) -> str:
    """Replace the file, unless it has changed since it was read; an error, or an empty text."""
    given = staged.change.given
    path = os.path.realpath(given.path)
    try:
        if _identity(os.stat(path)) != staged.seen:
            remove_temporary(staged.temporary)
            return f"{given.display}: not fixed: it changed in the meantime"
        os.replace(staged.temporary, path)
    except OSError as error:
        remove_temporary(staged.temporary)
        return f"{given.display}: cannot be written: {error.strerror}"
    return ""


def _identity(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


_Value = TypeVar("_Value")


class FileAliases:
    """The aliases of each file by links: the paths, from the root, under which a project has it."""

    def __init__(self, given: Iterable[tuple[str, GivenFile]]) -> None:
        by_place: dict[str, list[tuple[bool, str]]] = {}
        for path, one in given:
            place = os.path.realpath(one.path)
            by_place.setdefault(place, []).append((one.path != place, path))
        self._canonical: dict[str, str] = {}
        self._others: dict[str, tuple[str, ...]] = {}
        for names in by_place.values():
            if len(names) > 1:
                first, *others = (path for _, path in sorted(names))
                self._others[first] = tuple(others)
                self._canonical.update(dict.fromkeys(others, first))

    def canonical(self, path: str) -> str:
        """The canonical path of a file, by which it is written: its real one if that is linted, else the first in order."""
        return self._canonical.get(path, path)

    def canonical_fix(self, fix: Fix) -> Fix:
        """A fix with the canonical paths of the other files that it changes."""
        return fix._replace(elsewhere=tuple((self.canonical(path), edits) for path, edits in fix.elsewhere))

    def for_all_names(self, by_path: Mapping[str, _Value]) -> dict[str, _Value]:
        """A mapping by canonical path, extended to all aliases."""
        found = dict(by_path)
        for path, value in by_path.items():
            found.update(dict.fromkeys(self._others.get(path, ()), value))
        return found
