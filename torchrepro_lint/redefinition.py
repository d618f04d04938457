"""Which definitions of a function are in force: in one block, the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Define
from torchrepro_lint.syntax.visitor import blocks

if TYPE_CHECKING:
    from torchrepro_lint.syntax.nodes import Facts, Function, Statement


def in_force(facts: Facts) -> Iterator[Function]:
    """The functions of a file but for those that a later ``def`` of the same block replaces.

    Decorated ones are all kept: a property's setter, an overload, a registered variant add to the first.
    """
    counts: dict[str, int] = {}
    for function in facts.functions:
        counts[function.name] = counts.get(function.name, 0) + 1
    repeated = {name for name, count in counts.items() if count > 1}
    replaced = _replaced(facts, repeated) if repeated else frozenset()
    yield from (each for each in facts.functions if each.start not in replaced or each.decorators)


def _replaced(facts: Facts, names: set[str]) -> frozenset[int]:
    """The offsets of the ``def`` statements that are followed by another of their name in their block."""
    found: set[int] = set()
    queue = [facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)]
    while queue:
        body: tuple[Statement, ...] = queue.pop()
        last: dict[str, int] = {}
        for statement in body:
            if isinstance(statement, Define) and statement.name in names:
                if statement.name in last:
                    found.add(last[statement.name])
                last[statement.name] = statement.start
            queue.extend(blocks(statement))
    return frozenset(found)
