"""Instance types: what an object of a class is, by the class and the bases that it has from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer.outside import instance_of
from torchrepro_lint.infer.what import What

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference

# What an object is by the outside classes that its own inherits from.
_BASES = (
    "tensor",
    "parameter",
    "module",
    "dataset",
    "loader",
    "path",
    "dict",
    "list",
    "set",
    "tuple",
    "str",
    "int",
    "float",
)


def instance(kinds: TypeInference, owner: str) -> What:
    """An object of a class of the project: of the kind that its bases from outside give it."""
    for base in kinds.project.resolver.ancestry(owner):
        if ":" in base:
            continue
        made = instance_of(base)
        if base in ("torch.nn.Module", "torch.nn.modules.module.Module", "torch.jit.ScriptModule") or base.endswith(
            "LightningModule"
        ):
            return What("module", name=owner)
        if made.kind in _BASES:
            return What(made.kind, name=owner)
    return What("instance", name=owner)
