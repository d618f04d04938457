"""The kinds of inputs, and the input of a number: the same for ever, given the seed and the corpus."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import books, damage, grafts, shapes
from .corpus import Corpus

Maker = Callable[[Random, Corpus], bytes]


class Input(NamedTuple):
    """A file to try: what kind it is of, its name, and its bytes."""

    kind: str
    name: str
    data: bytes


# How often a kind comes: what takes long to read comes seldom.
KINDS: dict[str, tuple[int, Maker]] = {
    "bytes flipped": (12, damage.flipped),
    "truncated": (10, damage.truncated),
    "two programs recombined": (12, damage.recombined),
    "tokens exchanged": (12, damage.retokened),
    "expressions and statements exchanged": (14, grafts.grafted),
    "control characters, NUL, form feeds": (8, damage.controls),
    "coding lines and byte order marks": (8, damage.encoded),
    "mixed newlines": (6, damage.newlines),
    "names and strings of all Unicode": (6, damage.letters),
    "brackets, up to 5,000 deep": (2, shapes.nested),
    "chains, up to 20,000 terms": (2, shapes.chained),
    "branches, up to 3,000": (2, shapes.branched),
    "Python 2": (4, shapes.old),
    "newer syntax": (5, shapes.newer),
    "notebooks": (8, books.notebooks),
    "hypothesmith": (5, shapes.grown),
}


def make(seed: int, number: int, corpus: Corpus) -> Input:
    """The input of a number."""
    chance = Random(f"{seed} {number}")
    names = [name for name in KINDS if name != "hypothesmith" or corpus.made]
    (kind,) = chance.choices(names, [KINDS[name][0] for name in names])
    return Input(kind, "x.ipynb" if kind == "notebooks" else "x.py", KINDS[kind][1](chance, corpus))
