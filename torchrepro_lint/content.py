"""The bytes of a file of a checkout, whatever that holds: never more than such a file may have, and never waited for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from torchrepro_lint.source import is_notebook
from torchrepro_lint.states import state
from torchrepro_lint.text import LARGEST

# A character takes four bytes at most, and there may be a mark before the first. A notebook holds pictures, too.
_MOST_PROGRAM = 4 * LARGEST + 3
_MOST_NOTEBOOK = 200_000_000
# What tools write about a project: lock files of thousands of packages have half of that.
_MOST_PAPER = 10_000_000
# What people write: of patterns each becomes a regular expression, of requirements each is parsed.
_MOST_SETTINGS = 1_000_000
_MOST_LIST = 2_000_000
_MOST_PATTERNS = 200_000
# What this tool wrote itself, and whoever runs it names: the findings of a project, a report.
_MOST_NAMED = 100_000_000
# Some files are longer than they seem to be, such as those of /proc.
_LEAST_READ = 65_536
# A few regular files would be waited for, such as the log of the kernel.
_OPENED = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class TooLarge(OSError):  # noqa: N818  the file is not at fault
    """A file has more bytes than are read of such a file."""

    def __init__(self, path: str | Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"more than {most:,} bytes", str(path))


def program(path: str | Path) -> bytes:
    """The bytes of a file that may be linted, a program or a notebook. Raises ``OSError``, see ``content``."""
    return content(path, _MOST_NOTEBOOK if is_notebook(str(path)) else _MOST_PROGRAM)


def patterns(path: str | Path) -> bytes:
    """The bytes of what lists the files that git ignores. Raises ``OSError``, see ``content``."""
    return content(path, _MOST_PATTERNS)


def paper(path: str | Path) -> bytes:
    """The bytes of what tools say about a project: locks. Raises ``OSError``, see ``content``."""
    return content(path, _MOST_PAPER)


def listing(path: str | Path) -> bytes:
    """The bytes of a list of requirements. Raises ``OSError``, see ``content``."""
    return content(path, _MOST_LIST)


def settings(path: str | Path) -> bytes:
    """The bytes of settings. Raises ``OSError``, see ``named``."""
    return named(path, _MOST_SETTINGS)


def named(path: str | Path, most: int = _MOST_NAMED) -> bytes:
    """The bytes of what whoever runs the tool names: it may be a pipe, and is waited for then. Raises ``OSError``."""
    if os.path.isfile(path):
        return content(path, most)
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(path, most)
    return data


def content(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file. Raises ``OSError`` for what is none, for one that would be waited for, and ``TooLarge`` for
    one that has more than ``most``, which is told before it is read.
    """
    size = state(path).size
    if size > most:
        raise TooLarge(path, most)
    handle = os.open(path, _OPENED)
    try:
        pieces, left = [], most + 1  # it may grow meanwhile
        while left and (piece := os.read(handle, min(left, max(size + 1, _LEAST_READ)))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(handle)
    if not left:
        raise TooLarge(path, most)
    return b"".join(pieces)
