"""Early cutoff by red-green marking: what depends on an answer holds after a change if the answer comes out the same.

An answer remembers what its query read itself, and which answers it asked for. After a change it is stale if anything behind it has
changed. It is found out only when it is asked for whether it holds: it does if nothing that it read itself has changed, and if all that it
asked for comes out the same, which is found out in the same way. So an edit costs what reads the edited file, and what comes out otherwise.
The terms are those of salsa and of rustc's queries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from torchrepro_lint import limits
from torchrepro_lint.query.memo_tables import DependencyIndex, DependencyTracker, MemoTable

# The value of an answer that is not known.
_MISSING: Any = object()


class Answer:
    """An answer under early cutoff: its value, the bits that its query read itself (``read``) and the answers that it asked for;
    ``dependencies`` are all bits. ``verified`` is the revision in which it was last known to be right, ``changed`` the one in which its
    value last changed. A stale one may be wrong. The key of a ``positional`` one is a part of a file that its query reads, so after a
    change of this file it can't be computed again.
    """

    __slots__ = (
        *("asked", "changed", "dependencies", "is_open", "is_stale"),
        *("positional", "read", "recompute", "table", "value", "verified"),
    )

    def __init__(self, table: AnswerTable, recompute: Callable[[], object] | None) -> None:
        self.table = table
        self.recompute = recompute
        self.value: Any = _MISSING
        self.read = self.dependencies = self.verified = self.changed = 0
        self.asked: tuple[Answer, ...] = ()
        # Open while it is found out whether it holds.
        self.is_open = self.is_stale = self.positional = False

    def has_read_change(self, reads: DependencyTracker) -> bool:
        """Whether something has changed that the query read itself."""
        return any(self.read & each for each in reads.changed_since(self.verified))

    def is_unchanged(self, reads: DependencyTracker) -> bool:
        """Whether a stale answer would come out the same: nothing that its query read itself has changed since, and what it asked for
        comes out the same, in the order of asking, since what is asked may depend on the answers before.
        """
        if self.has_read_change(reads):
            return False
        with reads.untracked():
            for each in self.asked:
                each.bring_up_to_date(reads)
                if each.changed > self.verified:
                    return False
        return True

    def bring_up_to_date(self, reads: DependencyTracker) -> None:
        """Find out whether a stale answer still holds. One that is not compared counts as changed."""
        if self.is_stale and not self.table.revalidated(self):
            if self.recompute and not self.is_open and not (self.positional and self.has_read_change(reads)):
                self.is_open = True
                try:
                    self.recompute()
                finally:
                    self.is_open = False
            if self.is_stale:
                self.changed = reads.revision

    def discard(self, revision: int) -> None:
        """Forget the value."""
        self.is_stale, self.changed, self.value, self.asked, self.recompute = True, revision, _MISSING, (), None


class AnswerTable:
    """The answers under early cutoff of one table, by key: those that hold, and stale ones, until they are brought up to date or
    not asked for in many revisions.
    """

    def __init__(self, reads: DependencyTracker) -> None:
        self._reads = reads
        self._answers: dict[Hashable, Answer] = {}
        self._keys: dict[Answer, Hashable] = {}
        self._index: DependencyIndex[Answer] = DependencyIndex()
        # The stale answers, with the revision in which they became so.
        self._stale: dict[Answer, int] = {}

    def get(self, key: Hashable) -> Answer | None:
        """The answer for a key, which may be stale."""
        return self._answers.get(key)

    def of(self, key: Hashable) -> Answer:
        """The answer for a key that has one."""
        return self._answers[key]

    def valid(self) -> Iterator[tuple[Hashable, Answer]]:
        """The answers that are known to hold, by key."""
        return ((key, each) for key, each in self._answers.items() if not each.is_stale)

    def clear(self) -> None:
        """Discard all answers."""
        for answer in self._keys:
            answer.discard(self._reads.revision)

    def revalidated(self, answer: Answer) -> bool:
        """Whether an answer holds, or a stale one turns out to."""
        if not answer.is_stale:
            return True
        if answer.is_open or answer.value is _MISSING:
            return False
        answer.is_open = True
        try:
            unchanged = answer.is_unchanged(self._reads)
        finally:
            answer.is_open = False
        if unchanged and answer.is_stale:
            self._settle(answer)
        return not answer.is_stale  # it may have been computed meanwhile

    def store(
        self,
        key: Hashable,
        value: Any,
        read: int,
        asked: tuple[Answer, ...],
        recompute: Callable[[], object] | None,
        *,
        positional: bool = False,
    ) -> Answer:
        """Store what a query has come to, from what it read itself and the answers that it asked for. Only an answer that can be
        computed again by ``recompute`` is compared.
        """
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = Answer(self, recompute)
            self._keys[answer] = key
        answer.recompute, answer.positional = recompute, positional
        answer.read, answer.asked = read, asked
        if recompute is None or answer.value is _MISSING or answer.value != value:
            answer.value, answer.changed = value, self._reads.revision
        self._settle(answer)
        return answer

    def _settle(self, answer: Answer) -> None:
        depends_on = answer.read
        for each in answer.asked:
            depends_on |= each.dependencies
        answer.dependencies = self._index.put(answer, depends_on)
        answer.verified, answer.is_stale = self._reads.revision, False
        self._stale.pop(answer, None)

    def invalidate(self, changed: int) -> Iterator[Hashable]:
        """Make the answers stale that depend on anything that has changed; gives their keys, and those of answers that are dropped."""
        revision = self._reads.revision
        for answer in self._index.take(changed):
            if not answer.is_stale:
                # No change before this one concerned it.
                answer.is_stale, answer.verified = True, revision - 1
                self._stale[answer] = revision
                yield self._keys[answer]
        while self._stale:
            oldest, since = next(iter(self._stale.items()))
            if since > revision - limits.MAX_STALE_REVISIONS:
                break
            key = self._keys.pop(oldest)
            del self._stale[oldest], self._answers[key]
            oldest.discard(revision)
            yield key


class Askers(Protocol):
    """What queries are asked of, which may be another object after a change."""

    def lasting(self, function: Callable[..., Any], of: Any, *key: Hashable) -> Callable[[], Any]:
        """The call of a query's function, which may be kept for later revisions."""
        ...


