"""Answers that are kept while files change, each with what it was worked out from (see ``reads``)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Generic, TypeVar

from torchrepro_lint.reads import Reads
from torchrepro_lint.recent import Recent

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
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
