"""Strongly connected components of a call graph: functions that lead to one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


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
