"""Interning of tuples of words: equal ones are one object, since thousands of records have them alike.

Which files an answer was worked out from, so that it can be kept while others change.

Files have bits of a number. Whoever looks into a file adds its bit; a remembered answer has the bits of all that it was
worked out from, and adds them wherever it is given. What is asked of all files at once, such as who calls anything by a word,
has bits of its own, and so have answers that are compared with those before (see ``memo``). Where nothing is to be kept,
all bits are zero.

A table of bounded size: of many answers those that were asked for last.

What is worked out of one record at a time: the fixes of a file ask the same of it one after the other.

Tables that stay, in little room: lists keep room for more, and of one value take twice what a tuple takes.

Answers that are kept while files change, each with what it was worked out from (see ``reads``).

Answers that are compared with those before, so that what was worked out from them can stay (see ``memo`` and ``reads``).

What the files of a project say by names, put together for all of them, and kept up to date file by file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from sys import maxsize
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

# Of so many names the words are remembered here: as many as half a million lines have, and no more for ever.
_MOST = 1 << 18

_words: dict[tuple[str, ...], tuple[str, ...]] = {}
# ``words``, where they are known: for whoever asks half a million times.
known_words = _words.get


def words(of: tuple[str, ...]) -> tuple[str, ...]:
    """Equal words: the same object for all that ask."""
    known = _words.get(of)
    if known is None:
        if len(_words) >= _MOST:
            _words.clear()
        known = _words[of] = of
    return known


def forget() -> None:
    """Once all files are read: what they share stays with them."""
    _words.clear()


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


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Remembers at least the ``most`` answers that were asked for last, and fewer than twice as many; all without ``most``.

    What it holds can be worked out again: what is not found may have been there.
    """

    __slots__ = ("_most", "_new", "_old")

    def __init__(self, most: int | None) -> None:
        self._most = maxsize if most is None else most
        self._new: dict[_Key, _Value] = {}
        # What was asked for before the new ones; of these, all that is asked for again is new.
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key, default: Any = None) -> Any:
        """What is remembered; ``default`` where nothing is."""
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return default
            self[key] = found
        return found

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Remember an answer, which is not None."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, {}
        self._new[key] = value

    def __iter__(self) -> Iterator[_Key]:
        """What is remembered."""
        return iter({**self._old, **self._new})

    def pop(self, key: _Key, _default: None = None) -> None:
        """Forget what has changed."""
        self._new.pop(key, None)
        self._old.pop(key, None)


_Record = TypeVar("_Record")
_Answer = TypeVar("_Answer")


class Latest(Generic[_Record, _Answer]):
    """An answer about the record that was asked for last, known by its identity; of nothing but that record."""

    def __init__(self, compute: Callable[[_Record], _Answer]) -> None:
        self._compute = compute
        self._known: tuple[_Record, _Answer] | None = None

    def of(self, record: _Record) -> _Answer:
        """The answer, worked out where another record was asked for before."""
        known = self._known
        if known is None or known[0] is not record:
            known = self._known = (record, self._compute(record))
        return known[1]


_Item = TypeVar("_Item")


def tight(rows: Mapping[_Item, Iterable[_Value]]) -> dict[_Item, tuple[_Value, ...]]:
    """The rows of a table that is complete."""
    return {key: tuple(each) for key, each in rows.items()}


# No answer, for an answer may be None.
_NONE: Any = object()


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


