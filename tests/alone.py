"""The findings of a file given alone, beside its findings within its whole project."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.discovery import ProjectTree, plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.checker import CheckResult, check
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import prepare


class Whole(NamedTuple):
    """A run over a whole project: what was read, and what was found in each file."""

    tree: ProjectTree
    files: dict[str, ParsedFile]
    found: dict[str, CheckResult]


def whole(directory: Path) -> Whole:
    """Lint all files of a directory, which has to be one project."""
    (tree,) = plan([str(directory)], ConfigOptions()).trees
    files = read_tree(tree).files
    return Whole(tree, files, _check(tree, files))


def differences(run: Whole, paths: Collection[str]) -> Iterator[str]:
    """A line on each of ``paths`` (from the root) about which a run that is given this file alone says something else.

    The project is planned and linked afresh for each; only the facts of files are those of the first run.
    """
    for path in paths:
        (tree,) = plan([str(Path(run.tree.root.path, path))], ConfigOptions()).trees
        if (tree.root.path, tree.files) != (run.tree.root.path, run.tree.files):
            yield f"{path}: another project: {tree.root.path}, {len(tree.files)} files"
            continue
        alone = _check(tree, run.files)
        if list(alone) != [path]:
            yield f"{path}: reported on {', '.join(alone)}"
        elif alone[path] != run.found[path]:
            yield f"{path}: alone {alone[path]}, with all files {run.found[path]}"
        del alone
        gc.collect()


def _check(tree: ProjectTree, files: dict[str, ParsedFile]) -> dict[str, CheckResult]:
    checker, _ = prepare(tree, honour_comments=True)
    parts = Partition(checker, files, lasting=True)
    return {path: check(checker, path, files[path], parts.of(path)) for path, _ in tree.given}
