"""Errors as values (a usage error, an internal fault), and escaping of untrusted text for one line of output.

Names and messages from other people's files may hold control characters, direction marks or commands that a terminal or GitHub's log
would obey; ``escaped`` and its variants make them harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")

# What is said of work that the memory does not suffice for.
OUT_OF_MEMORY = "it takes more memory than there is"


class UsageError(Exception):
    """A usage or configuration error; its text is one line for the user, the exit status is 2."""


class Fault(NamedTuple):
    """A piece of work that broke: one line on what and where, and whether it is what it works on that is too deep."""

    message: str
    recursion: bool = False


def guarded(work: Callable[[], _T]) -> _T | Fault:
    """The result, or the fault in its stead: one file or one rule must not take the run down."""
    try:
        return work()
    except MemoryError:
        return Fault(OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001  the only place that catches everything
        return Fault(
            f"{type(error).__name__}: {' '.join(str(error).split())}{_place(error)}", isinstance(error, RecursionError)
        )


def _place(error: Exception) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"


# What no reader sees or wants in a line, as the inside of a character class: control characters, ends of lines, what turns
# the direction of the letters after it, and marks that do not show. Joiners are a part of words and of emoji.
CONTROL_CHARACTERS = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
# Bytes of a path that are no letters stand for themselves; some of them are control characters.
_HIDDEN = re.compile(f"[{CONTROL_CHARACTERS}\udc80-\udc9f]")
_HALVES = re.compile("[\ud800-\udfff]")
# Both are commands for a runner of GitHub's: the one anywhere in a line, the other at its start.
_MARK = "##["
_COMMAND = re.compile(r"\s*::")


def escaped(text: str) -> str:
    r"""A text without what a terminal or GitHub's log would obey or a line would end at: ``\x1b`` for an escape.

    Other text is as it was. Bytes of a path that are no letters stay, so that they come out as they are, where they control
    nothing.
    """
    return without_workflow_commands(escape_control_characters(text))


def escape_control_characters(text: str) -> str:
    """The same, but for what only GitHub's log would obey."""
    return text if text.isprintable() else _HIDDEN.sub(lambda found: escape_sequence(found[0]), text)


def escaped_message(text: str) -> str:
    """The same of a text that may quote strings of the program, which are no paths."""
    return escaped(escape_surrogates(text))


def escape_surrogates(text: str) -> str:
    """A text without half of a surrogate pair, shown by its code: a string of a program may hold what is no byte of a path."""
    return text if text.isprintable() else _HALVES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped_path(path: str) -> str:
    """The same of a path that may begin a line; it is still one of that file."""
    return f"./{escaped(path)}" if _COMMAND.match(path) else escaped(path)


def escaped_line(text: str) -> str:
    """The same of a text that begins a line."""
    return escaped(text.replace(":", "\\x3a", 1) if _COMMAND.match(text) else text)


def without_workflow_commands(text: str) -> str:
    """A text in which GitHub's log finds no command but at its start."""
    return text.replace(_MARK, "#\\x23[")


def escape_sequence(letter: str) -> str:
    """A letter as Python's strings may have it; of a byte of a path that is a control character, that one."""
    number = ord(letter)
    if 0xDC80 <= number < 0xDCA0:
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
