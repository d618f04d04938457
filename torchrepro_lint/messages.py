"""Find torch's complaints about determinism in what a run printed: messages, warnings, whole tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from torchrepro_lint.source.globs import starred
from torchrepro_lint.tables import error_names

_PHRASE = re.compile(r"(?<!\s)\s+does\s+not\s+have\s+a\s+deterministic\s+implementation")
_TYPE = re.compile(r"^.*\b\w*(?:Error|Warning):\s*")
_FRAME = re.compile(r'^[ \t]*File "(?P<file>[^"]+)", line (?P<row>\d+)', re.MULTILINE)

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
ATTENTION = "attention under warn_only"
# Complaints without the name of a kernel, and what stands for them here.
_SENTENCES = (
    (re.compile(r"\buses CuBLAS\b|\bCUBLAS_WORKSPACE_CONFIG\b"), CUBLAS),
    (re.compile(r"\battention\s+defaults\s+to\s+a\s+non-?deterministic", re.IGNORECASE), ATTENTION),
)


class Frame(NamedTuple):
    """A line of a traceback: the file as it was printed, and the row from 1."""

    file: str
    row: int


class Message(NamedTuple):
    """What a text complains of, each name once, in order; ``unknown`` are names that the catalogue lacks."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]
    frames: tuple[Frame, ...]


def read(text: str) -> Message:
    """The complaints in a text. A text without torch's wording may be a bare name."""
    found = [*_complaints(text)] or [_bare(text.strip())]
    known = dict.fromkeys(name for name, is_known in found if is_known)
    unknown = dict.fromkeys(name for name, is_known in found if not is_known)
    frames = (Frame(match["file"], int(match["row"])) for match in _FRAME.finditer(text))
    return Message(tuple(known), tuple(unknown), tuple(dict.fromkeys(frames)))


def known_name(text: str) -> str | None:
    """The catalogue's name that a text ends with, the longest; names that torch makes at run time are told by pattern."""
    return next((name for name, pattern in _patterns() if pattern.search(text)), None)


def _complaints(text: str) -> Iterator[tuple[str, bool]]:
    for phrase in _PHRASE.finditer(text):
        before = text[: phrase.start()]
        name = known_name(before)
        yield (_last_words(before), False) if name is None else (name, True)
    for pattern, name in _SENTENCES:
        if pattern.search(text):
            yield name, True


def _last_words(before: str) -> str:
    """What stands for a name: the rest of the line after the error's type."""
    return _TYPE.sub("", before.splitlines()[-1]).strip() if before.strip() else ""


def _bare(text: str) -> tuple[str, bool]:
    if text == ATTENTION:
        return text, True
    line = text.splitlines()[-1].strip() if text else ""
    name = known_name(line)
    return (name, True) if name is not None and _is_all(name, line) else (line, False)


def _is_all(name: str, line: str) -> bool:
    """Whether a line is the name, with the error's type before it at most."""
    return any(one == name and re.fullmatch(r"(\w*(Error|Warning):\s*)?" + body, line) for one, body in _bodies())


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rf"(?<![\w.]){body}$")) for name, body in _bodies())


@lru_cache(maxsize=1)
def _bodies() -> tuple[tuple[str, str], ...]:
    """Each name with an expression for it; the names that stand for many come last."""
    names = sorted(
        {error.name for error in error_names()}, key=lambda name: ("{" in name or "<" in name, -len(name), name)
    )
    return tuple((name, _expression(name)) for name in names)


def _expression(name: str) -> str:
    """``upsample_{}_backward`` has a word in the braces; a name in angle brackets tells how it begins."""
    itself = r"\s+".join(map(re.escape, name.split()))
    if "{}" in name:
        return f"(?:{itself}|{re.escape(name).replace(re.escape('{}'), '[a-z0-9]+')})"
    if name.startswith("<"):
        first, second, *_ = name[1:].replace(",", " ").split()
        begun = starred(f"{first}*{second}*", r"\w*", count())
        return f"(?:{itself}|{begun})"
    return itself
