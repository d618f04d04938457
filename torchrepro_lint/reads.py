"""Which files an answer was worked out from, so that it can be kept while others change.

Files have bits of a number. Whoever looks into a file adds its bit; a remembered answer has the bits of all that it was
worked out from, and adds them wherever it is given. What is asked of all files at once, such as who calls anything by a word,
has bits of its own, and so have answers that are compared with those before (see ``memo``). Where nothing is to be kept,
all bits are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from zlib import crc32

# So many bits stand for words, and for answers: two that share one are taken to change together.
_WORDS = 1024
_ANSWERS = 4096


def _nothing(_table: str) -> None:
    return


class Reads:
    """What is read while an answer is worked out; ``bits`` are those of the files by path, ``firm`` says that answers have some,
    too: such bits mean nothing to another link.
    """

    __slots__ = ("_answers", "_first", "bits", "firm", "keeps", "recall", "seen", "words")

    def __init__(self, paths: Collection[str], *, keeps: bool, firm: bool = False) -> None:
        self.keeps = keeps
        self.firm = keeps and firm
        self.bits = {path: 1 << number if keeps else 0 for number, path in enumerate(sorted(paths), _WORDS)}
        self._answers: dict[Hashable, int] = {}
        self._first = _WORDS + len(self.bits)
        self.seen = 0
        # Where it is asked which files mention words, the words: they are many, and few share a bit by chance.
        self.words: set[str] = set()
        # Is told the name of a table of answers (see ``answers_json``) before the first of them is worked out.
        self.recall: Callable[[str], None] = _nothing

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

    def answer(self, question: Hashable) -> int:
        """The bit of the answer to a question."""
        number = self._answers.setdefault(question, len(self._answers))
        return 1 << self._first + number % _ANSWERS

    @contextmanager
    def apart(self) -> Iterator[None]:
        """For what is worked out from all files: whoever changes one sees to it that the answer is the same."""
        outer = self.seen
        try:
            yield
        finally:
            self.seen = outer
