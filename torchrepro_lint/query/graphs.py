"""Graph algorithms that queries use: union-find, and strongly connected components."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol


class UnionFind:
    """Union-find over words: at first each word is a group by itself."""

    def __init__(self, words: Iterable[str]) -> None:
        self._above = {word: word for word in words}

    def join(self, one: str, other: str) -> None:
        """Put both words in one group."""
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
        """The total weight of each group."""
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


class CallEdge(Protocol):
    """A call edge, stored with its callee."""

    @property
    def caller(self) -> str:
        """The calling function."""
        ...


def strongly_connected_components(callers: Mapping[str, Sequence[CallEdge]]) -> dict[str, frozenset[str]]:
    """The strongly connected component of each function of a call graph that can reach itself.

    ``callers`` has the call edges into each function. This is Kosaraju's algorithm, in linear time and without recursion.
    """
    above = {function: dict.fromkeys(each.caller for each in edges) for function, edges in callers.items()}
    below: dict[str, list[str]] = {}
    for function, others in above.items():
        for each in others:
            below.setdefault(each, []).append(function)
    seen: set[str] = set()
    order = [each for start in above for each in _postorder(start, above, seen)]
    found: dict[str, frozenset[str]] = {}
    seen = set()
    for start in reversed(order):
        component = frozenset(_postorder(start, below, seen))
        if len(component) > 1 or start in above.get(start, ()):
            found.update(dict.fromkeys(component, component))
    return found


def _postorder(start: str, graph: Mapping[str, Iterable[str]], seen: set[str]) -> list[str]:
    """What is reached from a node and not yet ``seen``, each after what it reaches first."""
    found: list[str] = []
    work = [] if start in seen else [(start, iter(graph.get(start, ())))]
    seen.add(start)
    while work:
        node, left = work[-1]
        following = next((each for each in left if each not in seen), None)
        if following is None:
            work.pop()
            found.append(node)
        else:
            seen.add(following)
            work.append((following, iter(graph.get(following, ()))))
    return found