class Groups(Generic[_Key]):
    """Questions by what their answers were worked out from: few answers differ in that."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[int, tuple[int, set[_Key]]] = {}

    def put(self, key: _Key, seen: int) -> int:
        """A question whose answer was worked out from what has these bits; returns them, as one number for all."""
        group = self._groups.get(seen)
        if group is None:
            group = self._groups[seen] = seen, set()
        group[1].add(key)
        return group[0]

    def take(self, changed: int) -> Iterator[_Key]:
        """The questions, in no order, whose answers were worked out from anything that has changed; they are no more here."""
        for seen in [seen for seen in self._groups if seen & changed]:
            yield from self._groups.pop(seen)[1]


class Kept(Generic[_Key, _Value]):
    """Answers by their questions, each with what it was worked out from; with ``most`` about so many that were asked for last,
    which are not to be had all together (``known``).
    """

    __slots__ = ("_groups", "_known", "_reads", "_seen")

    def __init__(self, reads: Reads, most: int | None = None) -> None:
        self._reads = reads
        self._known: Any = {} if most is None else Recent[_Key, _Value](most)
        # What each was worked out from, where that is kept: apart, for nearly all of a run without a cache is answers.
        self._seen: Any = {} if most is None else Recent[_Key, int](most)
        self._groups: Groups[_Key] = Groups()

    def of(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The answer to a question; ``compute`` works it out."""
        reads = self._reads
        answer: Any = self._known.get(key, _NONE)
        seen = self._seen.get(key) if reads.keeps else 0
        if answer is _NONE or seen is None:
            outer, reads.seen = reads.seen, 0
            try:
                answer, seen = compute(), reads.seen
            finally:
                reads.seen |= outer
            self.put(key, answer, seen)
        else:
            reads.seen |= seen
        return answer  # type: ignore[no-any-return]

    def if_definite(self, key: _Key, compute: Callable[[], tuple[_Value, bool]]) -> _Value:
        """The same where ``compute`` also says whether its answer may be kept."""
        reads = self._reads
        if known := self.look(key):
            reads.seen |= known[1]
            return known[0]
        outer, reads.seen = reads.seen, 0
        try:
            answer, definite = compute()
            if definite:
                self.put(key, answer, reads.seen)
            return answer
        finally:
            reads.seen |= outer

    def known(self) -> list[tuple[_Key, _Value, int]]:
        """What has been answered: questions, answers, and what they were worked out from."""
        return [(key, answer, self._seen.get(key, 0)) for key, answer in self._known.items()]

    def enter(self, key: _Key, answer: _Value, seen: int) -> None:
        """Take over what ``known`` gave of a project in the same state."""
        if key not in self._known:
            self.put(key, answer, seen)

    def put(self, key: _Key, answer: _Value, seen: int) -> None:
        """Remember an answer that was worked out from what has these bits."""
        self._known[key] = answer
        if self._reads.keeps:
            self._seen[key] = self._groups.put(key, seen)

    def look(self, key: _Key) -> tuple[_Value, int] | None:
        """What is remembered, with its bits: whoever makes use of it has seen these."""
        answer: Any = self._known.get(key, _NONE)
        return None if answer is _NONE else (answer, self._seen.get(key, 0))

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        for key in self._groups.take(changed):
            self._known.pop(key, None)
            self._seen.pop(key, None)


Compute: TypeAlias = Callable[[], Iterable[str]]


class Firm(NamedTuple):
    """How an answer is worked out, its bit, and the bits of what it was worked out from."""

    compute: Compute
    bit: int
    seen: int


class Again(NamedTuple):
    """An answer that was worked out again: its bit, from what, and whether it is the same, and still a firm one."""

    bit: int
    seen: int
    same: bool


def others(again: list[Again], firm: Collection[Firm]) -> int:
    """The bits of answers that are others now; ``firm`` are all that there are.

    What was worked out with the help of an answer that has not been compared yet proves nothing: it may rest on what
    itself was before. Where such answers lead in a circle, all that rests on them has changed.
    """
    changed = 0
    while again:
        doubtful = _resting_on((each.bit for each in again), firm)
        left = [each for each in again if each.seen & doubtful]
        if len(left) == len(again):
            return changed | doubtful
        changed |= _union(each.bit for each in again if not (each.same or each.seen & doubtful))
        again = left
    return changed


def _resting_on(some: Iterable[int], firm: Collection[Firm]) -> int:
    """The bits of some answers, and of those that were worked out from them, directly or not."""
    before, bits = 0, _union(some)
    while bits != before:
        before = bits
        for each in firm:
            if each.seen & bits:
                bits |= each.bit
    return bits


def _union(bits: Iterable[int]) -> int:
    found = 0
    for each in bits:
        found |= each
    return found


class Together(Generic[_Value]):
    """What each file says, by its path: values by names."""

    def __init__(self) -> None:
        self._parts: dict[str, Mapping[str, Sequence[_Value]]] = {}
        self._paths: dict[str, list[str]] = {}

    def update(self, parts: Iterable[tuple[str, Mapping[str, Sequence[_Value]]]]) -> None:
        """Take over what all files say now, the same files each time; what is the same object is not looked into."""
        for path, part in parts:
            before = self._parts.get(path)
            if before is part:
                continue
            for name in before or ():
                self._paths[name].remove(path)
                if not self._paths[name]:
                    del self._paths[name]
            for name in part:
                self._paths.setdefault(name, []).append(path)
            self._parts[path] = part

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._paths)

    def of(self, name: str) -> Iterator[tuple[str, Sequence[_Value]]]:
        """The values of a name, by file, sorted."""
        return ((path, self._parts[path][name]) for path in sorted(self._paths.get(name, ())))
