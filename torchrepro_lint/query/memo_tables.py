"""Memo tables of the incremental query engine: each answer with every dependency, dropped by a revision, with LRU eviction.

Dependencies are bit sets in one number. Each file has a bit: whoever reads a file adds its bit, and an answer remembers the bits of
all that it was computed from and adds them wherever it is used. A question about all files at once ("which file calls this word?") has
a bit for the word. Without incremental reuse all bits are zero, and tables only remember.

A change is a new revision: the tables drop (``invalidate``) each answer whose dependencies have changed. ``early_cutoff`` has tables
that keep some of them, and ``cycles`` what computes answers that may lead back to themselves. LRU eviction bounds tables whose answers
can be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from sys import maxsize
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar
from zlib import crc32

from torchrepro_lint import limits

# The number of bits for words. Two that share a bit count as changing together.
_WORD_BITS = 8192

# What an answer depends on: the bits that its query read itself, and under early cutoff the answers that it asked for.
Dependencies: TypeAlias = tuple[int, tuple[Any, ...]]


def all_bits(of: Dependencies) -> int:
    """The bits of all that was read, directly and by the answers that were asked for."""
    found, asked = of
    for each in asked:
        found |= each.dependencies
    return found


class DependencyTracker:
    """The dependencies of the query that is running: ``dependencies`` holds the bits of all that it has read so far.

    ``bits`` are those of the files by path; all are zero unless ``incremental``. With ``early_cutoff``, ``asked`` holds the answers that
    were asked for, whose bits are not in ``dependencies``.
    """

    def __init__(self, paths: Collection[str], *, incremental: bool, early_cutoff: bool = False) -> None:
        self.incremental = incremental
        self.early_cutoff = incremental and early_cutoff
        self.bits = {path: 1 << number if incremental else 0 for number, path in enumerate(sorted(paths), _WORD_BITS)}
        self.dependencies = 0
        self.asked: list[Any] = []
        # Equal numbers of this revision; those of all would hold what no answer has any more.
        self._shared: dict[int, int] = {}
        # The number of changes so far, and what has changed in the last ones.
        self.revision = 0
        self._changes: list[int] = []
        # Called with the name of a table that the cache stores, before the first of its answers is computed.
        self.recall: Callable[[str], None] = lambda _table: None
        # Makes a call of a query's function that may be kept for later revisions.
        self.lasting: Callable[..., Callable[[], Any]] = partial

    def record_read(self, path: str) -> None:
        """Record that the running query reads a file."""
        self.dependencies |= self.bits.get(path, 0)

    def record_word(self, kind: str, word: str) -> None:
        """Record that the running query asks which files have a word."""
        if self.incremental:
            self.dependencies |= self.word(kind, word)

    @staticmethod
    def word(kind: str, word: str) -> int:
        """The bit of a word."""
        return 1 << crc32(f"{kind} {word}".encode()) % _WORD_BITS

    def shared(self, bits: int) -> int:
        """The one object for equal bits: a number takes a kilobyte, and nine of ten answers have the bits of another one."""
        return self._shared.setdefault(bits, bits)

    def since(self, mark: int) -> Dependencies:
        """What the running query has read, and the answers that it asked for since a length of ``asked``."""
        return self.dependencies, tuple(dict.fromkeys(self.asked[mark:])) if self.early_cutoff else ()

    @contextmanager
    def apart(self) -> Iterator[Callable[[], int]]:
        """Inside, ``dependencies`` are those of what runs inside alone, and the result gives all bits; afterwards they are added to the
        others.
        """
        outer, self.dependencies = self.dependencies, 0
        mark = len(self.asked)
        try:
            yield lambda: all_bits(self.since(mark))
        finally:
            self.dependencies |= outer

    @contextmanager
    def untracked(self) -> Iterator[None]:
        """What is read inside is no dependency: for answers about all files that are updated file by file when one changes."""
        outer, mark = self.dependencies, len(self.asked)
        try:
            yield
        finally:
            self.dependencies = outer
            del self.asked[mark:]

    def begin_revision(self, changed: int) -> None:
        """Something has changed; to be called between queries."""
        self.revision += 1
        self._changes.append(changed)
        # No answer is stale for longer.
        del self._changes[: -limits.MAX_STALE_REVISIONS]
        self.asked.clear()
        self._shared.clear()

    def changed_since(self, revision: int) -> Sequence[int]:
        """What has changed in each revision since one of the last ``MAX_STALE_REVISIONS``."""
        return self._changes[max(0, len(self._changes) - (self.revision - revision)) :]


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruTable(Generic[_Key, _Value]):
    """A table with LRU eviction in two generations: it holds at least the ``most`` answers that were used last, and fewer than
    twice as many; without ``most`` all of them.

    Its answers can be computed again: what is not found may have been evicted.
    """

    __slots__ = ("_most", "_new", "_old")

    def __init__(self, most: int | None) -> None:
        self._most = maxsize if most is None else most
        self._new: dict[_Key, _Value] = {}
        # The older generation: an entry that is used again moves to the new one.
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key, default: Any = None) -> Any:
        """The remembered answer, or ``default``."""
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
        """The keys of all remembered answers."""
        return iter({**self._old, **self._new})

    def pop(self, key: _Key, _default: None = None) -> None:
        """Forget an answer."""
        self._new.pop(key, None)
        self._old.pop(key, None)


# The absence of an answer: an answer may be None.
MISSING: Any = object()


class DependencyIndex(Generic[_Key]):
    """Reverse dependencies: keys by the dependencies of their answers, of which few differ."""

    __slots__ = ("_by_dependencies",)

    def __init__(self) -> None:
        self._by_dependencies: dict[int, tuple[int, set[_Key]]] = {}

    def put(self, key: _Key, depends_on: int) -> int:
        """Add a key whose answer has these dependencies; returns them, the same object for equal ones."""
        group = self._by_dependencies.get(depends_on)
        if group is None:
            group = self._by_dependencies[depends_on] = depends_on, set()
        group[1].add(key)
        return group[0]

    def take(self, changed: int) -> Iterator[_Key]:
        """Remove and return, in no order, the keys whose answers depend on anything that has changed."""
        for depends_on in [depends_on for depends_on in self._by_dependencies if depends_on & changed]:
            yield from self._by_dependencies.pop(depends_on)[1]


# The answer of a table for a key that it does not know, from the way to compute it; see ``cycles``.
Solve: TypeAlias = Callable[[Any, Any, Callable[[], Any]], Any]
Again: TypeAlias = Callable[[], object] | None


class MemoTable(Generic[_Key, _Value]):
    """A memo table: answers by key, each with its dependencies. With ``most`` it has LRU eviction (see ``LruTable``), and no
    complete ``entries``. What is not known is left to ``solve``; without one the query is run.
    """

    # The attributes that have the answers; ``begin`` makes them.
    answers: ClassVar[Sequence[str]] = ("_dependencies", "_index", "_known")

    def __init__(self, reads: DependencyTracker, most: int | None = None, solve: Solve | None = None) -> None:
        self._reads, self._most = reads, most
        self._solve: Solve = solve or MemoTable.run
        self.begin()

    def begin(self) -> None:
        """Begin without answers."""
        self._known: Any = {} if self._most is None else LruTable[_Key, _Value](self._most)
        # Their dependencies, in a table of their own: a run that is not incremental has none.
        self._dependencies: Any = {} if self._most is None else LruTable[_Key, int](self._most)
        self._index: DependencyIndex[Any] = DependencyIndex()

    def of(self, key: Any, compute: Callable[..., _Value], asker: Any = None) -> _Value:
        """The answer for a key, whose dependencies become those of the running query. Where it is not known, it is that of ``compute``;
        with an ``asker`` this is the function of a query, and the key has its other arguments.
        """
        answer: Any = self._known.get(key, MISSING)
        depends_on = self._dependencies.get(key) if self._reads.incremental else 0
        if answer is MISSING or depends_on is None:
            again = compute if asker is None else self._reads.lasting(compute, asker, *key)
            return self._solve(self, key, again)  # type: ignore[no-any-return]
        self._reads.dependencies |= depends_on
        return answer  # type: ignore[no-any-return]

    def run(self, key: _Key, compute: Callable[[], Any], *, tells: bool = False) -> Any:
        """The answer for a key; where it is not known, it is computed and remembered.

        Where ``compute`` ``tells``, it also says whether its answer is final: a provisional one (see ``cycles``) is not remembered.
        """
        reads = self._reads
        if (tells or reads.early_cutoff) and (known := self.find(key, MISSING)) is not MISSING:
            self.record(key)
            return known
        outer, reads.dependencies, mark = reads.dependencies, 0, len(reads.asked)
        try:
            answer, is_final = compute() if tells else (compute(), True)
            if is_final and reads.early_cutoff:
                self.put(key, answer, reads.since(mark), partial(self.run, key, compute, tells=tells))
                self.fold(key, mark)
            elif is_final:
                self.put(key, answer, (reads.dependencies, ()))
            return answer
        finally:
            reads.dependencies |= outer

    def get(self, key: _Key) -> _Value | None:
        """A remembered answer that is known to hold, whose dependencies become those of the running query; None if there is none."""
        if not self.knows(key):
            return None
        self.record(key)
        return self.find(key)  # type: ignore[no-any-return]

    def find(self, key: _Key, default: Any = None) -> Any:
        """A remembered answer that holds, or ``default``; whoever uses it must ``record`` that."""
        if self._reads.incremental and self._dependencies.get(key) is None:
            return default
        return self._known.get(key, default)

    def knows(self, key: _Key) -> bool:
        """Whether an answer is remembered, and known to hold."""
        return self.find(key, MISSING) is not MISSING

    def record(self, key: _Key) -> None:
        """Record that the running query depends on a remembered answer."""
        if self._reads.incremental:
            self._reads.dependencies |= self._dependencies.get(key, 0)

    def entries(self) -> list[tuple[_Key, _Value, int]]:
        """All answers: key, answer, and dependencies."""
        return [(key, answer, self._dependencies.get(key, 0)) for key, answer in self._known.items()]

    def restore(self, key: _Key, answer: _Value, depends_on: int) -> None:
        """Take over one of the ``entries`` of an earlier run on the same files; what it asked for is not known."""
        if self.find(key, MISSING) is MISSING:
            self.put(key, answer, (depends_on, ()))

    def put(self, key: _Key, answer: _Value, depends_on: Dependencies, again: Again = None) -> None:  # noqa: ARG002
        """Remember an answer with its dependencies; ``again`` computes it again after a change, under early cutoff."""
        self._known[key] = answer
        if self._reads.incremental:
            self._dependencies[key] = self._index.put(key, all_bits(depends_on))

    def fold(self, key: _Key, mark: int) -> None:
        """Under early cutoff, let the running query depend on an answer in place of what it read, and asked for since a length of
        ``asked``.
        """

    def invalidate(self, changed: int) -> None:
        """Drop the answers that depend on anything that has changed."""
        for key in self._index.take(changed):
            self._known.pop(key, None)
            self._dependencies.pop(key, None)

    def clear(self) -> None:
        """Drop all answers."""
        self.begin()
