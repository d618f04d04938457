"""What a cached answer depends on beside the files of a project: this copy of the tool, Python, libcst."""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from torchrepro_lint import __version__


@cache
def tool_stamp() -> str:
    """Differs between any two copies of the tool, interpreters or releases of libcst that may answer differently."""
    here = Path(__file__).parent
    libcst = find_spec("libcst")
    folders = [found for found, _, _ in os.walk(here) if not found.endswith("__pycache__")]
    folders += [os.path.join(here.parent, "rules", "catalogue")]
    folders += (libcst.submodule_search_locations or []) if libcst else []
    words = [__version__, sys.version, *(line for folder in folders for line in _states(folder))]
    return blake2b("\n".join(words).encode(), digest_size=16).hexdigest()


def _states(folder: str) -> list[str]:
    """A line for each file of a folder: enough to tell an edited one, without reading it."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((each.path, each.stat()) for each in entries if each.name.endswith((".py", ".toml")))
    except OSError:  # the tool may lie in an archive
        return []
    return [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in found]
