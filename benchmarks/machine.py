"""The machine that a figure was measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any


def machine() -> dict[str, Any]:
    """Cores, memory, system, and the versions that matter."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libcst": version("libcst"),
    }
