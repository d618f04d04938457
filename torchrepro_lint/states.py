"""Whether a file has changed: by what the file system says of it, and by its bytes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

# A file that was written this shortly before it was looked at may be written again without looking any different.
_RACY = 2_000_000_000


class State(NamedTuple):
    """What the file system says of a file, by which a change is noticed without reading it; times in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: int


def state(path: str | Path) -> State:
    """The state of a file; raises ``OSError``, for what is no regular file too: a pipe or a device may never end."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        is_folder = stat.S_ISDIR(found.st_mode)
        raise OSError(errno.EINVAL, os.strerror(errno.EISDIR) if is_folder else "Not a regular file", str(path))
    return State(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def unchanged(seen: State, known: Sequence[int], made: int) -> bool:
    """Whether a file is certainly as it was when ``known`` was seen, which was before the time ``made``."""
    return tuple(known) == seen and made - max(seen.modified, seen.changed) >= _RACY


def digest(data: bytes, notebook: bool = False) -> str:
    """What tells contents apart; the same bytes say something else in a notebook."""
    return blake2b(data, digest_size=16, person=b"notebook" if notebook else b"").hexdigest()
