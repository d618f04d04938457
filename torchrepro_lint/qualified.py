"""Names of the project taken apart: ``path:function``, where the path may hold colons, and what follows it none."""

from __future__ import annotations


def path_of(name: str) -> str:
    """The file that a name is of; a name from outside the project is given back."""
    return name[: name.rfind(":")] if ":" in name else name


def parted(name: str) -> tuple[str, str, str]:
    """The file, the colon, and the name within the file; of a name from outside, itself and nothing else."""
    return name.rpartition(":") if ":" in name else (name, "", "")
