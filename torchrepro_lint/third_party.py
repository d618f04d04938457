"""Nondeterministic operations of other libraries, as ``rules/catalogue/third_party.toml`` has them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchrepro_lint.entries import Condition, Spelling, conditions, spelling
from torchrepro_lint.source.files import read_table


class Foreign(NamedTuple):
    """An operation that torch's flag neither changes nor reports.

    ``argument`` makes it deterministic where it is true, from release ``since`` of the library (empty: not known);
    ``instead`` is what to write where no argument helps. ``source`` is the version that the row was read from.
    """

    spelling: Spelling
    library: str
    phase: str
    when: tuple[Condition, ...]
    cause: str
    argument: str
    since: str
    instead: str
    source: str
    evidence: str


@lru_cache(maxsize=1)
def foreign() -> dict[str, tuple[Foreign, ...]]:
    """The rows of the table by each of their names."""
    found: dict[str, tuple[Foreign, ...]] = {}
    for table in read_table("third_party.toml")["operation"]:
        for name in table["names"]:
            row = Foreign(
                spelling({key: value for key, value in table.items() if key != "when"}, name),
                table["library"],
                table["phase"],
                conditions(table.get("when", ())),
                table["cause"],
                table.get("argument", ""),
                table.get("since", ""),
                table.get("instead", ""),
                table["source"],
                table["evidence"],
            )
            found[name] = (*found.get(name, ()), row)
    return found
