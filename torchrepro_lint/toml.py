"""TOML of the standard library, or its forerunner below Python 3.11, without what takes either of them for ever."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from torchrepro_lint.problem import NO_ROOM

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


def load(data: bytes) -> dict[str, Any]:
    """The tables of a file. Raises ``ValueError``, as ``loads`` does, also for what is not UTF-8."""
    return loads(data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))


def loads(text: str) -> dict[str, Any]:
    """The tables of a text; raises ``ValueError``, also for what is nested too deeply, and for too long numbers and keys."""
    if _has_long_key(text):
        raise ValueError(f"a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except MemoryError:
        raise ValueError(NO_ROOM) from None
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
