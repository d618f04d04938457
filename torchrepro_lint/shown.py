"""Names and messages on a line of their own: what comes from files that somebody else named may hold anything."""

from __future__ import annotations

import re

# Control characters, ends of lines, and what turns the direction of the letters after it.
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    r"""A text without what a terminal would obey or a line would end at: ``\x1b`` for an escape. Other text is as it was.

    Bytes of a path that are no letters stay, so that they come out as they are.
    """
    return text if text.isprintable() else _HIDDEN.sub(lambda found: _code(ord(found[0])), text)


def _code(number: int) -> str:
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
