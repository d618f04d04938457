"""How much may be looked into for one question, however many others it asks on the way.

Remembered answers to questions that may lead back to themselves.

Fixpoints over a lattice: answers to questions that may lead back to themselves, the least one that all of them agree on.

Words in groups that are joined two at a time.

Strongly connected components of a call graph: functions that lead to one another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from torchrepro_lint.query.memo_tables import Again, Compute, Firm, Groups, Reads, others, words


class Allowance:
    """Counts down from ``most`` while a question is open; the outermost one begins anew, so no answer depends on earlier ones."""

    __slots__ = ("_left", "_most", "_open")

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = 0
        self._open = 0

    def begin(self) -> None:
        """A question, which itself takes nothing; ``leave`` ends it."""
        if not self._open:
            self._left = self._most
        self._open += 1

    def enter(self) -> bool:
        """Take one, until ``leave``. Returns false, and there is nothing to leave, where none is left."""
        if self._open and self._left <= 0:
            return False
        self.begin()
        self._left -= 1
        return True

    def leave(self) -> None:
        """What was begun or entered last is done."""
        self._open -= 1


_Value = TypeVar("_Value")

_NEVER = 1 << 60


class Memo:
    """Solves recursive set equations depth first; a question that is being answered contributes nothing to itself.

    An answer depends on its question alone, never on what was asked before, so that what is reported for a file never
    depends on which files were given. Therefore an answer that owes something to such a cut is provisional: it serves
    until the question that was cut has been answered, and is then forgotten. And what is known of one question of a
    cycle is not used to answer another of that cycle. A question costs at most one walk over what it leads to.

    Who asks a question depends on all that its answer was worked out from; of a ``firm`` one on the answer alone. When files
    have changed, that is worked out again and compared, by ``reconsider``.
    """

    __slots__ = (
        *("_aside", "_cycles", "_firm", "_groups", "_known", "_lowest", "_open", "_provisional", "_reads", "_seen"),
        *("_trail", "busy", "secluded"),
    )

    def __init__(self, reads: Reads | None = None) -> None:
        self._reads = reads or Reads((), keeps=False)
        # Whether a question is being answered: what is worked out meanwhile may owe something to a cut.
        self.busy = False
        self.secluded = False
        self._clear()

    def _clear(self) -> None:
        self._known: dict[Hashable, tuple[str, ...]] = {}
        # For a known answer that was found on a cycle: all questions of the cycle.
        self._cycles: dict[Hashable, frozenset[Hashable]] = {}
        # What those depend on who ask a question, where answers are to be kept when files change.
        self._seen: dict[Hashable, int] = {}
        self._groups: Groups[Hashable] = Groups()
        # The firm answers that owe nothing to a cycle; those that are to be reconsidered, with what they were.
        self._firm: dict[Hashable, Firm] = {}
        self._aside: dict[Hashable, tuple[Firm, tuple[str, ...]]] = {}
        # Open questions, each with its depth; the least depth that was cut while the innermost one is answered.
        self._open: dict[Hashable, int] = {}
        self._lowest = _NEVER
        # Provisional answers, each with the least depth that it owes to; their questions in the order of answering.
        self._provisional: dict[Hashable, tuple[tuple[str, ...], int]] = {}
        self._trail: list[Hashable] = []

    def solve(self, key: Hashable, compute: Compute, *, firm: bool = False) -> tuple[str, ...]:
        """The sorted, distinct names that ``compute`` gives for ``key``."""
        if self._reads.keeps:
            self._reads.seen |= self._seen.get(key, 0)
        known = self._known.get(key)
        if known is not None and ((cycle := self._cycles.get(key)) is None or cycle.isdisjoint(self._open)):
            return known
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return ()
        if provisional := self._provisional.get(key):
            answer, depth = provisional
            self._lowest = min(self._lowest, depth)
            return answer
        return self._compute(key, compute, firm)

    def doubt(self) -> None:
        """What is being answered owes something to where it was asked: but for the outermost one no answer is kept."""
        if self._open:
            self._lowest = 0

    def definite(self, compute: Callable[[], _Value]) -> tuple[_Value, bool]:
        """What ``compute`` gives, perhaps in the midst of a question, and whether that owes nothing to a cut: then it is what it
        would be at any other time.
        """
        outside, self._lowest = self._lowest, _NEVER
        try:
            found = compute()
            return found, self._lowest == _NEVER
        finally:
            self._lowest = min(outside, self._lowest)

    def answers(self) -> Iterator[tuple[Hashable, tuple[str, ...], int]]:
        """What has been answered and what each answer was worked out from, but for answers on a cycle; where answers are
        firm, nothing.
        """
        if not self._reads.firm:
            yield from (
                (key, answer, self._seen.get(key, 0)) for key, answer in self._known.items() if key not in self._cycles
            )

    def enter(self, key: Hashable, answer: tuple[str, ...], seen: int) -> None:
        """Take over one of the ``answers`` that were given in the same state."""
        if key not in self._known and not self._reads.firm:
            self._known[key] = answer
            if self._reads.keeps:
                self._keep(key, seen)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """For what is worked out once for the whole project, perhaps in the midst of a question: nothing counts as asked.

        What is worked out so must not build on other such work, or it would matter which came first: ``secluded`` says so.
        """
        kept = [getattr(self, slot) for slot in self.__slots__]
        self._clear()
        self.busy = self.secluded = True
        try:
            with self._reads.apart():
                yield
        finally:
            for slot, value in zip(self.__slots__, kept, strict=True):
                setattr(self, slot, value)

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed (see ``reads``); to be asked between questions."""
        for key in self._groups.take(changed):
            self._seen.pop(key, None)
            self._cycles.pop(key, None)
            known, firm = self._known.pop(key, None), self._firm.pop(key, None)
            if known is not None and firm is not None:
                self._aside[key] = firm, known

    def reconsider(self) -> int:
        """Work out again the firm answers that were dropped; returns the bits of those that are others now."""
        aside, self._aside = self._aside, {}
        again = [self._again(key, *before) for key, before in sorted(aside.items(), key=lambda each: repr(each[0]))]
        return others(again, self._firm.values())

    def _again(self, key: Hashable, old: Firm, known: tuple[str, ...]) -> Again:
        same = self.solve(key, old.compute, firm=True) == known
        new = self._firm.get(key)
        return Again(old.bit, self._seen[key] if new is None else new.seen, same and new is not None)

    def _compute(self, key: Hashable, compute: Compute, firm: bool) -> tuple[str, ...]:
        busy, self.busy = self.busy, True
        depth = self._open[key] = len(self._open)
        outside, self._lowest = self._lowest, _NEVER
        mark = len(self._trail)
        read, self._reads.seen = self._reads.seen, 0
        try:
            found = set(compute())
            answer = words(tuple(found)) if len(found) == 1 else tuple(sorted(found))
        except BaseException:
            self._forget(mark)
            raise
        finally:
            del self._open[key]
            self.busy = busy
            seen = self._reads.seen
            self._reads.seen |= read
            inside, self._lowest = self._lowest, min(outside, self._lowest if self._lowest < depth else _NEVER)
        if inside < depth:
            self._suspend(key, answer, mark, inside)
            firm = False
        else:
            cycle = self._forget(mark) if len(self._trail) > mark else []
            self._settle(key, answer, cycle)
            firm = firm and self._reads.firm and not cycle
        if self._reads.keeps:
            self._keep(key, seen)
            if firm:
                told = self._seen[key] = self._reads.answer(key)
                self._firm[key] = Firm(compute, told, seen)
                self._reads.seen = read | told
        return answer

    def _keep(self, key: Hashable, seen: int) -> None:
        """Remember what an answer was worked out from. One of a cycle that is known may be worked out again in part."""
        self._seen[key] = self._groups.put(key, seen | self._seen.get(key, 0))

    def _settle(self, key: Hashable, answer: tuple[str, ...], cycle: list[Hashable]) -> None:
        self._known[key] = answer
        if cycle:
            self._cycles[key] = frozenset(cycle)

    def _suspend(self, key: Hashable, answer: tuple[str, ...], mark: int, lowest: int) -> None:
        """Keep an answer for as long as the question at depth ``lowest`` is open; what owed to ``key`` owes to that, too."""
        self._provisional[key] = (answer, lowest)
        for each in self._trail[mark:]:
            known, least = self._provisional[each]
            self._provisional[each] = (known, min(least, lowest))
        self._trail.append(key)

    def _forget(self, mark: int) -> list[Hashable]:
        """Drop the provisional answers since ``mark``; returns their questions."""
        dropped = self._trail[mark:]
        del self._trail[mark:]
        for each in dropped:
            del self._provisional[each]
        return dropped


