"""Names of the project taken apart: ``path:function``, where the path may hold colons, and what follows it none."""

from __future__ import annotations

# The files of the names that were taken apart, each the same text for all that ask: many thousand answers hold one.
_paths: dict[str, str] = {}


def path_of(name: str) -> str:
    """The file that a name is of; a name from outside the project is given back."""
    if ":" not in name:
        return name
    path = name[: name.rfind(":")]
    return _paths.setdefault(path, path)


def parted(name: str) -> tuple[str, str, str]:
    """The file, the colon, and the name within the file; of a name from outside, itself and nothing else."""
    if ":" not in name:
        return name, "", ""
    path, colon, own = name.rpartition(":")
    return _paths.setdefault(path, path), colon, own
