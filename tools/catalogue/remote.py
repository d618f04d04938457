"""Remote zip access: read one member of an archive on a server by range requests, without fetching the rest."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, cast
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT = 60  # seconds
_BLOCK = 1 << 16  # bytes


def read_member(url: str, name: str) -> bytes:
    """The member ``name`` of the archive at ``url``, by range requests; the whole archive is fetched if the server has none.

    Raises ``KeyError`` without such a member, ``OSError`` when the server can't be read.
    """
    with zipfile.ZipFile(_open(url)) as archive:
        return archive.read(name)


def _open(url: str) -> io.BufferedIOBase:
    with urlopen(Request(url, headers={"Range": "bytes=0-0"}), timeout=_TIMEOUT) as answer:  # noqa: S310
        total = re.fullmatch(r"bytes 0-0/(\d+)", answer.headers.get("Content-Range", ""))
        if answer.status != 206 or total is None:
            return io.BytesIO(answer.read())
    raw = RangeFile(lambda start, end: _fetch(url, start, end), int(total[1]))
    return io.BufferedReader(raw, _BLOCK)


def _fetch(url: str, start: int, end: int) -> bytes:
    request = Request(url, headers={"Range": f"bytes={start}-{end - 1}"})  # noqa: S310
    with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
        return cast("bytes", answer.read())


class RangeFile(io.RawIOBase):
    """A seekable file of ``size`` bytes that reads its parts by ``fetch(start, end)``."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        data = self._fetch(self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
