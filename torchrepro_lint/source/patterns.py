"""Patterns: regular expressions that are compiled when they are first used, and globs (.gitignore lines and wildcards) as regular
expressions that match in time linear in the text, whatever the glob is.

Two hundred regular expressions stand in the modules of the program. Compiling all of them takes as long as a small project takes to be
read, and a run uses few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, AnyStr, NamedTuple

if TYPE_CHECKING:

    def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """A regular expression that is compiled at first use. An error in it shows then, so constants need a test."""

else:

    class lazy_pattern:  # noqa: N801  called as a function
        """A regular expression: it compiles itself at first use, and then has the methods of the compiled one."""

        def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            for each in _METHODS:
                setattr(self, each, getattr(compiled, each))
            return getattr(compiled, name)


_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")

# --- globs -----------------------------------------------------------------------------------------------------------

# git's character classes, as the inside of a regular expression's brackets.
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
# A member of a bracket expression: a character, perhaps with a backslash, a range, or a class.
_MEMBER = lazy_pattern(r"\[:(?P<name>[a-z]*):\]|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\\\]]))?", re.DOTALL)
# By this group name pathspec knows that a directory was matched, whose contents other patterns may still re-include.
_FOLDER = "(?P<ps_d>/)"


class GitignorePattern(NamedTuple):
    """A pattern of a .gitignore line: an expression for the start of a path, and whether it excludes or re-includes."""

    expression: str
    excludes: bool


def sequence_with_gaps(pieces: Sequence[str], gap: str, numbers: Iterator[int]) -> str:
    """An expression for pieces in sequence with gaps between them, where a gap matches any number of units, without backtracking.

    Each piece must match a fixed number of units. So its leftmost match leaves most room for the next pieces, and no other is
    tried: a lookahead makes the match atomic. ``numbers`` gives each lookahead's group its name.
    """
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + "".join(_atomic(f"{gap}?{piece}", next(numbers)) for piece in middle if piece) + gap + last


def wildcard_expression(text: str, gap: str, numbers: Iterator[int]) -> str:
    """An expression for a text in which each star is a gap."""
    return sequence_with_gaps([re.escape(piece) for piece in text.split("*")], gap, numbers)


def split_at_gaps(some: Iterable[str], gap: str) -> list[list[str]]:
    """Split a sequence at its gaps."""
    found: list[list[str]] = [[]]
    for each in some:
        if each == gap:
            found.append([])
        else:
            found[-1].append(each)
    return found


def parse_gitignore_line(line: str) -> GitignorePattern | None:
    """The pattern of a .gitignore line, ``None`` where it has none. Raises ``ValueError`` where it is malformed."""
    bare = line.rstrip()
    escapes = len(bare) - len(bare.rstrip("\\"))
    bare = line[: len(bare) + escapes % 2]  # an escaped space belongs to the pattern
    negated = bare.startswith("!")
    body = bare[negated:]
    if negated and not body:
        raise ValueError("nothing follows the exclamation mark")
    if (body.startswith("#") and not negated) or not body.strip("/"):
        return None
    return GitignorePattern(r"\A" + _path(body), not negated)


def _path(body: str) -> str:
    segments = body.split("/")
    folder = not segments[-1]
    if not segments[0]:
        del segments[0]
    elif len(segments) == 1 + folder:
        segments.insert(0, "**")
    if folder:
        del segments[-1]
    end = _FOLDER if folder else rf"(?:{_FOLDER}|\Z)"
    given = len(segments)
    while segments and segments[-1] == "**":
        del segments[-1]
    if not segments:
        segments = ["**", "*"]
    elif len(segments) < given and not folder:
        end = "/"
    numbers = count()
    *before, last = split_at_gaps(segments, "**")
    groups = ["".join(f"{_segment(each, numbers)}/" for each in group) for group in before]
    return sequence_with_gaps(
        [*groups, "/".join(_segment(each, numbers) for each in last) + end], "(?:[^/]+/)*", numbers
    )


def _segment(text: str, numbers: Iterator[int]) -> str:
    """The expression of one path segment."""
    if text and not text.strip("*"):
        return "[^/]+"
    return sequence_with_gaps(["".join(piece) for piece in split_at_gaps(_characters(text), "*")], "[^/]*", numbers)


def _characters(text: str) -> Iterator[str]:
    """An expression for each character; stars stay as they are."""
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "*":
            yield letter
        elif letter == "?":
            yield "[^/]"
        elif letter == "[":
            found, at = _bracket(text, at)
            yield found
        else:
            if letter == "\\":
                letter = text[at : at + 1]
                at += 1
            if not letter:
                raise ValueError("nothing follows the backslash at its end")
            yield re.escape(letter)


def _bracket(text: str, at: int) -> tuple[str, int]:
    """The expression of a bracket expression that starts at an offset, and the offset after it."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    members: list[str] = []
    while not members or text[at : at + 1] != "]":
        member = _MEMBER.match(text, at)
        if member is None:
            raise ValueError("a bracket is not closed")
        members.append(_member(member))
        at = member.end()
    return f"(?!/)[{'^' * negated}{''.join(members)}]", at + 1


def _member(member: re.Match[str]) -> str:
    name, low, high = member["name"], member["low"], member["high"]
    if name is not None:
        if name not in _CLASSES:
            raise ValueError(f"there is no class {member[0]}")
        return _CLASSES[name]
    if high is None:
        return re.escape(low[-1])
    if low[-1] > high[-1]:
        raise ValueError(f"the range {member[0]} is empty")
    return f"{re.escape(low[-1])}-{re.escape(high[-1])}"


def _atomic(expression: str, number: int) -> str:
    return f"(?=(?P<held_{number}>{expression}))(?P=held_{number})"
