"""The catalogue for one torch release: what operations do, what draws random numbers, what seeds."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from torchrepro_lint.entries import Row, Spelling, compatible, conditions
from torchrepro_lint.source.files import documented_versions, read_table, release
from torchrepro_lint.tables import consumers, error_names, frameworks, seeder_of, seeders, spellings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchrepro_lint.entries import Consumer, Framework, Seeder, Setting

_LONG_NAME = re.compile(
    r"(torch\.nn)\.modules\.(?:[a-z]\w*\.)?([A-Z]\w*(?:\.\w+)?)|"
    r"(torch\.utils\.data)\.(?:sampler|dataset|dataloader|distributed)\.((?:[A-Z]|random_split)\w*(?:\.\w+)?)"
)
_NONDETERMINISTIC = ("raises", "silent", "warns")


@lru_cache(maxsize=32)
def load(version: str) -> Catalogue:
    """The catalogue for a torch version, ``2.13`` or ``2.13.0+cpu``; a newer one gets the newest release, an older one
    the oldest, and one between the release before it.
    """
    return Catalogue(version)


def canonical(name: str) -> str:
    """The public name of what torch's layers and loaders are named by through their modules (``torch.nn.modules.conv.Conv2d``)."""
    if not name.startswith(("torch.nn.modules.", "torch.utils.data.")):  # as nearly all do
        return name
    match = _LONG_NAME.fullmatch(name)
    return ".".join(filter(None, match.groups())) if match else name


class Catalogue:
    """What holds in ``version``. ``exact`` is false when that is only the release nearest to the one asked for.

    Names are absolute and dotted, methods of tensors ``torch.Tensor.cumsum``. Each table is read when first asked of.
    """

    def __init__(self, version: str) -> None:
        known = documented_versions()
        self.version = max((one for one in known if release(one) <= release(version)), key=release, default=known[0])
        self.exact = release(self.version) == release(version)

    def operation(self, name: str) -> tuple[Row, ...]:
        """The rows of a public call in the order in which they are to be tried: the first that holds decides."""
        return self._rows.get(canonical(name), ())

    def consumer(self, name: str) -> tuple[Consumer, ...]:
        """How a callable draws from a random generator; empty when it does not."""
        name = canonical(name)
        return consumers().of(name) + tuple(draw for row in frameworks().of(name) for draw in row.draws)

    def seeder(self, name: str) -> Seeder | None:
        """What a callable seeds."""
        return seeder_of(name)

    def framework(self, name: str) -> tuple[Framework, ...]:
        """What a callable of a library does with the program, by each row that tells of it."""
        return frameworks().of(name)

    def settings(self, name: str) -> tuple[tuple[Spelling, Setting], ...]:
        """The flags and environment variables that a callable sets, with the spelling that its conditions speak of."""
        rows: tuple[Seeder | Framework, ...] = (*seeders().of(name), *frameworks().of(name))
        return tuple((row.spelling, setting) for row in rows for setting in row.settings)

    def errors(self, row: Row) -> tuple[str, ...]:
        """The names that torch's error may carry where this row raises."""
        return tuple(
            error.name
            for error in error_names()
            if row.operation in error.operations
            and row.phase == error.phase
            and _covers(error.since, error.until, self.version)
            and _meet(row.devices, error.devices)
            and compatible(row.when, error.when)
        )

    @property
    def operations(self) -> tuple[str, ...]:
        """The public names of all operations, sorted."""
        return tuple(sorted(self._rows))

    @cached_property
    def _rows(self) -> dict[str, tuple[Row, ...]]:
        spelt = spellings()
        entry = {one.name: operation for operation, ones in spelt.items() for one in ones if not one.when}
        documented = [_documented(table, entry) for table in read_table(f"torch-{self.version}.toml")["operation"]]
        rows = _override(documented, list(_effective(self.version, documented)))
        found: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            for one in spelt[row.operation]:
                found[one.name].append(row._replace(spelling=one, when=one.when + row.when))
        return {name: tuple(rows) for name, rows in found.items()}


def _override(documented: list[Row], effective: list[Row]) -> list[Row]:
    """An operation's effective rows replace the documented ones of the devices that they speak of."""
    spoken: dict[str, set[str]] = defaultdict(set)
    for row in effective:
        spoken[row.operation].update(row.devices)
    kept = [
        row for row in documented if not ("any" in spoken[row.operation] or set(row.devices) <= spoken[row.operation])
    ]
    return effective + kept


def _documented(table: dict[str, Any], entry: dict[str, str]) -> Row:
    operation = entry[table["name"]]
    when = conditions(table.get("when", ()))
    return Row(
        operation, table["behaviour"], tuple(table["device"]), table["phase"], when, True, Spelling(table["name"])
    )


def _effective(version: str, documented: list[Row]) -> Iterable[Row]:
    for table in read_table("effective.toml")["row"]:
        for span in table["versions"]:
            if _covers(span["since"], span.get("until"), version):
                for operation in table["operations"]:
                    row = Row(
                        operation,
                        span["behaviour"],
                        tuple(table["device"]),
                        table["phase"],
                        conditions(table.get("when", ())),
                        False,
                        Spelling(operation),
                        table["kind"],
                        table["evidence"],
                    )
                    yield row._replace(listed=any(_tells(other, row) for other in documented))


def _tells(documented: Row, row: Row) -> bool:
    """Whether a documented row says of the same case that it can not be made deterministic, or that it is made so."""
    return (
        documented.operation == row.operation
        and (documented.behaviour == "raises" or row.behaviour not in _NONDETERMINISTIC)
        and _meet(documented.devices, row.devices)
        and compatible(documented.when, row.when)
    )


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return "any" in one or "any" in other or bool(set(one) & set(other))


def _covers(since: str, until: str | None, version: str) -> bool:
    return release(since) <= release(version) and (until is None or release(version) <= release(until))
