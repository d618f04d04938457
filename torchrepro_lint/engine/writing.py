"""Writing a file whole or not at all: into a file beside it, which then takes its place.

Signals that end a run: they wait while files are put in place, and end the process as a shell expects.

Write changed files: each in one step, and those that one fix changed together all or none.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from torchrepro_lint.config.discovery import Given
from torchrepro_lint.source.decoding import Source, decode, encode

# The attribute in which Linux keeps a file's access control list.
_ACCESS = "system.posix_acl_access"
# The machine, the process, and a number: whoever finds such a file can tell whether someone is still writing it.
_NAME = re.compile(r"\.torchrepro-lint-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")


def save(data: bytes, file: Path) -> None:
    """Put bytes into a file, and make the folder that it is to lie in; raises ``OSError``, and then leaves what was there.

    A link's target is written, and a file keeps its mode. What is no regular file, as ``/dev/stdout``, is written to. A file
    that may not be written is left alone, and so are those that ``refusal`` names.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # Asked of the path as it is given: what /dev/stdout leads to may be a pipe, which has no path.
    if file.exists() and not file.is_file():
        file.write_bytes(data)
        return
    place = os.path.realpath(file)
    if os.path.exists(place):
        with open(place, "r+b") as there:
            if refused := refusal(os.fstat(there.fileno())):
                raise OSError(errno.EPERM, refused, str(file))
    sweep(os.path.dirname(place))
    temporary = stage(data, place)
    try:
        os.replace(temporary, place)
    except BaseException:
        forget(temporary)
        raise


def refusal(state: os.stat_result) -> str:
    """Why a file in this state is not replaced by another; empty where nothing speaks against it."""
    if not stat.S_ISREG(state.st_mode):
        return "it is no regular file"
    if state.st_nlink > 1:
        return "it has other hard links, which would keep what it was"
    if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
        return "it belongs to another user"
    return ""


