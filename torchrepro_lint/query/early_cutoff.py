"""Early cutoff by red-green marking: what depends on an answer holds after a change if the answer comes out the same.

An answer remembers what its query read itself, and which answers it asked for. After a change it is stale if anything behind it has
changed. It is found out only when it is asked for whether it holds: it does if nothing that it read itself has changed, and if all that it
asked for comes out the same, which is found out in the same way. So an edit costs what reads the edited file, and what comes out otherwise.
The terms are those of salsa and of rustc's queries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from torchrepro_lint import limits
from torchrepro_lint.query.memo_tables import (
    MISSING,
    Again,
    Dependencies,
    DependencyIndex,
    DependencyTracker,
    MemoTable,
    Solve,
    all_bits,
)


class Answer:
    """An answer under early cutoff: its value, the bits that its query read itself (``read``) and the answers that it asked for;
    ``dependencies`` are all bits. ``verified`` is the revision in which it was last known to be right, ``changed`` the one in which its
    value last changed. A stale one may be wrong.
    """

    __slots__ = (
        *("asked", "changed", "dependencies", "is_open", "is_stale", "key"),
        *("read", "recompute", "table", "value", "verified"),
    )

    def __init__(self, table: VerifiedTable, key: Hashable) -> None:
        self.table, self.key = table, key
        self.recompute: Again = None
        self.value: Any = MISSING
        self.read = self.dependencies = self.verified = self.changed = 0
        self.asked: tuple[Answer, ...] = ()
        # Open while it is found out whether it holds.
        self.is_open = self.is_stale = False

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
            if self.recompute and not self.is_open and not (self.table.positional and self.has_read_change(reads)):
                self.is_open = True
                try:
                    self.recompute()
                finally:
                    self.is_open = False
            if self.is_stale:
                self.changed = reads.revision

    def discard(self, revision: int) -> None:
        """Forget the value."""
        self.is_stale, self.changed, self.value, self.asked, self.recompute = True, revision, MISSING, (), None


class VerifiedTable(MemoTable[Any, Any]):
    """A memo table under early cutoff: the answers that hold, and stale ones, until they are brought up to date or not asked for in many
    revisions. With ``compare`` an answer is compared with that before a change, where another answer asked for it; otherwise one that
    was computed again counts as changed.
    """

    answers: ClassVar[Sequence[str]] = ("_answers", "_index", "_stale")

    def __init__(self, reads: DependencyTracker, solve: Solve | None, *, compare: bool, positional: bool) -> None:
        super().__init__(reads, None, solve)
        self._compare = compare
        # The keys are parts of files that the queries read, so after a change of this file an answer can't be computed again.
        self.positional = positional

    def begin(self) -> None:
        """See ``MemoTable``."""
        self._answers: dict[Hashable, Answer] = {}
        self._index = DependencyIndex()
        # The stale answers, with the revision in which they became so.
        self._stale: dict[Answer, int] = {}

    def of(self, key: Any, compute: Callable[..., Any], asker: Any = None) -> Any:
        """See ``MemoTable``."""
        known = self._answers.get(key)
        if known is None or known.is_stale:
            return self._solve(self, key, compute if asker is None else self._reads.lasting(compute, asker, *key))
        self._reads.asked.append(known)
        return known.value

    def find(self, key: Any, default: Any = None) -> Any:
        """See ``MemoTable``; of a stale answer it is found out whether it holds."""
        known = self._answers.get(key)
        return default if known is None or not self.revalidated(known) else known.value

    def knows(self, key: Any) -> bool:
        """See ``MemoTable``."""
        return (known := self._answers.get(key)) is not None and not known.is_stale

    def record(self, key: Any) -> None:
        """See ``MemoTable``."""
        self._reads.asked.append(self._answers[key])

    def entries(self) -> list[tuple[Any, Any, int]]:
        """All answers that are known to hold: key, answer, and dependencies."""
        return [(key, each.value, each.dependencies) for key, each in self._answers.items() if not each.is_stale]

    def put(self, key: Any, answer: Any, depends_on: Dependencies, again: Again = None) -> None:
        """See ``MemoTable``. Only an answer that can be computed ``again`` is compared."""
        known = self._answers.get(key)
        if known is None:
            known = self._answers[key] = Answer(self, key)
        known.recompute = again if self._compare else None
        known.read, known.asked = self._reads.shared(depends_on[0]), depends_on[1]
        if known.recompute is None or known.value is MISSING or known.value != answer:
            known.value, known.changed = answer, self._reads.revision
        self._settle(known)

    def fold(self, key: Any, mark: int) -> None:
        """See ``MemoTable``."""
        self._reads.dependencies = 0
        self._reads.asked[mark:] = (self._answers[key],)

    def revalidated(self, answer: Answer) -> bool:
        """Whether an answer holds, or a stale one turns out to."""
        if not answer.is_stale:
            return True
        if answer.is_open or answer.value is MISSING:
            return False
        answer.is_open = True
        try:
            unchanged = answer.is_unchanged(self._reads)
        finally:
            answer.is_open = False
        if unchanged and answer.is_stale:
            self._settle(answer)
        return not answer.is_stale  # it may have been computed meanwhile

    def _settle(self, answer: Answer) -> None:
        answer.dependencies = self._index.put(answer, all_bits((answer.read, answer.asked)))
        answer.verified, answer.is_stale = self._reads.revision, False
        self._stale.pop(answer, None)

    def invalidate(self, changed: int) -> None:
        """Make the answers stale that depend on anything that has changed, and drop those that were so for long."""
        revision = self._reads.revision
        for answer in self._index.take(changed):
            if not answer.is_stale:
                # No change before this one concerned it.
                answer.is_stale, answer.verified = True, revision - 1
                self._stale[answer] = revision
        while self._stale:
            oldest, since = next(iter(self._stale.items()))
            if since > revision - limits.MAX_STALE_REVISIONS:
                break
            del self._stale[oldest], self._answers[oldest.key]
            oldest.discard(revision)

    def clear(self) -> None:
        """Discard all answers."""
        for answer in self._answers.values():
            answer.discard(self._reads.revision)
        self.begin()


def new_table(
    reads: DependencyTracker,
    most: int | None = None,
    solve: Solve | None = None,
    *,
    compare: bool,
    positional: bool = False,
) -> MemoTable[Any, Any]:
    """A table that is under early cutoff where files change, unless it is bounded: with answers that are compared, or not."""
    if reads.early_cutoff and most is None:
        return VerifiedTable(reads, solve, compare=compare, positional=positional)
    return MemoTable(reads, most, solve)
