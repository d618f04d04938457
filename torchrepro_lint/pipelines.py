"""Code that prepares data: no gradient is kept of what a dataset or a transform does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.project import Project

# Short names of base classes, the project's or a library's. Modules among them belong to a network.
_PREPARING = ("Dataset", "Transform", "IterDataPipe", "MapDataPipe")
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module")


def prepares_data(project: Project, function: str) -> bool:
    """Whether a function is a method of a dataset or transform, or stands in one."""
    outer = function.partition(".<locals>.")[0]
    owner = project.resolver.owner(outer)
    if not owner:
        return False
    ancestry = project.resolver.ancestry(owner)
    return not set(_MODULES).intersection(ancestry) and any(_word(each).endswith(_PREPARING) for each in ancestry[1:])


def _word(name: str) -> str:
    return name.rpartition(".")[2].rpartition(":")[2]
