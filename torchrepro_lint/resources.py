"""Where the shipped documents and tables lie: ``rules/`` of a checkout, ``_rules`` in an installed wheel."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from torchrepro_lint.toml import loads

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable


def rules_dir() -> Traversable:
    """The directory of the rule pages, with ``catalogue/`` inside."""
    package = files("torchrepro_lint")
    shipped = package / "_rules"
    return shipped if shipped.is_dir() else package / ".." / "rules"


def read_table(name: str) -> dict[str, Any]:
    """A TOML file of the catalogue, ``effective.toml``."""
    table: dict[str, Any] = loads((rules_dir() / "catalogue" / name).read_text(encoding="utf-8"))
    return table


def documented_versions() -> tuple[str, ...]:
    """The minor releases that the catalogue has a file of, oldest first: ``1.7``, ``1.8``, …"""
    names = (entry.name for entry in (rules_dir() / "catalogue").iterdir())
    minors = (name[len("torch-") : -len(".toml")] for name in names if name.startswith("torch-"))
    return tuple(sorted(minors, key=release))


def release(version: str) -> tuple[int, int]:
    """The minor release of a version, for comparison: (2, 13) of ``2.13.0+cpu``."""
    major, minor = version.partition("+")[0].split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()))
