"""A smaller input that fails in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable


def shrunk(data: bytes, fails: Callable[[bytes], bool], seconds: float = 20.0) -> bytes:
    """Take lines away, then bytes, in ever smaller pieces, as long as it still fails and there is time."""
    until = time.monotonic() + seconds
    for pattern in (rb"[^\n]*\n|[^\n]+", rb"(?s)."):
        pieces = re.findall(pattern, data)
        size = len(pieces) // 2
        while size and time.monotonic() < until:
            at = 0
            while at < len(pieces) and time.monotonic() < until:
                fewer = pieces[:at] + pieces[at + size :]
                if fails(b"".join(fewer)):
                    pieces = fewer
                else:
                    at += size
            size //= 2
        data = b"".join(pieces)
    return data
