"""The classes that construct a DataLoader, torch's and those of libraries, as ``rules/catalogue/loaders.toml`` has them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchrepro_lint.entries import Condition, conditions
from torchrepro_lint.source.files import read_table


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
