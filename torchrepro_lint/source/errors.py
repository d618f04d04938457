"""Errors as values (a usage error, an internal fault), and escaping of untrusted text for one line of output.

Names and messages from other people's files may hold control characters, direction marks or commands that a terminal or GitHub's log
would obey; ``escaped`` and its variants make them harmless.
"""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.source.patterns import lazy_pattern

# The message for work that needs more memory than there is.
OUT_OF_MEMORY = "it takes more memory than there is"


class UsageError(Exception):
    """A usage or configuration error; its text is one line for the user, the exit status is 2."""


class Fault(NamedTuple):
    """An internal fault: one line on what failed and where, and whether its input was nested too deeply."""

    message: str
    recursion: bool = False


# Characters to escape, as the inside of a character class: control characters, line ends, direction overrides, and invisible
# marks. Joiners are not among them, since words and emoji contain them.
CONTROL_CHARACTERS = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
# Undecodable bytes of a path are surrogates; some of them are control characters.
_HIDDEN = lazy_pattern(f"[{CONTROL_CHARACTERS}\udc80-\udc9f]")
_HALVES = lazy_pattern("[\ud800-\udfff]")
# Both are workflow commands for a GitHub runner: one anywhere in a line, the other at its start.
_MARK = "##["
_COMMAND = lazy_pattern(r"\s*::")


def escaped(text: str) -> str:
    r"""Escape in a text what a terminal or GitHub's log would obey, and line ends: ``\x1b`` for an escape character.

    Other text is unchanged. Undecodable bytes of a path stay, so that they are written as they are, unless they are control
    characters.
    """
    return without_workflow_commands(escape_control_characters(text))


def escape_control_characters(text: str) -> str:
    """Escape a text for a terminal; workflow commands of GitHub's log stay."""
    return text if text.isprintable() else _HIDDEN.sub(lambda found: escape_sequence(found[0]), text)


def escaped_message(text: str) -> str:
    """Escape a message that may quote strings of the program."""
    return escaped(escape_surrogates(text))


def escape_surrogates(text: str) -> str:
    """Escape lone surrogates by their code: a string of a program may contain them."""
    return text if text.isprintable() else _HALVES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped_path(path: str) -> str:
    """Escape a path that may begin a line; the result still names that file."""
    return f"./{escaped(path)}" if _COMMAND.match(path) else escaped(path)


def escaped_line(text: str) -> str:
    """Escape a text that begins a line."""
    return escaped(text.replace(":", "\\x3a", 1) if _COMMAND.match(text) else text)


def without_workflow_commands(text: str) -> str:
    """Escape workflow commands of GitHub's log, except at the start of the text."""
    return text.replace(_MARK, "#\\x23[")


def escape_sequence(letter: str) -> str:
    """The escape sequence of a character as in a Python string; of an undecodable byte that is a control character, of that byte."""
    number = ord(letter)
    if 0xDC80 <= number < 0xDCA0:
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