class VerifiedTable(MemoTable[Any, Any]):
    """A memo table under early cutoff. With ``compare`` an answer is compared with that before a change, where another answer asked for
    it; otherwise one that was computed again counts as changed. ``askers`` has what queries are asked of in this revision.
    """

    __slots__ = ("_answers", "_askers", "_compare")

    def __init__(self, reads: DependencyTracker, askers: Askers, *, compare: bool) -> None:
        super().__init__(reads)
        self._answers = AnswerTable(reads)
        self._askers, self._compare = askers, compare

    def of(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The answer for a key; see ``MemoTable``."""
        known = self._answers.get(key)
        if known is None or (known.is_stale and not self._answers.revalidated(known)):
            known = self._stored(key, compute)
        self._reads.asked.append(known)
        return known.value

    def answer(self, key: tuple[Hashable, ...], function: Callable[..., Any], of: Any) -> Any:
        """The answer for a key; see ``MemoTable``."""
        known = self._answers.get(key)
        if known is None or (known.is_stale and not self._answers.revalidated(known)):
            known = self._stored(key, self._askers.lasting(function, of, *key))
        self._reads.asked.append(known)
        return known.value

    def get(self, key: Any) -> Any:
        """A remembered answer that is known to hold; None if there is none."""
        known = self._answers.get(key)
        if known is None or known.is_stale:
            return None
        self._reads.asked.append(known)
        return known.value

    def entries(self) -> list[tuple[Any, Any, int]]:
        """All answers that are known to hold: key, answer, and dependencies."""
        return [(key, each.value, each.dependencies) for key, each in self._answers.valid()]

    def restore(self, key: Any, answer: Any, depends_on: int) -> None:
        """Take over an answer of an earlier run on the same files; what it asked for is not known."""
        if self._answers.get(key) is None:
            self._answers.store(key, answer, depends_on, (), None)

    def put_all(
        self, keys: Iterable[Any], answer: Any, since: int, compute: Callable[[Any], Any] | None = None
    ) -> None:
        """See ``MemoTable``."""
        reads = self._reads
        asked = tuple(dict.fromkeys(reads.asked[since:]))
        for key in keys:
            again = partial(self._stored, key, partial(compute, key)) if compute else None
            self._answers.store(key, answer, reads.dependencies, asked, again)

    def peek(self, key: Any) -> tuple[Any, int] | None:
        """A remembered answer that holds; it counts as asked for, so that the caller has nothing to add."""
        known = self._answers.get(key)
        if known is None or (known.is_stale and not self._answers.revalidated(known)):
            return None
        self._reads.asked.append(known)
        return known.value, 0

    def unless_provisional(self, key: Any, compute: Callable[[], tuple[Any, bool]]) -> Any:
        """See ``MemoTable``."""
        if known := self.peek(key):
            return known[0]
        reads = self._reads
        outer, reads.dependencies, since = reads.dependencies, 0, len(reads.asked)
        try:
            answer, is_final = compute()
            if is_final:
                asked = tuple(dict.fromkeys(reads.asked[since:]))
                again = partial(self.unless_provisional, key, compute) if self._compare else None
                stored = self._answers.store(key, answer, reads.dependencies, asked, again)
                reads.dependencies = 0
                reads.asked[since:] = (stored,)
            return answer
        finally:
            reads.dependencies |= outer

    def _stored(self, key: Any, compute: Callable[[], Any]) -> Answer:
        reads = self._reads
        again = partial(self._stored, key, compute) if self._compare else None
        outer, reads.dependencies, mark = reads.dependencies, 0, len(reads.asked)
        try:
            value = compute()
            return self._answers.store(key, value, reads.dependencies, tuple(dict.fromkeys(reads.asked[mark:])), again)
        finally:
            reads.dependencies = outer
            del reads.asked[mark:]

    def invalidate(self, changed: int) -> None:
        """Make the answers stale that depend on anything that has changed."""
        super().invalidate(changed)
        for _ in self._answers.invalidate(changed):
            pass
