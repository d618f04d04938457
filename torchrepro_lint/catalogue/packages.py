"""Described packages: the top-level packages of which some table of the catalogue says what they do."""

from __future__ import annotations

from functools import lru_cache

from torchrepro_lint.source.files import read_table

# The tables that name callables of packages, each with the key of its rows.
_TABLES = (
    ("consumers.toml", "consumer"),
    ("seeders.toml", "seeder"),
    ("frameworks.toml", "framework"),
    ("module_wrappers.toml", "wrapper"),
    ("third_party.toml", "operation"),
)


@lru_cache(maxsize=1)
def described_packages() -> frozenset[str]:
    """The top-level names of these packages."""
    rows = (row for file, key in _TABLES for row in read_table(file)[key])
    return frozenset(name.partition(".")[0] for row in rows for name in row.get("packages", row["names"]))
