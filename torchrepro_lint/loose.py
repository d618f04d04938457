"""What the workers of a loader draw that nothing of the loader's own fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.loaders import Loader
    from torchrepro_lint.project import Project

# What a generator of the loader leaves as it is: from the release on in which workers seed numpy, and before it.
_LEFT = {False: frozenset({"own"}), True: frozenset({"own", "numpy", "unknown"})}


def loose_draws(project: Project, loader: Loader, *, before: bool) -> frozenset[str]:
    """The generators that workers may draw from and that the call does not fix; ``before`` that release or not.

    MONAI's loader seeds its own workers; Lightning's ``seed_everything(workers=True)`` those of all loaders.
    """
    seeded = loader.passes("worker_init_fn") or loader.kind.seeds_workers or project.seeds_workers
    if not loader.has_workers or seeded:
        return frozenset()
    draws = project.fetching.of_loader(loader)
    return draws & _LEFT[before] if loader.passes("generator") else draws