def stage(data: bytes, place: str) -> str:
    """Put bytes into a new file beside ``place``, with the mode, the group and the attributes of what is there; its path.

    They are on the disk when this returns. Raises ``OSError``, and then leaves nothing.
    """
    there = os.stat(place) if os.path.exists(place) else None
    temporary = os.path.join(
        os.path.dirname(place), f".torchrepro-lint-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"
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
            _adopt(temporary, place, there)
    except BaseException:
        forget(temporary)
        raise
    return temporary


def forget(temporary: str) -> None:
    """Remove what ``stage`` made, if it is still there."""
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def sweep(folder: str) -> None:
    """Remove what killed processes have left in a folder; what one on this machine may still be writing stays."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        found = _NAME.fullmatch(name)
        if found and found[1] == _machine() and not _runs(int(found[2])):
            forget(os.path.join(folder, name))


def _adopt(temporary: str, place: str, there: os.stat_result) -> None:
    """Give a new file the group, the extended attributes and the mode of the one whose place it takes; a group that is not
    ours stays behind.
    """
    if hasattr(os, "chown") and os.stat(temporary).st_gid != there.st_gid:
        with contextlib.suppress(OSError):
            os.chown(temporary, -1, there.st_gid)
    if hasattr(os, "listxattr"):
        for name in os.listxattr(place):
            # Without its list of who may do what a file would be open to others: its mode has the list's mask.
            with contextlib.nullcontext() if name == _ACCESS else contextlib.suppress(OSError):
                os.setxattr(temporary, name, os.getxattr(place, name))
    os.chmod(temporary, stat.S_IMODE(there.st_mode))


@cache
def _machine() -> str:
    import platform
    from hashlib import blake2b

    return blake2b(platform.node().encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _runs(process: int) -> bool:
    """Whether there is such a process. On Windows asking would end it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


_ENDING = frozenset({signal.SIGINT, signal.SIGTERM})


def end_on_sigterm() -> None:
    """Turn SIGTERM into an exit with status 143 that runs what cleans up; where it is ignored it stays ignored."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for what is short and belongs together."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


class Change(NamedTuple):
    """A file that fixes changed: its source as it was read, and as it is now.

    ``partners`` are the files (absolute) that a fix changed together with it, ``settled`` the codes of the findings that
    the change settles.
    """

    given: Given
    before: Source
    after: Source
    partners: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()

    def encoded(self, data: bytes) -> bytes:
        """The new bytes of the file, which were ``data``."""
        return encode(self.after, data)


class Written(NamedTuple):
    """What became of changes: errors, and the changes that were not made."""

    errors: tuple[str, ...]
    left: tuple[Change, ...]


class _Staged(NamedTuple):
    """A change whose new bytes lie beside the file, and how that was when it was read."""

    change: Change
    temporary: str
    seen: tuple[int, ...]


class _Refusal(Exception):  # noqa: N818  it says why a file is left alone, and is no error of ours
    """Why a file is not written."""


def write(change: Change) -> str | None:
    """Replace one file on disk; see ``write_all``. Returns an error or None."""
    return next(iter(write_all((change,)).errors), None)


def write_all(changes: Iterable[Change], beside: Iterable[str] = ()) -> Written:
    """Replace files on disk, keeping their modes; a link's target is written.

    A file that is no longer what was read, or whose encoding does not give back the same bytes, is left alone, and with it
    those that a fix changed together with it. So is one that has other hard links, or belongs to someone else. However a
    run ends, each file is the old one or the new one; what a killed run has left ``beside`` these and other files goes.
    """
    given = list(changes)
    for folder in sorted(
        {os.path.dirname(os.path.realpath(path)) for path in (*(each.given.path for each in given), *beside)}
    ):
        sweep(folder)
    staged: dict[str, _Staged] = {}
    try:
        errors = _stage_all(given, staged)
        _leave_partners(staged, errors)
        with uninterrupted():
            for path in list(staged):
                if error := _put_in_place(staged.pop(path)):
                    errors[path] = error
    finally:
        for each in staged.values():
            forget(each.temporary)
    left = tuple(each for each in given if each.given.path in errors)
    return Written(tuple(errors[path] for path in sorted(errors)), left)


def _stage_all(changes: list[Change], staged: dict[str, _Staged]) -> dict[str, str]:
    """Put new bytes beside each file that can be written; the errors by path."""
    errors: dict[str, str] = {}
    known: dict[str, Change] = {}
    for change in changes:
        other = known.setdefault(os.path.realpath(change.given.path), change)
        if other is not change and other.after == change.after:
            continue
        try:
            if other is not change:
                raise _Refusal(f"it is {other.given.display} by another name, which is fixed; run again")
            staged[change.given.path] = _stage(change)
        except _Refusal as refusal:
            errors[change.given.path] = f"{change.given.display}: not fixed: {refusal}"
        except OSError as error:
            errors[change.given.path] = f"{change.given.display}: cannot be written: {error.strerror or error}"
    return errors


def _leave_partners(staged: dict[str, _Staged], errors: dict[str, str]) -> None:
    """Take back what a fix changes together with a file that is not written."""
    while left := [path for path, one in staged.items() if not errors.keys().isdisjoint(one.change.partners)]:
        for path in left:
            one = staged.pop(path)
            forget(one.temporary)
            cause = "a fix changes it together with a file that is left alone"
            errors[path] = f"{one.change.given.display}: not fixed: {cause}"


def _stage(change: Change) -> _Staged:
    path = os.path.realpath(change.given.path)
    _require_ours(os.stat(path))  # before it is opened, too: opening a pipe may never end
    with open(path, "r+b") as file:
        state = os.fstat(file.fileno())
        _require_ours(state)
        data = file.read()
    if decode(data, change.before.notebook is not None) != change.before or not _comes_back(change.before, data):
        raise _Refusal("it changed meanwhile, or its encoding cannot be written back")
    try:
        encoded = change.encoded(data)
    except UnicodeEncodeError:
        raise _Refusal(f"the fix cannot be written in {change.before.encoding}") from None
    return _Staged(change, stage(encoded, path), _seen(state))


def _require_ours(state: os.stat_result) -> None:
    if refused := refusal(state):
        raise _Refusal(refused)


def _comes_back(source: Source, data: bytes) -> bool:
    try:
        return encode(source, data) == data
    except UnicodeEncodeError:
        return False


def _put_in_place(staged: _Staged) -> str:
    """Replace the file, unless it is not the one any more that was read; an error."""
    given = staged.change.given
    path = os.path.realpath(given.path)
    try:
        if _seen(os.stat(path)) != staged.seen:
            forget(staged.temporary)
            return f"{given.display}: not fixed: it changed meanwhile"
        os.replace(staged.temporary, path)
    except OSError as error:
        forget(staged.temporary)
        return f"{given.display}: cannot be written: {error.strerror}"
    return ""


def _seen(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
