"""What libraries' datasets and transforms draw where a sample is made, as ``datasets.toml`` and ``transforms.toml`` have it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from torchrepro_lint.entries import Condition, Spelling, conditions, spelling
from torchrepro_lint.resources import read_table


class Transform(NamedTuple):
    """``draws`` are families, and ``own`` for a generator that no worker seeds; with ``inner`` what it is given decides.

    ``when`` must hold of the call that makes it.
    """

    draws: frozenset[str]
    inner: bool
    spelling: Spelling
    when: tuple[Condition, ...]


class Dataset(NamedTuple):
    """``calls`` are the parameters whose values run on each sample; with ``wraps`` the first argument decides. Nothing is
    known where the project calls a method of ``unless``.
    """

    draws: frozenset[str]
    wraps: bool
    calls: tuple[str, ...]
    unless: tuple[str, ...]


def transforms(name: str) -> Iterator[Transform]:
    """The rows of a public name, a class or a function, the first that holds decides; none where it is not known."""
    for modules, names, row in _transforms():
        if _fits(name, modules, names):
            yield row


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
            ),
        )
        for table in read_table("transforms.toml")["transform"]
        if "until" not in table
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
            ),
        )
        for table in read_table("datasets.toml")["dataset"]
    )


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A name, or a method of it."""
    return re.compile("(?:" + "|".join(re.escape(name).replace(r"\*", ".*") for name in names) + r")(?:\..*)?")


def _fits(name: str, modules: tuple[str, ...], names: re.Pattern[str]) -> bool:
    return any(name.startswith(f"{module}.") and names.fullmatch(name[len(module) + 1 :]) for module in modules)
