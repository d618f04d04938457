"""Tabling: answers to cyclic queries do not depend on which was asked first, and cost one traversal each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from torchrepro_lint.call_stack import on_deep_stack
from torchrepro_lint.query.memo_tables import DependencyTracker, MemoTable
from torchrepro_lint.query.tabling import TablingSolver
from torchrepro_lint.trace.events import strongly_connected_components

Links = dict[str, tuple[str, ...]]


def asker(links: Links) -> Callable[[str], tuple[str, ...]]:
    """Questions about a graph: a node gives its own name, and what its successors give, marked as come through it."""
    memo = TablingSolver().table()

    def parts(node: str) -> Iterator[str]:
        yield node
        for each in links[node]:
            yield from (f"{name}.{node}" if name.count(".") < 2 else name for name in ask(each))

    def ask(node: str) -> tuple[str, ...]:
        return memo.of(node, lambda: parts(node))

    return ask


def test_a_chain_is_answered_in_full() -> None:
    assert asker({"a": ("b",), "b": ("c",), "c": ()})("a") == ("a", "b.a", "c.b.a")


def test_a_question_contributes_nothing_to_itself() -> None:
    assert asker({"a": ("a", "b"), "b": ("a",)})("a") == ("a", "b.a")


@pytest.mark.parametrize("seed", range(60))
def test_the_order_of_questions_does_not_matter(seed: int) -> None:
    draw = random.Random(seed)
    nodes = [f"n{number}" for number in range(draw.randint(3, 14))]
    links = {node: tuple(draw.sample(nodes, draw.randint(0, min(3, len(nodes))))) for node in nodes}
    alone = {node: asker(links)(node) for node in nodes}
    for _ in range(5):
        ask = asker(links)
        draw.shuffle(nodes)
        assert {node: ask(node) for node in nodes} == alone


def test_a_failed_answer_leaves_nothing_behind() -> None:
    memo = TablingSolver().table()

    def fails() -> Iterator[str]:
        yield from memo.of("inner", lambda: memo.of("outer", fails))
        raise RecursionError

    with pytest.raises(RecursionError):
        memo.of("outer", fails)
    assert memo.of("outer", lambda: memo.of("inner", lambda: ("x",))) == ("x",)


def test_all_questions_of_a_dense_circle_cost_a_walk_each() -> None:
    count = 60
    memo = TablingSolver().table()
    evaluated: list[int] = []

    def parts(node: int) -> Iterator[str]:
        evaluated.append(node)
        yield str(node)
        for other in range(count):
            yield from ask(other)

    def ask(node: int) -> tuple[str, ...]:
        return memo.of(node, lambda: parts(node))

    assert all(len(ask(node)) == count for node in range(count))
    assert len(evaluated) <= count * count


class _Following:
    """Answers about a graph that are kept while it changes; the successors of a node are in a file of its own."""

    def __init__(self, links: Links) -> None:
        self._links = dict(links)
        self._reads = DependencyTracker(links, incremental=True, early_cutoff=True)
        self._solver = TablingSolver(self._reads)
        self._table = self._solver.table()
        self.walked: list[str] = []

    def ask(self, node: str) -> tuple[str, ...]:
        return self._table.of(node, lambda: self._parts(node))

    def change(self, node: str, links: tuple[str, ...]) -> None:
        """Forget what does not hold any more."""
        self._links[node] = links
        self._reads.begin_revision(self._reads.bits[node])
        for table in self._solver.tables:
            table.invalidate(self._reads.bits[node])

    def _parts(self, node: str) -> Iterator[str]:
        self.walked.append(node)
        self._reads.record_read(node)
        yield node
        for each in self._links[node]:
            # So that one answer may be the same though another in it is not.
            yield from (name for name in self.ask(each) if (len(name) + int(node[1:])) % 3)


# In the last two, an answer comes out the same, but on another cycle.
@pytest.mark.parametrize("seed", [*range(150), 518, 910])
def test_answers_follow_changes(seed: int) -> None:
    draw = random.Random(seed)
    nodes = [f"n{10 ** draw.randint(0, 3) + number}" for number in range(draw.randint(3, 10))]
    most = draw.choice((1, 2, 3))
    links = {node: tuple(draw.sample(nodes, draw.randint(0, most))) for node in nodes}
    following = _Following(links)
    for _ in range(15):
        for node in draw.sample(nodes, draw.randint(0, len(nodes))):
            following.ask(node)
        changed = draw.choice(nodes)
        links[changed] = tuple(draw.sample(nodes, draw.randint(0, most)))
        following.change(changed, links[changed])
        fresh = {node: _Following(links).ask(node) for node in nodes}
        assert {node: following.ask(node) for node in nodes} == fresh


def test_an_answer_that_is_the_same_concerns_nobody() -> None:
    links: Links = {"n2": ("n3",), "n3": ("n4", "n5"), "n4": ("n5",), "n5": ()}
    following = _Following(links)
    following.ask("n2")
    following.walked.clear()
    following.change("n4", ())
    assert following.ask("n2") == ("n2", "n3", "n4", "n5")
    assert following.walked == ["n4"]


def test_an_answer_outside_of_the_equations_is_remembered_unless_a_query_that_it_leads_to_is_open() -> None:
    solver = TablingSolver()
    memo, table = solver.table(), MemoTable[str, tuple[str, ...]](DependencyTracker((), incremental=False))
    computed, told = list[str](), list[tuple[str, ...]]()

    def ask(key: str, compute: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        def computing() -> tuple[str, ...]:
            computed.append(key)
            return compute()

        return solver.final_answer(table, key, computing)

    def inner() -> tuple[str, ...]:
        return memo.of("inner", lambda: memo.of("outer", outer))

    def outer() -> tuple[str, ...]:
        told.extend((ask("free", lambda: memo.of("free", lambda: ("a",))), ask("cut", inner), ask("cut", inner)))
        return ("b",)

    assert memo.of("outer", outer) == ("b",)
    # What leads back to the open query lasts until that is answered.
    assert (told, computed) == ([("a",), (), ()], ["free", "cut"])
    # Then it is another. That holds until a query of the cycle is open again.
    assert ask("cut", inner) == ask("cut", inner) == ("b",)
    assert (ask("free", tuple), computed) == (("a",), ["free", "cut", "cut", "cut"])
    assert table.find("cut") is None


def test_what_is_doubted_is_kept_for_the_outermost_question_alone() -> None:
    solver, asked = TablingSolver(), list[str]()
    memo = solver.table()

    def doubted() -> tuple[str, ...]:
        asked.append("doubted")
        solver.mark_provisional()
        return ("x",)

    def outermost() -> tuple[str, ...]:
        asked.append("outermost")
        return (*memo.of("inner", doubted), *memo.of("inner", doubted))

    assert memo.of("outer", outermost) == memo.of("outer", outermost) == ("x",)
    assert asked == ["outermost", "doubted"]
    assert memo.of("inner", doubted) == ("x",)
    assert asked == ["outermost", "doubted", "doubted"]


def _counted(
    links: dict[int, tuple[int, ...]], own: Callable[[int, tuple[str, ...]], Iterator[str]]
) -> tuple[Callable[[int], tuple[str, ...]], list[int]]:
    """Questions about a graph, where ``own`` gives the answer of a node from those of its successors; and what was evaluated."""
    memo = TablingSolver().table()
    evaluated: list[int] = []

    def parts(node: int) -> Iterator[str]:
        evaluated.append(node)
        return own(node, tuple(name for each in links[node] for name in ask(each)))

    def ask(node: int) -> tuple[str, ...]:
        return memo.of(node, lambda: parts(node))

    return ask, evaluated


def _ring(count: int) -> dict[int, tuple[int, ...]]:
    return {node: ((node + 1) % count, (node * 7 + 3) % count) for node in range(count)}


def test_a_circle_without_answers_is_solved_in_one_pass() -> None:
    ask, evaluated = _counted(_ring(150), lambda _node, found: iter(found))
    assert on_deep_stack(lambda: [ask(node) for node in range(150)]) == [()] * 150
    assert len(evaluated) == 150


def test_a_large_circle_is_solved_in_a_few_passes() -> None:
    def own(node: int, found: tuple[str, ...]) -> Iterator[str]:
        yield from found
        yield from ("here",) if node == 1234 else ()

    ask, evaluated = _counted(_ring(2000), own)
    assert on_deep_stack(lambda: [ask(node) for node in range(2000)]) == [("here",)] * 2000
    assert len(evaluated) < 10 * 2000


@pytest.mark.parametrize("seed", range(20))
def test_a_large_circle_has_its_least_solution(seed: int) -> None:
    """Each answer is all that can be reached, whatever was asked first, also from outside of the circle and on its way out."""
    draw = random.Random(seed)
    count = draw.randint(250, 400)
    links = {node: ((node + 1) % count, *draw.sample(range(count + 30), 2)) for node in range(count)}
    links |= {
        node: tuple(draw.sample(range(node + 1, count + 30), min(1, count + 29 - node)))
        for node in range(count, count + 30)
    }
    marked = {node: f"m{node}" for node in draw.sample(range(count + 30), 8)}

    def own(node: int, found: tuple[str, ...]) -> Iterator[str]:
        yield from found
        yield from (marked[node],) if node in marked else ()

    ask, _ = _counted(links, own)
    order = draw.sample(range(count + 30), count + 30)
    found = dict(zip(order, on_deep_stack(lambda: [ask(node) for node in order]), strict=True))
    for node in order:
        reached, queue = {node}, [node]
        while queue:
            new = set(links[queue.pop()]) - reached
            reached |= new
            queue += new
        assert found[node] == tuple(sorted(marked[each] for each in reached if each in marked))


def test_a_large_circle_whose_answers_would_grow_for_ever_is_broken_as_a_small_one() -> None:
    def own(node: int, found: tuple[str, ...]) -> Iterator[str]:
        return iter((f"{name}+" for name in found) if node else ("x", *(f"{name}+" for name in found)))

    def answers(order: list[int]) -> dict[int, tuple[str, ...]]:
        ask, _ = _counted({node: ((node + 1) % 260,) for node in range(260)}, own)
        return on_deep_stack(lambda: {node: ask(node) for node in order})

    forward = answers(list(range(260)))
    assert forward == answers(list(range(260))[::-1])
    assert forward[0] == ("x",)
    assert forward[259] == ("x+",)


def test_a_large_circle_whose_answers_multiply_is_broken_before_they_are_many() -> None:
    """As ``x = x.view(n)`` does in several branches: a round makes eight names of each, so that ten rounds would make 8 ** 10."""

    def own(node: int, found: tuple[str, ...]) -> Iterator[str]:
        ends = ("+", "-") if node in (50, 100, 150) else ("",)
        return iter([f"{name}{end}" for name in found for end in ends] + ["x"] * (node == 0))

    def answers(order: list[int]) -> dict[int, tuple[str, ...]]:
        ask, _ = _counted({node: ((node + 1) % 200,) for node in range(200)}, own)
        return on_deep_stack(lambda: {node: ask(node) for node in order})

    forward = answers(list(range(200)))
    assert forward == answers(list(range(200))[::-1])
    assert [len(forward[node]) for node in (0, 1, 51, 101, 151)] == [1, 8, 4, 2, 1]


@pytest.mark.parametrize("seed", range(40))
def test_components_are_those_of_functions_that_reach_each_other(seed: int) -> None:
    draw = random.Random(seed)
    names = [f"f{number}" for number in range(draw.randint(1, 9))]
    edges = {name: tuple(_Edge(draw.choice(names)) for _ in range(draw.randint(0, 2))) for name in names}

    def above(name: str) -> set[str]:
        found: set[str] = set()
        queue = [name]
        while queue:
            new = {each.caller for each in edges[queue.pop()]} - found
            found |= new
            queue += new
        return found

    reach = {name: above(name) for name in names}
    wanted = {
        name: frozenset(each for each in names if each in reach[name] and name in reach[each])
        for name in names
        if name in reach[name]
    }
    assert strongly_connected_components(edges) == wanted


def test_the_components_of_a_long_ring_take_no_recursion() -> None:
    edges = {f"f{number}": (_Edge(f"f{(number + 1) % 20_000}"),) for number in range(20_000)}
    assert set(map(len, strongly_connected_components(edges).values())) == {20_000}


class _Edge(NamedTuple):
    caller: str
