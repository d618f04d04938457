"""The folders of a project's files; paths are relative to its root, which is the empty one."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from torchrepro_lint.query.fixpoint import UnionFind

# Nobody gains anything where one part has so much of a project.
_NEARLY_ALL = 0.8
# Of more folders only the largest are looked for in the others.
_MOST_FOLDERS = 12


def top_folders(paths: Collection[str]) -> dict[str, str]:
    """For each file the outermost folder around it with Python files directly in it; the root is none but for what lies directly
    in it.
    """
    folders = {posixpath.dirname(path) for path in paths} - {""}
    return {path: next((each for each in reversed([*parents(path)]) if each in folders), "") for path in paths}


def join(folder: str, word: str) -> str:
    """A path below a folder; the root is empty."""
    return f"{folder}/{word}" if folder else word


def parents(path: str) -> Iterator[str]:
    """The folders above a path, nearest first; the root, empty, is the last."""
    while path:
        path = posixpath.dirname(path)
        yield path


def falls_apart(sizes: Mapping[str, int], data: Callable[[str], bytes]) -> bool:
    """Whether a project is likely to have several parts of some size (see ``parts``), as far as the bytes of its files tell."""
    folders = top_folders(sizes)
    weights = Counter[str]()
    for path, folder in folders.items():
        weights[folder] += sizes[path]
    groups, every = UnionFind(weights), sum(weights.values())
    found = (folder for folder, _ in weights.most_common(_MOST_FOLDERS) if folder)
    largest = {folder: posixpath.basename(folder).encode("utf-8", "surrogateescape") for folder in found}
    most = max(groups.sums(weights), default=0)
    for path, folder in sorted(folders.items()):
        text = b""
        for other, word in largest.items():
            if most < _NEARLY_ALL * every and not groups.together(folder, other):
                text = text or data(path)
                if word in text and (b"import " + word in text or b"from " + word in text):
                    groups.join(folder, other)
                    most = max(groups.sums(weights))
    return most < _NEARLY_ALL * every
