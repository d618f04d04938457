"""Terminal output: the standard streams, colour and a progress bar.

Paths may hold any bytes, and a stream may be closed or full. Colour and progress are for people only.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import fill, wrap
from typing import TextIO

from torchrepro_lint.source.errors import UsageError, escaped_line
from torchrepro_lint.source.patterns import lazy_pattern

_WIDTH = 30
_PATIENCE = 1.0
_REDRAW = 0.1
_LABEL = lazy_pattern(r" *\w+ {2,}")
# So many files take a while to be checked.
_MANY = 100


def open_closed_streams() -> None:
    """Connect closed standard streams to the null device; else the next file opened would become one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  to the end of the process


def out(text: str) -> None:
    """Write to standard output; a closed pipe is no error. Raises ``UsageError``."""
    out_bytes(_encode(text, sys.stdout.encoding or "utf-8"))


def out_wrapped(text: str) -> None:
    """Write to standard output; on a terminal, lines are wrapped at words below the start of their text."""
    if is_terminal():
        text = "".join(f"{line}\n" for each in text.splitlines() for line in _wrapped(each, width()))
    out(text)


def _wrapped(line: str, columns: int) -> list[str]:
    """A line in several: the further ones are indented like its text, which a label and two spaces may precede."""
    label = _LABEL.match(line)
    indent = label.end() if label and label.end() < columns // 2 else len(line) - len(line.lstrip()) + 2
    found = wrap(line, columns, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return found if len(line) > columns else [line]


def out_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are. Raises ``UsageError``."""
    try:
        _write(sys.stdout, data)
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror}") from None


def note(text: str) -> None:
    """Write one line to standard error; on a terminal it is wrapped at words."""
    line = escaped_line(text)
    if is_terminal(sys.stderr):
        line = fill(line, width(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    err(f"{line}\n")


def errors(found: Iterable[str]) -> int:
    """Write errors to standard error; the exit status that they ask for."""
    status = 0
    for error in found:
        note(f"torchrepro-lint: {error}")
        status = 2
    return status


def err(text: str) -> None:
    """Write to standard error; failures are ignored, since they cannot be reported."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, _encode(text, sys.stderr.encoding or "utf-8"))


def deliver(text: str, file: Path | None) -> None:
    """Write a document to a file, or without one to standard output. Raises ``UsageError``."""
    if file is None:
        out(text)
    else:
        save(text, file)


def save(text: str, file: Path) -> None:
    """Write a file atomically, and make its folder. Raises ``UsageError``."""
    from torchrepro_lint.engine.writing import (
        write_atomically as write_file,  # imports the settings, which --help does not need
    )

    try:
        write_file(_encode(text, "utf-8"), file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


def uses_colour(asked: str = "auto", stream: TextIO | None = None) -> bool:
    """Whether a stream (standard output by default) is coloured.

    First of: what is ``asked`` for, "always" or "never"; NO_COLOR, which forbids it; FORCE_COLOR, which forces it; else a
    terminal is coloured, unless TERM says that it is dumb.
    """
    if asked != "auto":
        return asked == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a stream (standard output by default) is a terminal."""
    return (stream or sys.stdout).isatty()


def width() -> int:
    """The columns of the terminal."""
    from shutil import get_terminal_size  # it loads the libraries of archives

    return get_terminal_size().columns


def progress(
    total: int, done_so_far: str = "files read", when_done: str = "Checking {} files ...", quiet: bool = False
) -> Callable[[], None]:
    """A function to call after each of ``total`` files that is read: on a terminal it draws a bar once a second has passed.

    When all are read, a line says that they are being checked, until something else is written or ``clear_status`` is called.
    For another piece of work the texts are others; ``when_done`` may be empty. ``quiet`` draws nothing.
    """
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return lambda: None
    started = drawn = time.monotonic()
    done = 0

    def advance() -> None:
        nonlocal done, drawn
        done += 1
        now = time.monotonic()
        if done == total and (now - started >= _PATIENCE or total >= _MANY):
            _show_status(when_done.format(f"{total}"))
        elif done < total and now - started >= _PATIENCE and now - drawn >= _REDRAW:
            drawn = now
            full = _WIDTH * done // total
            _show_status(f"[{'#' * full}{'.' * (_WIDTH - full)}] {done}/{total} {done_so_far}")

    return advance


class _Status:
    """Whether the last line of the terminal is a status, which is erased before anything else is written."""

    shown = False


def _show_status(text: str) -> None:
    clear_status()
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
    _Status.shown = True


def clear_status() -> None:
    """Erase the status line, if there is one."""
    if _Status.shown:
        _Status.shown = False
        with contextlib.suppress(OSError):
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _write(stream: TextIO, data: bytes) -> None:
    clear_status()
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
    """Encode text for a stream. Paths that are not in the file system's encoding keep their bytes."""
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace")
