"""Code that trains nothing: it prepares data, shows pictures, or exports a network. No gradient is kept of what it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.project import Project

# Short names of base classes, the project's or a library's. Modules among them belong to a network.
_PREPARING = ("Dataset", "Data", "DataModule", "Transform", "IterDataPipe", "MapDataPipe")
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module")
# What packages and modules are called that hold such code alone.
_WORDS = re.compile(
    r"data|data_?sets?|data_?loaders?|loaders?|samplers?|visuali[sz]\w*|plot(s|ting)?|export(er|ers|s|ing)?|export_\w+|\w+_export"
)


def trains_nothing(project: Project, function: str) -> bool:
    """Whether a function is a method of a dataset or transform, or stands in one, or in a module for such things."""
    path, _, name = function.partition(":")
    owner = project.resolver.owner(f"{path}:{name.partition('.<locals>.')[0]}")
    ancestry = project.resolver.ancestry(owner) if owner else ()
    if set(_MODULES).intersection(ancestry):
        return False
    if any(_word(each).endswith(_PREPARING) for each in ancestry[1:]):
        return True
    return any(map(_WORDS.fullmatch, path.removesuffix(".py").split("/")))


def _word(name: str) -> str:
    return name.rpartition(".")[2].rpartition(":")[2]
