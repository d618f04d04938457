"""Names that Python reads otherwise than they are written: it takes all of them in their NFKC form."""

from __future__ import annotations

import re
import unicodedata

# A name, and what may be: of the marks that stand in names, none is a letter to regular expressions.
_RUN = re.compile(r"[^\W\d](?:\w|[^\x00-\x7f\s\w])*")
# Comments and strings, documentation first.
_NO_NAMES = re.compile(
    r"#[^\r\n]*|(?:\b([A-Za-z]{1,2}))?(?:\"{3}(?s:[^\\]|\\.)*?\"{3}|'{3}(?s:[^\\]|\\.)*?'{3}"
    r"|\"(?:\\(?s:.)|[^\"\\\r\n])*\"|'(?:\\(?s:.)|[^'\\\r\n])*')"
)


def renamed(text: str) -> bool:
    """Whether a word of a text may be called otherwise in its tree; words of comments and plain strings do not count."""
    return _holds_renamed(text) and _holds_renamed(_NO_NAMES.sub(_code, text))


def _code(token: re.Match[str]) -> str:
    """What of a comment or string may be code: an f-string."""
    return token[0] if token[1] and not set(token[1].lower()) <= set("rub") else " "


def _holds_renamed(text: str) -> bool:
    words = (word for run in set(_RUN.findall(text)) if not run.isascii() for word in _names(run))
    return any(unicodedata.normalize("NFKC", word) != word for word in words)


def _names(run: str) -> list[str]:
    return "".join(each if f"a{each}".isidentifier() else " " for each in run).split()
