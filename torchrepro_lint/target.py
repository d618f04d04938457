"""The torch version that a project will run, and what says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from torchrepro_lint.requirements import Demand, declared, locked

_MINIMUM = "minimum"
_PATCHES = range(20)


class Target(NamedTuple):
    """``version`` is one that the catalogue has (``"2.1"``), ``decided_by`` the file or option that decided.

    ``asked`` is the version that was asked for where the catalogue lacks it and has a nearer one, else ``None``.
    """

    version: str
    decided_by: str
    asked: str | None = None


def find_target(root: Path, asked: str | None, known: Sequence[str]) -> Target:
    """The target of a project among the ``known`` releases (oldest first).

    First of: the setting; a lock file or an exact pin; the newest release that the specifiers admit; the newest one.
    ``"minimum"`` asks for the oldest release that the specifiers admit.
    """
    if asked == _MINIMUM:
        return _minimum(list(declared(root)) or list(locked(root)), known)
    if asked is not None:
        return _nearest(Version(asked), "the torch-version setting", known)
    demands = list(declared(root))
    for demand in (*locked(root), *demands):
        if demand.exact is not None:
            return _nearest(demand.exact, demand.file, known)
    for demand in demands:
        if demand.specifiers and (admitted := _admitted(demand, known)):
            return Target(admitted[-1], demand.file)
    return Target(known[-1], "the newest release known")


def _minimum(demands: list[Demand], known: Sequence[str]) -> Target:
    for demand in demands:
        if demand.specifiers and (admitted := _admitted(demand, known)):
            return Target(admitted[0], demand.file)
    return Target(known[-1], "the newest release known")


def _admitted(demand: Demand, known: Sequence[str]) -> list[str]:
    """The releases of which at least one patch fits."""
    return [
        release
        for release in known
        if any(demand.specifiers.contains(f"{release}.{patch}", prereleases=True) for patch in _PATCHES)
    ]


def _nearest(version: Version, decided_by: str, known: Sequence[str]) -> Target:
    wanted = f"{version.major}.{version.minor}"
    if wanted in known:
        return Target(wanted, decided_by)
    older = [release for release in known if Version(release) < version]
    return Target(older[-1] if older else known[0], decided_by, asked=wanted)
