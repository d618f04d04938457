"""Words in groups that are joined two at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


class Groups:
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
