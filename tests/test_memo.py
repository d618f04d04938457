"""Answers to questions in a circle do not depend on which was asked first, and cost one walk each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from torchrepro_lint.memo import Memo

Links = dict[str, tuple[str, ...]]


def asker(links: Links) -> Callable[[str], tuple[str, ...]]:
    """Questions about a graph: a node gives its own name, and what its successors give, marked as come through it."""
    memo = Memo()

    def parts(node: str) -> Iterator[str]:
        yield node
        for each in links[node]:
            yield from (f"{name}.{node}" if name.count(".") < 2 else name for name in ask(each))

    def ask(node: str) -> tuple[str, ...]:
        return memo.solve(node, lambda: parts(node))

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
    memo = Memo()

    def fails() -> Iterator[str]:
        yield from memo.solve("inner", lambda: memo.solve("outer", fails))
        raise RecursionError

    with pytest.raises(RecursionError):
        memo.solve("outer", fails)
    assert memo.solve("outer", lambda: memo.solve("inner", lambda: ("x",))) == ("x",)


def test_all_questions_of_a_dense_circle_cost_a_walk_each() -> None:
    count = 60
    memo = Memo()
    evaluated: list[int] = []

    def parts(node: int) -> Iterator[str]:
        evaluated.append(node)
        yield str(node)
        for other in range(count):
            yield from ask(other)

    def ask(node: int) -> tuple[str, ...]:
        return memo.solve(node, lambda: parts(node))

    assert all(len(ask(node)) == count for node in range(count))
    assert len(evaluated) <= count * count
