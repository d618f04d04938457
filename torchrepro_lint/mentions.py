"""Which files of a project may call something, as far as can be told without a look inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Facts

if TYPE_CHECKING:
    from torchrepro_lint.names import Names


def paths_constructing(names: Names, classes: Iterable[str]) -> tuple[str, ...]:
    """The files, sorted, that may construct classes from outside, or classes of the project that inherit from them."""
    heirs = {heir for name in classes for heir in names.heirs_of(name)}
    words = {name.rpartition(".")[2].rpartition(":")[2] for name in {*classes, *heirs}}
    return tuple(sorted({*paths_calling(names, words), *(name.partition(":")[0] for name in heirs)}))


def paths_calling(names: Names, wanted: Iterable[str]) -> tuple[str, ...]:
    """The files, sorted, that may call something from outside with one of these last words.

    Those are files that mention such a word, and files that mention a variable of one of these: it may hold what they do.
    """
    files = names.modules.files
    words = set(wanted)
    words |= _aliases(files, words)
    found = {path for path in files if _mentions(files[path], words)}
    while True:
        held = {word for path in found for word in _variables(names, path)} - words
        more = {path for path in files if path not in found and _calls(files[path], held)}
        if not more:
            return tuple(sorted(found))
        found |= more
        words |= held


def _mentions(facts: Facts, words: set[str]) -> bool:
    return not words.isdisjoint(facts.summary.calls) or not words.isdisjoint(facts.summary.values)


def _calls(facts: Facts, words: set[str]) -> bool:
    """Whether a variable is called, or may be what is called without a word: ``LOADERS["train"](...)``."""
    summary = facts.summary
    return not words.isdisjoint(summary.calls) or ("" in summary.calls and not words.isdisjoint(summary.values))


def _aliases(files: Mapping[str, Facts], words: set[str]) -> set[str]:
    """The words under which modules import what has another name: ``from torch.utils.data import DataLoader as Batches``."""
    return {
        word
        for facts in files.values()
        for word, names in facts.exports
        if word not in words and any(name.rpartition(".")[2] in words for name in names)
    }


def _variables(names: Names, path: str) -> Iterator[str]:
    for word, given in names.modules.files[path].exports:
        if any(each[0] == ":" and not names.outlines(path + each) for each in given):
            yield word
