"""Writing to the standard streams: paths of any bytes, streams that are closed or full, colour and progress for people only.

What an exception says of the end of a process. Nothing is imported here: Ctrl-C may come while modules are.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from torchrepro_lint.engine.writing import save as write_file
from torchrepro_lint.source.errors import UsageError, shown_line

_WIDTH = 30
_PATIENCE = 1.0
_REDRAW = 0.1


def open_closed() -> None:
    """Give the standard streams that are closed to nobody: what is opened next would else be one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  to the end of the process


def out(text: str) -> None:
    """Write to standard output; a reader that has gone away is no error. Raises ``UsageError``."""
    pass_on(_encode(text, sys.stdout.encoding or "utf-8"))


def pass_on(data: bytes) -> None:
    """Write bytes to standard output as they are. Raises ``UsageError``."""
    try:
        _write(sys.stdout, data)
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror}") from None


def note(text: str) -> None:
    """Write one line for people to standard error."""
    aside(f"{shown_line(text)}\n")


def aside(text: str) -> None:
    """Write to standard error what is fit for it. Where that is not possible there is nobody to tell."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, _encode(text, sys.stderr.encoding or "utf-8"))


def save(text: str, file: Path) -> None:
    """Write a file whole or not at all, and the folder that it is to lie in. Raises ``UsageError``."""
    try:
        write_file(_encode(text, "utf-8"), file)
    except OSError as error:
        raise UsageError(f"--output-file: {file} cannot be written: {error.strerror}") from None


def coloured() -> bool:
    """Whether standard output may be written to in colour: NO_COLOR forbids it, FORCE_COLOR asks for it, as in Python."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def progress(total: int) -> Callable[[], None]:
    """A function to call after each of ``total`` files: on a terminal it draws a bar once a second has passed."""
    if not sys.stderr.isatty():
        return lambda: None
    started = drawn = time.monotonic()
    done = 0

    def advance() -> None:
        nonlocal done, drawn
        done += 1
        now = time.monotonic()
        if now - started < _PATIENCE:
            return
        if done == total:
            sys.stderr.write("\r\033[K")
        elif now - drawn >= _REDRAW:
            drawn = now
            full = _WIDTH * done // total
            sys.stderr.write(f"\r[{'#' * full}{'.' * (_WIDTH - full)}] {done}/{total} files")
        sys.stderr.flush()

    return advance


def _write(stream: TextIO, data: bytes) -> None:
    try:
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
    except OSError as error:
        # Python flushes once more at exit, and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def _encode(text: str, encoding: str) -> bytes:
    """Bytes for a stream. A path that is not in the file system's encoding comes out as the bytes that it is."""
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace")


_INTERRUPTED = 130


def status_of(error: BaseException | None) -> int | str | None:
    """The exit status that an exception asks for, or one that it was made of; None where no end was asked for.

    Python 3.11 and older make a ``RuntimeError`` of Ctrl-C that comes while a class is made.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return _INTERRUPTED
        if isinstance(error, SystemExit):
            return error.code
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
