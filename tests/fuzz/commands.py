"""The command line in this process, over a folder made for it, as the console script runs it."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.settings import settings_table
from torchrepro_lint.interfaces.cli.app import main


class Ran(NamedTuple):
    """What a command said, and its status."""

    status: int
    out: str
    err: str


@contextmanager
def folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    """The current folder, for as long as it is needed, with files in it and its cache beside it."""
    was, cached = os.getcwd(), os.environ.get("TORCHREPRO_LINT_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as top:
        place = Path(top, "project")
        place.mkdir()
        for name, data in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
        os.environ["TORCHREPRO_LINT_CACHE_DIR"] = str(Path(top, "cache"))
        os.chdir(place)
        try:
            yield place
        finally:
            os.chdir(was)
            if cached is None:
                del os.environ["TORCHREPRO_LINT_CACHE_DIR"]
            else:
                os.environ["TORCHREPRO_LINT_CACHE_DIR"] = cached


def run(*arguments: str) -> Ran:
    """Run a command; what it does not catch itself comes through."""
    settings_table.cache_clear()
    streams = sys.stdout, sys.stderr
    written = [io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape", newline="") for _ in streams]
    sys.stdout, sys.stderr = written
    status: object = None
    try:
        main(list(arguments))
    except SystemExit as ended:
        status = ended.code
    finally:
        sys.stdout, sys.stderr = streams
    out, err = (_text(each) for each in written)
    return Ran(status if isinstance(status, int) else -1, out, err)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
