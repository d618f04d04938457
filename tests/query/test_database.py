"""Queries give what a computation from nothing gives, after any edits, and run again only where an edit concerns them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrepro_lint import limits
from torchrepro_lint.query.cycles import FixpointSolver, Lattice
from torchrepro_lint.query.database import Database, query
from torchrepro_lint.query.early_cutoff import VerifiedTable
from torchrepro_lint.query.memo_tables import DependencyTracker, MemoTable
from torchrepro_lint.query.tabling import SetEquations

FILES = tuple(f"f{number}" for number in range(5))
QUERIES = 12


class Program:
    """A program of queries without circles: each reads files and asks queries with greater numbers."""

    def __init__(
        self, reads: Sequence[frozenset[str]], asks: Sequence[frozenset[int]], *, watched: bool = True
    ) -> None:
        self.texts = dict.fromkeys(FILES, 0)
        self._reads, self._asks = reads, asks
        tracker = DependencyTracker(FILES, incremental=True, early_cutoff=watched)
        self.database = Database(tracker)
        self.database.asker = self
        self.ran: list[tuple[str, int]] = []

    def edit(self, path: str, text: int) -> None:
        self.texts[path] = text
        self.database.invalidate(self.database.reads.bits[path])

    def value(self, number: int, ask: Callable[[int], int]) -> int:
        found = number
        for path in sorted(self._reads[number]):
            self.database.reads.record_read(path)
            found += self.texts[path]
        # So that many edits change nothing.
        return (found + sum(ask(each) for each in sorted(self._asks[number]))) // 3

    def ask(self, number: int) -> int:
        return (self.plain, self.compared, self.bounded, self.also_compared)[number % 4](number)

    def fresh(self, number: int) -> int:
        return self.value(number, self.fresh)

    @query()
    def plain(self, number: int) -> int:
        self.ran.append(("plain", number))
        return self.value(number, self.ask)

    @query(cutoff=True)
    def compared(self, number: int) -> int:
        self.ran.append(("compared", number))
        return self.value(number, self.ask)

    @query(cutoff=True)
    def also_compared(self, number: int) -> int:
        self.ran.append(("also compared", number))
        return self.value(number, self.ask)

    @query(lru=1)
    def bounded(self, number: int) -> int:
        self.ran.append(("bounded", number))
        return self.value(number, self.ask)


SUBSETS = st.lists(st.frozensets(st.sampled_from(FILES), max_size=2), min_size=QUERIES, max_size=QUERIES)
EDGES = st.tuples(
    *(st.frozensets(st.integers(number + 1, QUERIES - 1), max_size=3) for number in range(QUERIES - 1)),
    st.just(frozenset[int]()),
)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(FILES), st.integers(0, 3), st.lists(st.integers(0, QUERIES - 1), max_size=QUERIES, unique=True)
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(SUBSETS, EDGES, EDITS, st.booleans())
def test_answers_are_those_of_a_computation_from_nothing(
    reads: list[frozenset[str]],
    asks: tuple[frozenset[int], ...],
    edits: list[tuple[str, int, list[int]]],
    watched: bool,
) -> None:
    program = Program(reads, asks, watched=watched)
    for path, text, asked in edits:
        # In the order that hypothesis draws: an answer does not depend on it.
        assert [program.ask(each) for each in asked] == [program.fresh(each) for each in asked]
        program.edit(path, text)
    assert [program.ask(each) for each in range(QUERIES)] == [program.fresh(each) for each in range(QUERIES)]


def chain(first: int) -> Program:
    """``first`` asks the next number, which reads ``f0``; 0 is plain, 1 under early cutoff, 2 bounded."""
    nothing, read = frozenset[str](), frozenset({"f0"})
    reads = [read if number == first + 1 else nothing for number in range(QUERIES)]
    asks = [frozenset({first + 1}) if number == first else frozenset[int]() for number in range(QUERIES)]
    return Program(reads, asks)


def test_an_answer_that_comes_out_the_same_ends_the_wave() -> None:
    program = chain(0)
    program.edit("f0", 3)
    assert program.ask(0) == program.fresh(0)
    program.ran.clear()
    program.edit("f0", 4)  # a third of it is the same
    program.ask(0)
    assert program.ran == [("compared", 1)]
    program.edit("f0", 9)
    program.ask(0)
    assert program.ran == [("compared", 1), ("compared", 1), ("plain", 0)]


def test_an_answer_that_is_not_asked_for_long_is_dropped() -> None:
    program = chain(0)
    program.ask(0)
    for text in range(limits.MAX_STALE_REVISIONS + 2):
        program.edit("f0", text)
    table = program.database.table_of(Program.compared)
    assert table.entries() == []
    assert program.ask(0) == program.fresh(0)
    assert len(table.entries()) == 1


def test_what_changed_while_an_answer_held_is_not_looked_at_again() -> None:
    """Or an edit would cost more with each that came before."""
    reads = DependencyTracker(FILES, incremental=True, early_cutoff=True)
    table = VerifiedTable(reads, None, compare=True, positional=False)
    table.of("question", lambda: reads.record_read("f0"))
    (answer,) = reads.asked

    def edit(path: str) -> bool:
        reads.begin_revision(reads.bits[path])
        table.invalidate(reads.bits[path])
        return table.knows("question")

    assert all(edit("f1") for _ in range(3 * limits.MAX_STALE_REVISIONS))
    assert not edit("f0")
    assert not edit("f1")
    assert reads.changed_since(answer.verified) == [reads.bits["f0"], reads.bits["f1"]]
    assert len(reads.changed_since(0)) == limits.MAX_STALE_REVISIONS


def test_an_answer_by_a_place_is_not_computed_again_after_an_edit_of_its_file() -> None:
    """Its key may be a part of the file as it was."""
    tracker = DependencyTracker(FILES, incremental=True, early_cutoff=True)
    solver = FixpointSolver(Lattice(frozenset[str](), frozenset.union, frozenset.union), tracker)
    table: MemoTable[str, frozenset[str]] = solver.table(compare=True)
    ran: list[str] = []

    def at(path: str, *asks: Callable[[], frozenset[str]]) -> frozenset[str]:
        def compute() -> frozenset[str]:
            ran.append(path)
            tracker.record_read(path)
            return frozenset({path}).union(*(ask() for ask in asks))

        return table.of(path, compute)

    def ask() -> frozenset[str]:
        return at("f0", lambda: at("f1", lambda: at("f2")))

    def edit(path: str) -> list[str]:
        ran.clear()
        tracker.begin_revision(tracker.bits[path])
        table.invalidate(tracker.bits[path])
        ask()
        return ran

    ask()
    # Its answer counts as changed, and that of ``f1`` comes out the same.
    assert edit("f2") == ["f1", "f2"]
    assert edit("f1") == ["f0", "f1"]
    assert edit("f3") == []


def test_what_an_edit_does_not_concern_is_not_asked_again() -> None:
    program = chain(0)
    program.ask(0)
    program.ran.clear()
    program.edit("f1", 9)
    program.ask(0)
    assert program.ran == []


def test_answers_are_evicted_by_use() -> None:
    program = chain(0)
    for number in (2, 6, 10, 2):
        program.ask(number)
    assert program.ran.count(("bounded", 2)) == 2


def test_a_key_is_positional() -> None:
    """Or two keys would stand for one question."""
    with pytest.raises(TypeError):
        chain(0).plain(number=0)


def test_a_durable_table_is_restored_before_its_first_answer() -> None:
    restored: list[str] = []

    class _Stored(Program):
        @query(durable="numbers")
        def stored(self, number: int) -> int:
            return number

    program = _Stored([frozenset[str]()] * QUERIES, [frozenset[int]()] * QUERIES)
    program.database.reads.recall = lambda name: (
        restored.append(name),
        program.database.table_of(_Stored.stored).restore((1,), 7, 0),
    )[0]
    assert program.database.known(_Stored.stored) is None
    assert (program.stored(1), program.stored(2), restored) == (7, 2, ["numbers"])


SUCCESSORS = st.lists(st.frozensets(st.integers(0, 5), max_size=3), min_size=6, max_size=6)


ASKED = st.lists(st.integers(0, 5), max_size=6, unique=True)
GRAPH_EDITS = st.lists(st.tuples(st.integers(0, 5), st.frozensets(st.integers(0, 5), max_size=3), ASKED), max_size=8)


@settings(max_examples=300, deadline=None)
@given(SUCCESSORS, GRAPH_EDITS, st.booleans(), st.booleans())
def test_a_fixpoint_follows_edits(
    successors: list[frozenset[int]],
    edits: list[tuple[int, frozenset[int], list[int]]],
    watched: bool,
    recomputes: bool,
) -> None:
    """What each node of a graph reaches, where the successors of a node are in a file of its own. What is not asked stays stale."""
    paths = [str(node) for node in range(6)]
    tracker = DependencyTracker(paths, incremental=True, early_cutoff=watched)
    solver = FixpointSolver(Lattice(frozenset[int](), frozenset.union, frozenset.union), tracker)
    table: MemoTable[int, frozenset[int]] = solver.table(compare=recomputes)
    now = list(successors)

    def ask(node: int) -> frozenset[int]:
        return table.of(node, lambda: step(node))

    def step(node: int) -> frozenset[int]:
        tracker.record_read(str(node))
        return frozenset({node}).union(*(ask(each) for each in sorted(now[node])))

    for node, changed, asked in [*edits, (0, now[0], list(range(6)))]:
        assert [ask(each) for each in asked] == [_reached(now, each) for each in asked]
        now[node] = changed
        tracker.begin_revision(tracker.bits[str(node)])
        table.invalidate(tracker.bits[str(node)])


def _reached(successors: Sequence[frozenset[int]], start: int) -> frozenset[int]:
    found, left = {start}, [start]
    while left:
        new = successors[left.pop()] - found
        found |= new
        left += new
    return frozenset(found)


NAMES, REACHED = SetEquations(), Lattice(frozenset[int](), frozenset.union, frozenset.union)


class Cyclic:
    """A program of queries about a graph that lead back to themselves: what each node names, and what it reaches. The successors of a
    node are in a file of its own. Of three nodes one has answers that are compared, one that are not, and one that are evicted.
    """

    def __init__(self, successors: Sequence[frozenset[int]], *, incremental: bool = True, watched: bool = True) -> None:
        self.successors = list(successors)
        paths = [str(node) for node in range(len(successors))]
        self.database = Database(DependencyTracker(paths, incremental=incremental, early_cutoff=watched))
        self.database.asker = self
        self.ran: list[int] = []

    def edit(self, node: int, successors: frozenset[int]) -> None:
        self.successors[node] = successors
        self.database.invalidate(self.database.reads.bits[str(node)])

    def read(self, node: int) -> list[int]:
        self.ran.append(node)
        self.database.reads.record_read(str(node))
        return sorted(self.successors[node])

    def names(self, node: int) -> tuple[str, ...]:
        return (self.compared_names, self.plain_names, self.bounded_names)[node % 3](node)

    def named(self, node: int) -> Iterator[str]:
        yield str(10**node)
        for each in self.read(node):
            # So that an answer may be the same though another in it is not, and depends on where a cycle is broken.
            found = self.remembered(each) if (each + node) % 2 else self.names(each)
            yield from (name for name in found if (len(name) + node) % 3)

    def remembered(self, node: int) -> tuple[str, ...]:
        """The same in a table outside of the cycles."""
        table = self.database.table("remembered", compare=True)
        return self.database.solver(NAMES).final_answer(table, node, lambda: self.names(node)[:3])

    @query(cutoff=True, cycle=NAMES)
    def compared_names(self, node: int) -> Iterator[str]:
        return self.named(node)

    @query(cycle=NAMES)
    def plain_names(self, node: int) -> Iterator[str]:
        return self.named(node)

    @query(lru=1, cycle=NAMES)
    def bounded_names(self, node: int) -> Iterator[str]:
        return self.named(node)

    def reached(self, node: int) -> frozenset[int]:
        return (self.compared_reach, self.plain_reach, self.bounded_reach)[node % 3](node)

    def reach(self, node: int) -> frozenset[int]:
        return frozenset({node}).union(*map(self.reached, self.read(node)))

    @query(cutoff=True, cycle=REACHED)
    def compared_reach(self, node: int) -> frozenset[int]:
        return self.reach(node)

    @query(cycle=REACHED)
    def plain_reach(self, node: int) -> frozenset[int]:
        return self.reach(node)

    @query(lru=1, cycle=REACHED)
    def bounded_reach(self, node: int) -> frozenset[int]:
        return self.reach(node)

    @query(cutoff=True)
    def both(self, node: int) -> tuple[tuple[str, ...], frozenset[int]]:
        """A query without a cycle, above those on cycles."""
        return self.names(node), self.reached(node)


@settings(max_examples=300, deadline=None)
@given(
    SUCCESSORS, GRAPH_EDITS, st.permutations(range(6)), st.sampled_from([(False, False), (True, False), (True, True)])
)
def test_answers_on_cycles_are_those_of_a_computation_from_nothing(
    successors: list[frozenset[int]],
    edits: list[tuple[int, frozenset[int], list[int]]],
    last: list[int],
    mode: tuple[bool, bool],
) -> None:
    """Each as if nothing else had been asked, in whatever order they are asked, and after any edits."""
    incremental, watched = mode
    program = Cyclic(successors, incremental=incremental, watched=watched)
    for node, changed, asked in [*edits, (0, successors[0], last)]:
        now = program.successors
        alone = {each: Cyclic(now).both(each) for each in asked}
        assert {each: program.both(each) for each in asked} == alone
        assert all(alone[each][1] == _reached(now, each) for each in asked)
        if incremental:
            program.edit(node, changed)


def test_an_answer_on_a_cycle_that_comes_out_the_same_ends_the_wave() -> None:
    """0 asks 3, which is on a cycle with 6 and asks 9, which asks 12."""
    links = {0: {3}, 3: {6, 9}, 6: {3}, 9: {12}}
    program = Cyclic([frozenset(links.get(node, ())) for node in range(13)])
    before = program.both(0)
    for node, successors, ran in ((12, {12}, {9, 12}), (1, {2}, set())):
        program.ran.clear()
        program.edit(node, frozenset(successors))
        assert program.both(0) == before
        # What a node reaches is not computed again only to be compared where its own file has changed.
        assert set(program.ran) == ran


def test_a_fixpoint_ends_though_answers_beside_its_cycle_are_evicted() -> None:
    """0 and 3 ask one another, and in each round again 2, 5 and 8, each of which asks itself."""
    links = {0: {3}, 3: {0, 2, 5, 8}, 2: {2}, 5: {5}, 8: {8}}
    program = Cyclic([frozenset(links.get(node, ())) for node in range(9)])
    assert program.reached(0) == _reached(program.successors, 0)


def test_a_table_holds_no_answer_that_depends_on_a_broken_cycle() -> None:
    """The answers on a cycle are not stored for the next process, and those that are stored are used there."""
    ring = [frozenset({3}), frozenset[int](), frozenset[int](), frozenset({0, 6}), *[frozenset[int]()] * 3]
    program = Cyclic(ring, watched=False)
    found = [program.names(each) for each in (3, 0)]
    table = program.database.table_of(Cyclic.compared_names)
    assert [key for key, _, _ in table.entries()] == [(6,)]
    other = Cyclic(ring, watched=False)
    for key, answer, depends_on in table.entries():
        other.database.table_of(Cyclic.compared_names).restore(key, answer, depends_on)
    assert [other.names(each) for each in (3, 0)] == found
    assert 6 not in other.ran


@pytest.mark.parametrize("asks", [Cyclic.compared_names, Cyclic.compared_reach])
def test_a_query_that_fails_amid_a_cycle_leaves_nothing_behind(asks: Callable[[Cyclic, int], object]) -> None:
    class _Failing(Cyclic):
        fails = True

        def read(self, node: int) -> list[int]:
            if self.fails and node == 6:
                raise RecursionError
            return super().read(node)

    program = _Failing([frozenset({3}), *[frozenset[int]()] * 2, frozenset({0, 6}), *[frozenset[int]()] * 3])
    with pytest.raises(RecursionError):
        asks(program, 0)
    program.fails = False
    assert [asks(program, each) for each in (0, 3)] == [asks(Cyclic(program.successors), each) for each in (0, 3)]
