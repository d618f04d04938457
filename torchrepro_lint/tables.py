"""The tables of the catalogue that are the same for every torch release; each is read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from torchrepro_lint.entries import Consumer, ErrorName, Seeder, Spelling, conditions, spelling
from torchrepro_lint.resources import read_table

Match: TypeAlias = Callable[[str], bool]


@lru_cache(maxsize=1)
def spellings() -> dict[str, tuple[Spelling, ...]]:
    """The spellings of each operation, by the operation's name."""
    return {
        table["name"]: tuple(spelling(one) for one in table["spelling"])
        for table in read_table("operations.toml")["operation"]
    }


class Consumers(NamedTuple):
    """Consumers by name, and those whose names are given by a pattern."""

    named: dict[str, tuple[Consumer, ...]]
    patterns: tuple[tuple[Match, tuple[Consumer, ...]], ...]


@lru_cache(maxsize=1)
def consumers() -> Consumers:
    """All consumers."""
    named: dict[str, tuple[Consumer, ...]] = {}
    patterns: list[tuple[Match, tuple[Consumer, ...]]] = []
    for table in read_table("consumers.toml")["consumer"]:
        for name in table["names"]:
            rows = (_consumer(table, name),)
            if "*" in name:
                patterns.append((_matcher(name, table.get("except", ())), rows))
            else:
                named[name] = named.get(name, ()) + rows
    return Consumers(named, tuple(patterns))


def _consumer(table: dict[str, Any], name: str) -> Consumer:
    return Consumer(
        spelling({key: value for key, value in table.items() if key != "when"}, name),
        table["family"],
        table["phase"],
        table.get("generator"),
        conditions(table.get("when", ())),
        table["evidence"],
    )


def _matcher(pattern: str, exceptions: Iterable[str]) -> Match:
    """Whether a name fits a pattern whose ``*`` stands for one or more words, and none of the exceptions."""
    fits, barred = (re.compile("|".join(map(_expression, ones)) or r"(?!)") for ones in ([pattern], exceptions))
    return lambda name: bool(fits.fullmatch(name)) and not barred.fullmatch(name)


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", r"[\w.]+")


@lru_cache(maxsize=1)
def seeders() -> dict[str, Seeder]:
    """All seeders by name."""
    return {
        name: Seeder(
            name,
            tuple(table.get("families", ())),
            tuple(table.get("sets", ())),
            conditions(table.get("sets_when", ())),
            table.get("default", "required"),
            table.get("none", table.get("default", "required")),
            table.get("verified", True),
            table["evidence"],
        )
        for table in read_table("seeders.toml")["seeder"]
        for name in table["names"]
    }


@lru_cache(maxsize=1)
def error_names() -> tuple[ErrorName, ...]:
    """All run-time error names, of every release."""
    return tuple(
        ErrorName(
            table["name"],
            table["since"],
            table.get("until"),
            tuple(table["operations"]),
            tuple(table["calls"]),
            tuple(table["device"]),
            table["phase"],
            conditions(table.get("when", ())),
            table["evidence"],
        )
        for table in read_table("error_names.toml")["error"]
    )
