"""Version ranges of libraries: whether what a project asks for admits the releases that a row of a table holds for.

The classes that construct a DataLoader, torch's and those of libraries, as ``rules/catalogue/loaders.toml`` has them.

What libraries' datasets and transforms draw where a sample is made, as ``datasets.toml`` and ``transforms.toml`` have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple, TypeAlias

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchrepro_lint.catalogue.rows import Condition, Spelling, conditions, spelling
from torchrepro_lint.source.files import read_table
from torchrepro_lint.source.globs import starred

# What is asked for of each library, as specifiers (``>=1.2,<2``); those of which nothing is asked are left out.
Libraries: TypeAlias = "tuple[tuple[str, str], ...]"
_NEWEST = Version("999999")


@lru_cache(maxsize=1024)
def comes_to(specifiers: str, release: str) -> bool:
    """Whether specifiers admit a release or a later one. None at all admit the newest."""
    admitted, first = SpecifierSet(specifiers), Version(release)
    versions = [Version(one.version.removesuffix(".*")) for one in admitted if one.operator != "==="]
    tried = [
        first,
        _NEWEST,
        *versions,
        *(Version(f"{each}.1") for each in versions if not each.local and not each.is_prerelease),
    ]
    return any(each >= first and admitted.contains(each, prereleases=True) for each in tried)


class LoaderKind(NamedTuple):
    """A class whose other arguments are those of torch's DataLoader.

    ``dataset`` is the parameter whose samples workers fetch (empty: they draw nothing), ``draws`` the family that making a
    sample draws from whatever the dataset does, where ``when`` holds. ``shuffles`` is false where the order is never drawn.
    """

    name: str
    parameters: tuple[str, ...]
    dataset: str
    draws: str
    when: tuple[Condition, ...]
    seeds_workers: bool
    shuffles: bool
    evidence: str


@lru_cache(maxsize=1)
def loader_kinds() -> dict[str, LoaderKind]:
    """The kinds by each of their names."""
    return {
        name: LoaderKind(
            name,
            tuple(table["parameters"]),
            table.get("dataset", "dataset"),
            table.get("draws", ""),
            conditions(table.get("when", ())),
            table.get("workers") == "seeded",
            table.get("shuffle", True),
            table["evidence"],
        )
        for table in read_table("loaders.toml")["loader"]
        for name in table["names"]
    }


@lru_cache(maxsize=1)
def loader_names() -> frozenset[str]:
    """The names of all of them."""
    return frozenset(loader_kinds())


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
