"""Which files an answer was worked out from, so that it can be kept while others change.

Files have bits of a number. Whoever looks into a file adds its bit; a remembered answer has the bits of all that it was
worked out from, and adds them wherever it is given. What is asked of all files at once, such as who calls anything by a word,
has bits of its own. Where nothing is to be kept, all bits are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from zlib import crc32

from torchrepro_lint.facts import Facts

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
# So many bits stand for words: two words that share one are taken to change together.
_WORDS = 512


class Reads:
    """What is read while an answer is worked out; ``bits`` are those of the files by path."""

    __slots__ = ("bits", "keeps", "seen", "words")

    def __init__(self, paths: Collection[str], *, keeps: bool) -> None:
        self.keeps = keeps
        self.bits = {path: 1 << number if keeps else 0 for number, path in enumerate(sorted(paths), _WORDS)}
        self.seen = 0
        # Where it is asked which files mention words, the words: they are many, and few share a bit by chance.
        self.words: set[str] = set()

    def see(self, path: str) -> None:
        """A file is looked into."""
        self.seen |= self.bits.get(path, 0)

    def see_word(self, kind: str, word: str) -> None:
        """It is asked which files have a word."""
        if self.keeps:
            self.seen |= self.word(kind, word)

    @staticmethod
    def word(kind: str, word: str) -> int:
        """The bit of a word."""
        return 1 << crc32(f"{kind} {word}".encode()) % _WORDS

    @contextmanager
    def apart(self) -> Iterator[None]:
        """For what is worked out from all files: whoever changes one sees to it that the answer is the same."""
        outer = self.seen
        try:
            yield
        finally:
            self.seen = outer


class Answers:
    """Answers about a whole project by their names, each with what it was worked out from, and the words."""

    __slots__ = ("_known", "_reads")

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._known: dict[str, tuple[Any, int, frozenset[str]]] = {}

    def of(self, name: str, compute: Callable[[], Any]) -> Any:
        """The answer of a name; ``compute`` works it out."""
        reads = self._reads
        if name not in self._known:
            outer, words = reads.seen, reads.words
            reads.seen, reads.words = 0, set()
            try:
                self._known[name] = compute(), reads.seen, frozenset(reads.words)
            finally:
                reads.seen, reads.words = reads.seen | outer, reads.words | words
        answer, seen, mentioned = self._known[name]
        reads.seen |= seen
        reads.words |= mentioned
        return answer

    def known(self) -> list[tuple[str, Any, int, frozenset[str]]]:
        """What has been answered: names, answers, what they were worked out from, and the words."""
        return [(name, *self._known[name]) for name in sorted(self._known)]

    def enter(self, name: str, answer: Any, seen: int, words: frozenset[str]) -> None:
        """Take over what ``known`` gave of a project in the same state."""
        self._known.setdefault(name, (answer, seen, words))

    def drop(self, changed: int, words: AbstractSet[str]) -> None:
        """Forget what was worked out from anything that has changed: files, or which files mention one of the words."""
        for name in [
            name for name, (_, seen, each) in self._known.items() if seen & changed or not words.isdisjoint(each)
        ]:
            del self._known[name]


class Kept(Generic[_Key, _Value]):
    """Answers by their questions, each with what it was worked out from."""

    __slots__ = ("_known", "_reads")

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._known: dict[_Key, tuple[_Value, int]] = {}

    def of(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The answer to a question; ``compute`` works it out."""
        found = self._known.get(key)
        if found is None:
            outer, self._reads.seen = self._reads.seen, 0
            try:
                found = compute(), self._reads.seen
            finally:
                self._reads.seen |= outer
            self._known[key] = found
        self._reads.seen |= found[1]
        return found[0]

    def known(self) -> list[tuple[_Key, _Value, int]]:
        """What has been answered: questions, answers, and what they were worked out from."""
        return [(key, *answer) for key, answer in self._known.items()]

    def enter(self, key: _Key, answer: _Value, seen: int) -> None:
        """Take over what ``known`` gave of a project in the same state."""
        self._known.setdefault(key, (answer, seen))

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        for key in [key for key, (_, seen) in self._known.items() if seen & changed]:
            del self._known[key]


class Files(dict[str, Facts]):
    """The facts of files by path, which note that they are looked into."""

    def __init__(self, files: Mapping[str, Facts], reads: Reads) -> None:
        super().__init__(files)
        self._reads = reads

    def __getitem__(self, path: str) -> Facts:
        self._reads.seen |= self._reads.bits.get(path, 0)
        return super().__getitem__(path)

    def get(self, path: str, default: Facts | None = None) -> Facts | None:  # type: ignore[override]
        """The facts of a file, if it is there."""
        self._reads.see(path)
        return super().get(path, default)

    def peek(self, path: str) -> Facts:
        """The facts of a file, for whoever asks all files and so needs no note of it."""
        return super().__getitem__(path)
