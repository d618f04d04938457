"""The tables of the catalogue that are the same for every torch release; each is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from torchrepro_lint.entries import (
    Consumer,
    ErrorName,
    Framework,
    Seeder,
    Setting,
    Spelling,
    conditions,
    spelling,
)
from torchrepro_lint.index import Index, Table
from torchrepro_lint.source.files import read_table

# Of so many callables it is remembered whether they seed: it is asked at every call.
_MOST_NAMES = 4096


@lru_cache(maxsize=1)
def spellings() -> dict[str, tuple[Spelling, ...]]:
    """The spellings of each operation, by the operation's name."""
    return {
        table["name"]: tuple(spelling(one) for one in table["spelling"])
        for table in read_table("operations.toml")["operation"]
    }


@lru_cache(maxsize=1)
def consumers() -> Index[Consumer]:
    """What draws."""
    return Index((table, _consumer) for table in read_table("consumers.toml")["consumer"])


@lru_cache(maxsize=1)
def seeders() -> Index[Seeder]:
    """What seeds."""
    return Index((table, _seeder) for table in read_table("seeders.toml")["seeder"])


@lru_cache(maxsize=1)
def frameworks() -> Index[Framework]:
    """What calls of libraries do besides."""
    return Index((table, _framework) for table in read_table("frameworks.toml")["framework"])


@lru_cache(maxsize=_MOST_NAMES)
def seeder_of(name: str) -> Seeder | None:
    """What a callable seeds, itself or as the first that a library's row says of it."""
    found = seeders().of(name) or tuple(row.seeder for row in frameworks().of(name) if row.seeder is not None)
    return found[0] if found else None


def seeding_words(named: Callable[[str, str], bool]) -> frozenset[str]:
    """The last words of what seeds generators, as far as ``named`` says that it occurs (see ``Index.words``)."""
    return _words_of(lambda table: "families" in table or "seeds" in table, named)


def worker_seeding_words(named: Callable[[str, str], bool]) -> frozenset[str]:
    """The same of what makes a framework seed the workers of all loaders."""
    return _words_of(lambda table: any(each.flag == "worker-seeds" for each in _settings(table)), named)


def _words_of(wanted: Callable[[Table], bool], named: Callable[[str, str], bool]) -> frozenset[str]:
    return seeders().words(wanted, named) | frameworks().words(wanted, named)


def _consumer(table: Table, name: str) -> Consumer:
    return Consumer(
        spelling({key: value for key, value in table.items() if key != "when"}, name),
        table["family"],
        table["phase"],
        (table["generator"],) if isinstance(table.get("generator"), str) else tuple(table.get("generator", ())),
        conditions(table.get("when", ())),
        table["source"],
        table["evidence"],
    )


def _seeder(table: Table, name: str) -> Seeder:
    default = str(table.get("default", "required"))
    seed = str(table.get("seed", "seed"))
    known = {"parameters": [seed], **{key: value for key, value in table.items() if key != "when"}}
    return Seeder(
        spelling(known, name),
        tuple(table.get("families", ())),
        seed,
        default,
        table.get("none", default),
        conditions(table.get("when", ())),
        table.get("holds", False),
        table.get("within", False),
        tuple(_settings(table)),
        table["source"],
        table["evidence"],
    )


def _settings(table: Table) -> Iterator[Setting]:
    for each in table.get("sets", ()):
        for flag, value in each["to"].items():
            yield Setting(flag, value, conditions(each.get("when", ())))


def _framework(table: Table, name: str) -> Framework:
    draws = ({**table, **each} for each in table.get("draws", ()))
    seeds = (
        {**table, "parameters": table.get("parameters", ()), **table["seeds"], "sets": ()} if "seeds" in table else None
    )
    return Framework(
        spelling(table, name),
        tuple(_settings(table)),
        None if seeds is None else _seeder(seeds, name),
        tuple(_consumer(each, name) for each in draws),
        tuple(table.get("runs", ())),
        tuple(table.get("calls", ())),
        conditions(table["accelerates"]) if "accelerates" in table else None,
        table.get("matters", False),
        table.get("keeps", False),
        table.get("makes", ""),
        table.get("wraps", ""),
        table.get("gives", ""),
        table["source"],
        table["evidence"],
    )


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
