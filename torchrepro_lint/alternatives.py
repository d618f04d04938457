"""What to write instead of an operation, as ``rules/catalogue/alternatives.toml`` has it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchrepro_lint.entries import Condition, Row, compatible, conditions
from torchrepro_lint.source.files import read_table, release


class Alternative(NamedTuple):
    """``write`` is advice in a few words, good from torch ``since`` on, for the case ``when`` of the operations."""

    operations: tuple[str, ...]
    write: str
    since: str
    when: tuple[Condition, ...]


def instead(row: Row, version: str) -> tuple[str, ...]:
    """What is known to be deterministic in a torch version in the stead of a row's operation; best first.

    Nothing is known of MPS.
    """
    if row.devices == ("mps",):
        return ()
    return tuple(
        one.write
        for one in alternatives()
        if row.operation in one.operations and release(one.since) <= release(version) and compatible(one.when, row.when)
    )


@lru_cache(maxsize=1)
def alternatives() -> tuple[Alternative, ...]:
    """All rows of the table."""
    return tuple(
        Alternative(tuple(table["operations"]), table["write"], table["since"], conditions(table.get("when", ())))
        for table in read_table("alternatives.toml")["alternative"]
    )
