"""Bounded reading of files, change detection by signature and digest, and TOML.

A checkout may hold anything: no file is read beyond the limit for its kind, and no pipe or device is waited for. A file has changed if
the size, times or inode that the file system reports differ, or else its bytes do. TOML is the standard library's, or its
forerunner's below Python 3.11, without the inputs on which either takes forever. ``rules/`` of a checkout is ``_rules`` in an installed wheel.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.source.decoding import is_notebook
from torchrepro_lint.source.errors import OUT_OF_MEMORY
from torchrepro_lint.source.text import MAX_ANALYSED_CHARACTERS

# A file that was written this shortly before it was looked at may be written again without looking any different.
_RACY = 2_000_000_000


class FileSignature(NamedTuple):
    """What the file system says of a file, by which a change is noticed without reading it; times in nanoseconds."""

    size: int
    modified: int
    changed: int
    inode: int


def file_signature(path: str | Path) -> FileSignature:
    """The state of a file; raises ``OSError``, for what is no regular file too: a pipe or a device may never end."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        is_folder = stat.S_ISDIR(found.st_mode)
        raise OSError(errno.EINVAL, os.strerror(errno.EISDIR) if is_folder else "Not a regular file", str(path))
    return FileSignature(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def unchanged(seen: FileSignature, known: Sequence[int], made: int) -> bool:
    """Whether a file is certainly as it was when ``known`` was seen, which was before the time ``made``."""
    return tuple(known) == seen and made - max(seen.modified, seen.changed) >= _RACY


def digest(data: bytes, notebook: bool = False) -> str:
    """What tells contents apart; the same bytes say something else in a notebook."""
    return blake2b(data, digest_size=16, person=b"notebook" if notebook else b"").hexdigest()


# A character takes four bytes at most, and there may be a mark before the first. A notebook holds pictures, too.
_MOST_PROGRAM = 4 * MAX_ANALYSED_CHARACTERS + 3
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


def read_program(path: str | Path) -> bytes:
    """The bytes of a file that may be linted, a program or a notebook. Raises ``OSError``, see ``content``."""
    return read_bounded(path, _MOST_NOTEBOOK if is_notebook(str(path)) else _MOST_PROGRAM)


def read_gitignore(path: str | Path) -> bytes:
    """The bytes of what lists the files that git ignores. Raises ``OSError``, see ``content``."""
    return read_bounded(path, _MOST_PATTERNS)


def read_manifest(path: str | Path) -> bytes:
    """The bytes of what tools say about a project: locks. Raises ``OSError``, see ``content``."""
    return read_bounded(path, _MOST_PAPER)


def read_requirements(path: str | Path) -> bytes:
    """The bytes of a list of requirements. Raises ``OSError``, see ``content``."""
    return read_bounded(path, _MOST_LIST)


def read_settings(path: str | Path) -> bytes:
    """The bytes of settings. Raises ``OSError``, see ``named``."""
    return read_named_file(path, _MOST_SETTINGS)


def read_named_file(path: str | Path, most: int = _MOST_NAMED) -> bytes:
    """The bytes of what whoever runs the tool names: it may be a pipe, and is waited for then. Raises ``OSError``."""
    if os.path.isfile(path):
        return read_bounded(path, most)
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(path, most)
    return data


def read_bounded(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file. Raises ``OSError`` for what is none, for one that would be waited for, and ``TooLarge`` for
    one that has more than ``most``, which is told before it is read.
    """
    size = file_signature(path).size
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


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


# What a key of so many parts takes grows with the square of their number. People write five.
_MOST_PARTS = 100
# What begins a string or a comment, joins the parts of a key, or stands between keys.
_MARK = re.compile(r"\"{3}|'{3}|[\"'#.\n=\[\]{},]")
# Where what begins there ends, and what is no end of it. Quotes before the closing ones belong to a string of several lines.
_ENDS = {
    '"""': re.compile(r"\\(?s:.)|\"{3,5}"),
    "'''": re.compile(r"'{3,5}"),
    '"': re.compile(r"\\.|[\"\n]"),
    "'": re.compile(r"['\n]"),
    "#": re.compile(r"\n"),
}


def load_toml(data: bytes) -> dict[str, Any]:
    """The tables of a file. Raises ``ValueError``, as ``loads`` does, also for what is not UTF-8."""
    return parse_toml(data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text; raises ``ValueError``, also for what is nested too deeply, and for too long numbers and keys."""
    if _has_long_key(text):
        raise ValueError(f"a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except MemoryError:
        raise ValueError(OUT_OF_MEMORY) from None
    except ValueError as error:  # Python gives advice with numbers of too many digits
        raise ValueError(str(error).partition("; use sys.")[0]) from None


def _has_long_key(text: str) -> bool:
    """Whether so many dots in a row stand outside strings and comments: in values there is one at most."""
    if all(line.count(".") < _MOST_PARTS for line in text.split("\n")):
        return False
    at = dots = 0
    while mark := _MARK.search(text, at):
        at = mark.end()
        if mark[0] in _ENDS:
            at = _end(text, at, mark[0])
        if mark[0] == ".":
            dots += 1
        elif mark[0] not in ("'", '"'):
            dots = 0
        if dots >= _MOST_PARTS:
            return True
    return False


def _end(text: str, at: int, opening: str) -> int:
    """The end of a string or comment that begins so; that of the text where it has none."""
    found = (each for each in _ENDS[opening].finditer(text, at) if not each[0].startswith("\\"))
    return next((each.end() for each in found), len(text))


if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable


def rules_dir() -> Traversable:
    """The directory of the rule pages, with ``catalogue/`` inside."""
    package = files("torchrepro_lint")
    shipped = package / "_rules"
    return shipped if shipped.is_dir() else package / ".." / "rules"


def read_table(name: str) -> dict[str, Any]:
    """A TOML file of the catalogue, ``effective.toml``."""
    table: dict[str, Any] = parse_toml((rules_dir() / "catalogue" / name).read_text(encoding="utf-8"))
    return table


def documented_versions() -> tuple[str, ...]:
    """The minor releases that the catalogue has a file of, oldest first: ``1.7``, ``1.8``, …"""
    names = (entry.name for entry in (rules_dir() / "catalogue").iterdir())
    minors = (name[len("torch-") : -len(".toml")] for name in names if name.startswith("torch-"))
    return tuple(sorted(minors, key=release))


def release(version: str) -> tuple[int, int]:
    """The minor release of a version, for comparison: (2, 13) of ``2.13.0+cpu``."""
    major, minor = version.partition("+")[0].split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()))
