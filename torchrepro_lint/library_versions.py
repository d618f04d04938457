"""Version ranges of libraries: whether what a project asks for admits the releases that a row of a table holds for."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from packaging.specifiers import SpecifierSet
from packaging.version import Version

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
