"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path


def save(data: bytes, file: Path) -> None:
    """Put bytes into a file, and make the folder that it is to lie in; raises ``OSError``, and then leaves what was there.

    A link's target is written, and a file keeps its mode. What is no regular file, as ``/dev/stdout``, is written to.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    place = Path(os.path.realpath(file))
    if place.exists() and not place.is_file():
        place.write_bytes(data)
        return
    temporary = place.with_name(f".{secrets.token_hex(8)}.torchrepro-lint")
    try:
        with temporary.open("xb") as written:
            written.write(data)
        if place.exists():
            os.chmod(temporary, stat.S_IMODE(place.stat().st_mode))
        os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
