"""The kinds of inputs, and the input of a number: the same for ever, given the seed and the corpus."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import books, caches, damage, grafts, kills, projects, sessions, shapes, tables
from .corpus import Corpus

Maker = Callable[[Random, Corpus], bytes]


class Input(NamedTuple):
    """A file to try: what kind it is of, its name, and its bytes."""

    kind: str
    name: str
    data: bytes


# How often a kind comes: what takes long to read comes seldom.
KINDS: dict[str, tuple[int, Maker]] = {
    "bytes flipped": (120, damage.flipped),
    "truncated": (100, damage.truncated),
    "two programs recombined": (120, damage.recombined),
    "tokens exchanged": (120, damage.retokened),
    "expressions and statements exchanged": (140, grafts.grafted),
    "control characters, NUL, form feeds": (80, damage.controls),
    "coding lines and byte order marks": (80, damage.encoded),
    "mixed newlines": (60, damage.newlines),
    "names and strings of all Unicode": (60, damage.letters),
    "brackets, up to 5,000 deep": (8, shapes.nested),
    "chains, up to 20,000 terms": (3, shapes.chained),
    "branches, up to 3,000": (6, shapes.branched),
    "Python 2": (40, shapes.old),
    "newer syntax": (50, shapes.newer),
    "repeated, up to 500 times": (3, shapes.repeated),
    "notebooks": (80, books.notebooks),
    "hypothesmith": (50, shapes.grown),
    "settings files": (40, tables.settings),
    "baselines": (20, tables.baseline),
    "damaged caches": (5, caches.damage),
    "interrupted writes": (10, kills.moment),
    "reports of hostile projects": (8, projects.project),
    "sessions with the server": (1, sessions.session),
}


# How the files are called that are no modules.
_NAMES = {
    "notebooks": "x.ipynb",
    "settings files": "x.toml",
    "baselines": "x.json",
    "damaged caches": "x.cache",
    "interrupted writes": "x.kill",
    "reports of hostile projects": "x.project",
    "sessions with the server": "x.session",
}


def make(seed: int, number: int, corpus: Corpus) -> Input:
    """The input of a number."""
    chance = Random(f"{seed} {number}")
    absent = missing(corpus)
    names = [name for name in KINDS if name not in absent]
    (kind,) = chance.choices(names, [KINDS[name][0] for name in names])
    return Input(kind, _NAMES.get(kind, "x.py"), KINDS[kind][1](chance, corpus))


def missing(corpus: Corpus) -> dict[str, str]:
    """The kinds that cannot be had here, each with what it would take."""
    found = {} if corpus.made else {"hypothesmith": "hypothesmith is not installed"}
    if not sessions.available():
        found["sessions with the server"] = "pygls is not installed"
    if not hasattr(os, "fork"):
        found["interrupted writes"] = "processes are not forked here"
    return found
