"""All operators, family by family. A new family is a module beside this one, and a line here."""

from __future__ import annotations

from benchmarks.plants import Operator, generators, loaders, operations, orders, runs, seeds

OPERATORS: tuple[Operator, ...] = (
    *generators.OPERATORS,
    *loaders.OPERATORS,
    *operations.OPERATORS,
    *orders.OPERATORS,
    *runs.OPERATORS,
    *seeds.OPERATORS,
)
