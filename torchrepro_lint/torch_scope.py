"""The modules of a project that have to do with torch."""

from __future__ import annotations

from collections.abc import Mapping

from torchrepro_lint.facts import Facts
from torchrepro_lint.modules import Modules


def torch_modules(files: Mapping[str, Facts], modules: Modules) -> frozenset[str]:
    """The modules that import torch, and those that such a module imports, as paths."""
    direct = {path for path in files if any(_is_torch(name) for name in files[path].summary.imports)}
    imported = {
        file
        for path in sorted(direct)
        for name in files[path].summary.imports
        if (file := modules.module(path, name)) is not None
    }
    return frozenset(direct | imported)


def _is_torch(module: str) -> bool:
    return module == "torch" or module.startswith("torch.")