_Answer = TypeVar("_Answer")

# So many changes an answer may go through before it gives up what changes.
_PATIENCE = 2


class Solver(Generic[_Answer]):
    """Solves recursive equations depth first, in rounds.

    A question that is asked while it is being answered gets what the rounds so far have found, at first nothing. The
    outermost question of a circle goes round until no answer of the circle changes; the answers within serve for one
    round. Answers only ever lose knowledge from round to round, so the rounds end; and they depend on the questions
    alone, not on which was asked first. Of the lattice it takes the least element, the join of two, and a widening join
    after which no answer changes for ever.
    """

    def __init__(
        self,
        nothing: _Answer,
        join: Callable[[_Answer, _Answer], _Answer],
        widened: Callable[[_Answer, _Answer], _Answer],
    ) -> None:
        self._nothing, self._join, self._widened = nothing, join, widened
        self._known: dict[Hashable, _Answer] = {}
        # Open questions with their depth, and what they are taken to be while they are open.
        self._open: dict[Hashable, int] = {}
        self._assumed: dict[Hashable, _Answer] = {}
        self._changes = 0
        self._times: dict[Hashable, int] = {}
        # The least depth of an open question that was asked since the innermost question was opened.
        self._lowest = _NEVER
        # Answers of this round that owe something to an open question of a depth, in their order.
        self._round: dict[Hashable, tuple[_Answer, int]] = {}

    @property
    def nesting(self) -> int:
        """How many questions are open."""
        return len(self._open)

    def knows(self, key: Hashable) -> bool:
        """Whether asking costs nothing."""
        return key in self._known or key in self._open or key in self._round

    def reset(self) -> None:
        """Forget what was open when an exception was raised."""
        self._open, self._assumed, self._times, self._round, self._lowest = {}, {}, {}, {}, _NEVER

    def solve(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        """The answer to a question."""
        if (known := self._known.get(key)) is not None:
            return known
        if (depth := self._open.get(key)) is not None:
            self._lowest = min(self._lowest, depth)
            return self._assumed.get(key, self._nothing)
        if (provisional := self._round.get(key)) is not None:
            self._lowest = min(self._lowest, provisional[1])
            return provisional[0]
        return self._answer(key, compute)

    def _answer(self, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        depth = self._open[key] = len(self._open)
        outside, start = self._lowest, len(self._round)
        while True:
            self._lowest, before = _NEVER, self._changes
            found = self._met(key, compute())
            inside = self._lowest
            if inside > depth:
                break
            if found != self._assumed.get(key, self._nothing):
                self._assumed[key] = found
                self._times[key] = self._times.get(key, 0) + 1
                self._changes += 1
            if inside < depth or self._changes == before:
                break
            self._since(start)
        del self._open[key]
        self._lowest = min(outside, inside) if inside < depth else outside
        if inside < depth:
            self._suspend(key, found, start, inside)
        else:
            self._settle(key, found, start)
        return found

    def _met(self, key: Hashable, found: _Answer) -> _Answer:
        """What was found, with what the rounds before have found; what grows from round to round is given up."""
        assumed = self._assumed.get(key, self._nothing)
        return self._widened(assumed, found) if self._times.get(key, 0) > _PATIENCE else self._join(assumed, found)

    def _since(self, start: int) -> list[tuple[Hashable, _Answer, int]]:
        """Take back the answers of the round since its beginning."""
        taken = []
        while len(self._round) > start:
            key, (found, lowest) = self._round.popitem()
            taken.append((key, found, lowest))
        return taken

    def _suspend(self, key: Hashable, found: _Answer, start: int, lowest: int) -> None:
        for each, what, least in reversed(self._since(start)):
            self._round[each] = (what, min(least, lowest))
        self._round[key] = (found, lowest)

    def _settle(self, key: Hashable, found: _Answer, start: int) -> None:
        for each, what, _ in self._since(start):
            self._known[each] = what
            self._assumed.pop(each, None)
            self._times.pop(each, None)
        self._known[key] = found
        self._assumed.pop(key, None)
        self._times.pop(key, None)


class UnionFind:
    """At first each word is a group by itself."""

    def __init__(self, words: Iterable[str]) -> None:
        self._above = {word: word for word in words}

    def join(self, one: str, other: str) -> None:
        """Both are in one group from here on."""
        self._above[self._top(one)] = self._top(other)

    def together(self, one: str, other: str) -> bool:
        """Whether both are in one group."""
        return self._top(one) == self._top(other)

    def sorted(self) -> tuple[tuple[str, ...], ...]:
        """The groups, and what is in them, sorted."""
        found: dict[str, list[str]] = {}
        for word in sorted(self._above):
            found.setdefault(self._top(word), []).append(word)
        return tuple(sorted(map(tuple, found.values())))

    def sums(self, weights: Mapping[str, int]) -> Collection[int]:
        """What the words of each group weigh together."""
        found: dict[str, int] = {}
        for word, weight in weights.items():
            top = self._top(word)
            found[top] = found.get(top, 0) + weight
        return found.values()

    def _top(self, word: str) -> str:
        above = self._above
        while above[word] != word:
            above[word] = word = above[above[word]]
        return word


class Edge(Protocol):
    """An edge of the graph, kept with the function that it leads to."""

    @property
    def caller(self) -> str:
        """The function that it leads from."""
        ...


def ring(entries: Mapping[str, Sequence[Edge]], function: str) -> frozenset[str]:
    """The functions that lead to one and that it leads to, itself among them; none where it does not lead to itself.

    ``entries`` has the functions that enter each, as ``Run`` has them.
    """
    leading: dict[str, list[str]] = {}
    queue, above = [function], {function}
    while queue:
        inner = queue.pop()
        for each in entries.get(inner, ()):
            leading.setdefault(each.caller, []).append(inner)
            if each.caller not in above:
                above.add(each.caller)
                queue.append(each.caller)
    found = _behind(function, leading)
    return frozenset(found if function in found else ())


def _behind(function: str, leading: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    queue = [function]
    while queue:
        for each in leading.get(queue.pop(), ()):
            if each not in found:
                found.add(each)
                queue.append(each)
    return found
