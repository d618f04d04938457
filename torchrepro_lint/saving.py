"""Writing a file whole or not at all: into a file beside it, which then takes its place."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from functools import cache
from pathlib import Path

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
