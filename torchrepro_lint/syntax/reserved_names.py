"""Reserved words used as names: ``async``, a keyword since Python 3.7, as PyTorch 0.3 had it in ``x.cuda(async=True)``.

Such a text is parsed with another word of the same length in these places, so that all offsets stay. The word that was written
is put back into the parser's tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchrepro_lint.syntax.tokens import HIDDEN

ASYNC = "async"
# As a keyword it stands before one of three others.
_RESERVED = re.compile(rf"(?P<hidden>{HIDDEN})|\basync\b(?!(?:\s|\\|#[^\r\n]*[\r\n])+(?:def|for|with)\b)")
# Words of the same length; a text that has all of them is not read.
_STAND_INS = tuple(f"a_{number:03}" for number in range(20))


def reserved_names(text: str) -> tuple[int, ...]:
    """The offsets of the word ``async`` where it is used as a name."""
    return tuple(_reserved_names(text)) if ASYNC in text else ()


def _reserved_names(text: str) -> Iterator[int]:
    for match in _RESERVED.finditer(text):
        if match["hidden"] is None:
            yield match.start()


def with_stand_in(text: str) -> tuple[str, str] | None:
    """A text of equal length with a stand-in for each ``async`` that is used as a name, and the stand-in; None where there is none."""
    offsets = reserved_names(text)
    word = next((each for each in _STAND_INS if each not in text), None)
    if not offsets or word is None:
        return None
    parts: list[str] = []
    at = 0
    for offset in offsets:
        parts += (text[at:offset], word)
        at = offset + len(ASYNC)
    return "".join((*parts, text[at:])), word
