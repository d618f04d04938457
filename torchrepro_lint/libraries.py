"""Which releases of libraries a project runs, where rows of the tables hold for some releases only."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchrepro_lint.requirements import Demand, declared, locked

# What is asked for of each library, as specifiers (``>=1.2,<2``); those of which nothing is asked are left out.
Libraries: TypeAlias = "tuple[tuple[str, str], ...]"
# The libraries of which some rows of transforms.toml hold for some releases only; a run that answers from its record does not
# read the tables.
VERSIONED = ("albumentations",)
_NEWEST = Version("999999")


def libraries(root: Path) -> Libraries:
    """What a project asks for of ``VERSIONED``: the first of a lock file, an exact pin, any specifiers."""
    return tuple((name, found) for name in VERSIONED if (found := _asked(root, name)))


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


def _asked(root: Path, name: str) -> str:
    demands: list[Demand] = list(declared(root, name))
    for demand in (*locked(root, name), *demands):
        if demand.exact is not None:
            return f"=={demand.exact}"
    return next((str(demand.specifiers) for demand in demands if demand.specifiers), "")
