"""Library models of data loading: classes that construct a DataLoader, and what datasets and transforms draw for each
sample.

The tables are ``loaders.toml``, ``datasets.toml`` and ``transforms.toml``. Rows may hold for a range of library
versions; the newest version that the project's requirements admit decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple, TypeAlias

from torchrepro_lint.catalogue.rows import Condition, Signature, read_conditions, read_signature
from torchrepro_lint.source.files import read_table
from torchrepro_lint.source.patterns import lazy_pattern, wildcard_expression

# The required versions of libraries as specifiers (``>=1.2,<2``); libraries without a requirement are left out.
LibraryVersions: TypeAlias = "tuple[tuple[str, str], ...]"
_NEWEST = "999999"


@lru_cache(maxsize=1024)
def admits_release_from(specifiers: str, release: str) -> bool:
    """Whether specifiers admit a release or a later one. Empty specifiers admit the newest."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    admitted, first = SpecifierSet(specifiers), Version(release)
    versions = [Version(one.version.removesuffix(".*")) for one in admitted if one.operator != "==="]
    tried = [
        first,
        Version(_NEWEST),
        *versions,
        *(Version(f"{each}.1") for each in versions if not each.local and not each.is_prerelease),
    ]
    return any(each >= first and admitted.contains(each, prereleases=True) for each in tried)


class LoaderKind(NamedTuple):
    """A class that constructs a DataLoader, and takes its arguments besides its own ``parameters``.

    ``dataset`` is the parameter whose samples workers fetch (empty: they draw nothing). ``draws`` is a family that making a
    sample always draws from, if ``when`` holds. ``shuffles`` is false if the order is never drawn.
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
    """The loader kinds by each of their names."""
    return {
        name: LoaderKind(
            name,
            tuple(table["parameters"]),
            table.get("dataset", "dataset"),
            table.get("draws", ""),
            read_conditions(table.get("when", ())),
            table.get("workers") == "seeded",
            table.get("shuffle", True),
            table["evidence"],
        )
        for table in read_table("loaders.toml")["loader"]
        for name in table["names"]
    }


@lru_cache(maxsize=1)
def loader_names() -> frozenset[str]:
    """The names of all loader kinds."""
    return frozenset(loader_kinds())


# The number of names whose rows are cached: the same few are asked for at every call.
_CACHED_NAMES = 1024


class TransformModel(NamedTuple):
    """The model of a transform: what it draws for a sample.

    ``draws`` are families, and ``own`` for a generator that no worker seeds; with ``inner`` the wrapped transforms decide.
    ``when`` must hold for the call that constructs it. The row is for versions of ``library`` from ``since`` up to, but not
    including, ``before``; empty for no such bound.
    """

    draws: frozenset[str]
    inner: bool
    signature: Signature
    when: tuple[Condition, ...]
    library: str
    since: str
    before: str


class DatasetModel(NamedTuple):
    """The model of a dataset: what it draws for a sample.

    ``calls`` are the parameters whose values are called on each sample; with ``wraps`` the first argument decides. The row
    does not apply if the project calls a method in ``unless``, or ``when`` does not hold for the call that constructs it.
    """

    draws: frozenset[str]
    wraps: bool
    calls: tuple[str, ...]
    unless: tuple[str, ...]
    signature: Signature
    when: tuple[Condition, ...]


def transform_models(name: str, known: LibraryVersions = ()) -> Iterator[TransformModel]:
    """The models of a transform by public name, a class or a function; the first that holds decides.

    ``known`` are the required versions of libraries; for others the newest release counts.
    """
    return (row for row in _transforms_named(name) if _applies_to(row, known))


@lru_cache(maxsize=_CACHED_NAMES)
def _transforms_named(name: str) -> tuple[TransformModel, ...]:
    return tuple(row for modules, names, row in _transforms() if _fits(name, modules, names))


def versioned_libraries() -> tuple[str, ...]:
    """The libraries with rows for some releases only, sorted."""
    return tuple(sorted({row.library for _, _, row in _transforms() if row.since or row.before}))


def _applies_to(row: TransformModel, known: LibraryVersions) -> bool:
    """Whether a row holds for the newest release that the project admits."""
    if not row.since and not row.before:
        return True
    asked = dict(known).get(row.library, "")
    return (not row.since or admits_release_from(asked, row.since)) and not (
        row.before and admits_release_from(asked, row.before)
    )


@lru_cache(maxsize=_CACHED_NAMES)
def dataset_model(name: str) -> DatasetModel | None:
    """The model of a dataset by its public name."""
    return next((row for modules, names, row in _datasets() if _fits(name, modules, names)), None)


@lru_cache(maxsize=1)
def _transforms() -> tuple[tuple[tuple[str, ...], re.Pattern[str], TransformModel], ...]:
    return tuple(
        (
            tuple(table["modules"]),
            _pattern(table["names"]),
            TransformModel(
                frozenset(table.get("draws", ())),
                table.get("inner", False),
                read_signature({key: value for key, value in table.items() if key != "when"}, table["names"][0]),
                read_conditions(table.get("when", ())),
                table["library"],
                table.get("since", ""),
                table.get("before", ""),
            ),
        )
        for table in read_table("transforms.toml")["transform"]
    )


@lru_cache(maxsize=1)
def _datasets() -> tuple[tuple[tuple[str, ...], re.Pattern[str], DatasetModel], ...]:
    return tuple(
        (
            tuple(table["modules"]),
            _pattern(table["names"]),
            DatasetModel(
                frozenset(table.get("draws", ())),
                table.get("wraps", False),
                tuple(table.get("calls", ())),
                tuple(table.get("unless", ())),
                read_signature({key: value for key, value in table.items() if key != "when"}, table["names"][0]),
                read_conditions(table.get("when", ())),
            ),
        )
        for table in read_table("datasets.toml")["dataset"]
    )


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for names and their methods."""
    numbers = count()
    return lazy_pattern("(?:" + "|".join(wildcard_expression(name, ".*", numbers) for name in names) + r")(?:\..*)?")


def _fits(name: str, modules: tuple[str, ...], names: re.Pattern[str]) -> bool:
    return any(name.startswith(f"{module}.") and names.fullmatch(name[len(module) + 1 :]) for module in modules)
