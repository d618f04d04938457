"""The modules of a project that have to do with torch."""

from __future__ import annotations

from torchrepro_lint.modules import Modules


def torch_modules(modules: Modules) -> frozenset[str]:
    """The modules that import torch, and those that such a module imports, as paths."""
    with modules.reads.apart():  # by imports and what modules offer alone: that is noted at once, and not file by file
        direct = {path for path, summary in modules.summaries() if any(map(_is_torch, summary.imports))}
        imported = {file for path in sorted(direct) for file in modules.imported(path)}
    modules.reads.see_word("imports", "")
    modules.reads.see_word("exports", "")
    return frozenset(direct | imported)


def _is_torch(module: str) -> bool:
    return module == "torch" or module.startswith("torch.")
