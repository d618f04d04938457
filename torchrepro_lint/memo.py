"""Remembered answers to questions that may lead back to themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

_NEVER = 1 << 60


class Memo:
    """Solves recursive set equations depth first; a question that is being answered contributes nothing to itself.

    An answer is kept only if it owes nothing to such a cut above it. So an answer never depends on which question was
    asked first, and what is reported for a file never depends on which files were given.
    """

    __slots__ = ("_known", "_lowest", "_open")

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[str, ...]] = {}
        self._open: dict[Hashable, int] = {}
        self._lowest = _NEVER

    def solve(self, key: Hashable, compute: Callable[[], Iterable[str]]) -> tuple[str, ...]:
        """The sorted, distinct names that ``compute`` gives for ``key``."""
        known = self._known.get(key)
        if known is not None:
            return known
        depth = self._open.get(key)
        if depth is not None:
            self._lowest = min(self._lowest, depth)
            return ()
        return self._compute(key, compute)

    def _compute(self, key: Hashable, compute: Callable[[], Iterable[str]]) -> tuple[str, ...]:
        depth = self._open[key] = len(self._open)
        outside, self._lowest = self._lowest, _NEVER
        try:
            answer = tuple(sorted(set(compute())))
        finally:
            del self._open[key]
            inside, self._lowest = self._lowest, min(outside, self._lowest if self._lowest < depth else _NEVER)
        if inside >= depth:
            self._known[key] = answer
        return answer
