"""What libraries' datasets and transforms draw where a sample is made, as ``datasets.toml`` and ``transforms.toml`` have it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from torchrepro_lint.entries import Condition, Spelling, conditions, spelling
from torchrepro_lint.library_versions import Libraries, comes_to
from torchrepro_lint.source.files import read_table
from torchrepro_lint.source.globs import starred

# The rows of so many names are remembered: the same few are asked for at every call.
_MOST_NAMES = 1024


class Transform(NamedTuple):
    """``draws`` are families, and ``own`` for a generator that no worker seeds; with ``inner`` what it is given decides.

    ``when`` must hold of the call that makes it. The row is of the releases of ``library`` from ``since`` to the one before
    ``before``; empty for no such bound.
    """

    draws: frozenset[str]
    inner: bool
    spelling: Spelling
    when: tuple[Condition, ...]
    library: str
    since: str
    before: str


class Dataset(NamedTuple):
    """``calls`` are the parameters whose values run on each sample; with ``wraps`` the first argument decides. Nothing is
    known where the project calls a method of ``unless``, or ``when`` does not hold of the call that makes it.
    """

    draws: frozenset[str]
    wraps: bool
    calls: tuple[str, ...]
    unless: tuple[str, ...]
    spelling: Spelling
    when: tuple[Condition, ...]


def transforms(name: str, known: Libraries = ()) -> Iterator[Transform]:
    """The rows of a public name, a class or a function, the first that holds decides; none where it is not known.

    ``known`` is what the project asks for of libraries; of the others the newest release counts.
    """
    return (row for row in _transforms_named(name) if _is_run(row, known))


@lru_cache(maxsize=_MOST_NAMES)
def _transforms_named(name: str) -> tuple[Transform, ...]:
    return tuple(row for modules, names, row in _transforms() if _fits(name, modules, names))


def versioned() -> tuple[str, ...]:
    """The libraries of which some rows hold for some releases only, sorted."""
    return tuple(sorted({row.library for _, _, row in _transforms() if row.since or row.before}))


def _is_run(row: Transform, known: Libraries) -> bool:
    """Whether the newest release that the project admits is one of a row's."""
    if not row.since and not row.before:
        return True
    asked = dict(known).get(row.library, "")
    return (not row.since or comes_to(asked, row.since)) and not (row.before and comes_to(asked, row.before))


@lru_cache(maxsize=_MOST_NAMES)
def dataset(name: str) -> Dataset | None:
    """The row of a dataset by its public name."""
    return next((row for modules, names, row in _datasets() if _fits(name, modules, names)), None)


@lru_cache(maxsize=1)
def _transforms() -> tuple[tuple[tuple[str, ...], re.Pattern[str], Transform], ...]:
    return tuple(
        (
            tuple(table["modules"]),
            _pattern(table["names"]),
            Transform(
                frozenset(table.get("draws", ())),
                table.get("inner", False),
                spelling({key: value for key, value in table.items() if key != "when"}, table["names"][0]),
                conditions(table.get("when", ())),
                table["library"],
                table.get("since", ""),
                table.get("before", ""),
            ),
        )
        for table in read_table("transforms.toml")["transform"]
    )


@lru_cache(maxsize=1)
def _datasets() -> tuple[tuple[tuple[str, ...], re.Pattern[str], Dataset], ...]:
    return tuple(
        (
            tuple(table["modules"]),
            _pattern(table["names"]),
            Dataset(
                frozenset(table.get("draws", ())),
                table.get("wraps", False),
                tuple(table.get("calls", ())),
                tuple(table.get("unless", ())),
                spelling({key: value for key, value in table.items() if key != "when"}, table["names"][0]),
                conditions(table.get("when", ())),
            ),
        )
        for table in read_table("datasets.toml")["dataset"]
    )


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A name, or a method of it."""
    numbers = count()
    return re.compile("(?:" + "|".join(starred(name, ".*", numbers) for name in names) + r")(?:\..*)?")


def _fits(name: str, modules: tuple[str, ...], names: re.Pattern[str]) -> bool:
    return any(name.startswith(f"{module}.") and names.fullmatch(name[len(module) + 1 :]) for module in modules)
