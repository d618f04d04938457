"""Which releases of libraries a project runs, where rows of the tables hold for some releases only."""

from __future__ import annotations

from pathlib import Path

from torchrepro_lint.catalogue.loaders import Libraries
from torchrepro_lint.requirements import Demand, declared, locked

# The libraries of which some rows of transforms.toml hold for some releases only; a run that answers from its record does not
# read the tables.
VERSIONED = ("albumentations",)


def libraries(root: Path) -> Libraries:
    """What a project asks for of ``VERSIONED``: the first of a lock file, an exact pin, any specifiers."""
    return tuple((name, found) for name in VERSIONED if (found := _asked(root, name)))


def _asked(root: Path, name: str) -> str:
    demands: list[Demand] = list(declared(root, name))
    for demand in (*locked(root, name), *demands):
        if demand.exact is not None:
            return f"=={demand.exact}"
    return next((str(demand.specifiers) for demand in demands if demand.specifiers), "")
