"""Simulated editing of a text: lines are typed letter by letter, names changed, syntax broken, and all of it undone."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.source.text import Span

_LINES = (
    "noise = torch.randn(3, device='cuda')\n",
    "loader = torch.utils.data.DataLoader(data, shuffle=True, num_workers=2)\n",
    "names = list(set(labels))\n",
    "torch.backends.cudnn.benchmark = True\n",
    "for path in os.listdir(root):\n    print(path)\n",
)
_WORD = re.compile(r"\b[a-z_]{4,}\b")
_LINE = re.compile(r"^.*\n", re.MULTILINE)
# An empty line between two statements.
_START = re.compile(r"(?<=\n)(?=\n\S)")
_PAIRS = {"(": ")", "[": "]", "'": "'"}


class Keystroke(NamedTuple):
    """One change of a text, and the text after it; ``kind`` is what is being done."""

    kind: str
    span: Span
    new: str
    text: str


def keystrokes(text: str, count: int, seed: int) -> Iterator[Keystroke]:
    """So many changes, one after the other; each thing that is done is undone. The same for the same seed."""
    chance = random.Random(seed)
    made = 0
    while made < count:
        for one in chance.choice((_type_a_line, _rename, _break, _delete_a_line))(text, chance):
            yield one
            made += 1
            if made == count:
                return


def _type_a_line(text: str, chance: random.Random) -> Iterator[Keystroke]:
    at = chance.choice([match.start() for match in _START.finditer(text)] or [0])
    line = chance.choice(_LINES)
    before = ""
    for number in range(1, len(line) + 1):
        after = line[:number] + _closing(line[:number])
        if after != before:  # a bracket is typed over one that is there
            kept = next(
                (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before)
            )
            changed = text[:at] + before + text[at:]
            yield _made("typing", changed, Span(at + kept, at + len(before)), after[kept:])
        before = after
    yield _made("undo", text[:at] + line + text[at:], Span(at, at + len(line)), "")


def _closing(line: str) -> str:
    """The brackets and quotes that an editor puts behind the cursor."""
    closing = ""
    for letter in line:
        if closing.startswith(letter):
            closing = closing[1:]
        elif letter in _PAIRS:
            closing = _PAIRS[letter] + closing
    return closing


def _rename(text: str, chance: random.Random) -> Iterator[Keystroke]:
    span = Span(*chance.choice([match.span() for match in _WORD.finditer(text)] or [(0, 0)]))
    yield from _and_back("rename", text, span, f"{text[span.start : span.end]}_2")


def _break(text: str, chance: random.Random) -> Iterator[Keystroke]:
    at = chance.choice([match.end() - 1 for match in _LINE.finditer(text)] or [0])
    yield from _and_back("syntax error", text, Span(at, at), chance.choice(("(", " =", "'")))


def _delete_a_line(text: str, chance: random.Random) -> Iterator[Keystroke]:
    span = Span(*chance.choice([match.span() for match in _LINE.finditer(text)] or [(0, 0)]))
    yield from _and_back("delete", text, span, "")


def _and_back(kind: str, text: str, span: Span, new: str) -> Iterator[Keystroke]:
    one = _made(kind, text, span, new)
    yield one
    yield _made("undo", one.text, Span(span.start, span.start + len(new)), text[span.start : span.end])


def _made(kind: str, text: str, span: Span, new: str) -> Keystroke:
    return Keystroke(kind, span, new, text[: span.start] + new + text[span.end :])
