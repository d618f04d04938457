"""The compared tools, each installed into an environment of its own below the cache directory."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.packages import cache


class Tool(NamedTuple):
    """A tool, and the pinned requirements that make its environment; ``alone`` are installed whatever they ask for."""

    name: str
    requirements: tuple[str, ...]
    alone: tuple[str, ...] = ()


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("torchfix", ("TorchFix==0.7.0",)),
        Tool("flake8", ("flake8==7.5.0", "TorchFix==0.7.0")),
        Tool("ruff", ("ruff==0.17.6",)),
        Tool("torchdetscan", ("torchdetscan==0.1",)),
        Tool("semgrep", ("semgrep==1.182.0",)),
        # dslinter asks for a pylint whose own requirements cannot be built any more; it works with a later one.
        Tool(
            "dslinter", ("pylint==2.17.7", "mypy==1.19.1", "toml==0.10.2", "setuptools==80.9.0"), ("dslinter==2.0.9",)
        ),
    )
}


def program(name: str, command: str) -> Path | None:
    """The program of a tool, installed on first use; None where it cannot be had here."""
    tool = TOOLS[name]
    place = cache() / "tools" / "-".join((name, *tool.requirements, *tool.alone)).replace("==", "-")
    found = place / ("Scripts" if sys.platform == "win32" else "bin") / command
    if not place.is_dir():
        venv.create(place, with_pip=True)
        _install(found.parent / "python", tool.requirements)
        if tool.alone:
            _install(found.parent / "python", ["--no-deps", *tool.alone])
    return found if found.exists() else None


def _install(python: Path, arguments: Sequence[str]) -> None:
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--only-binary=:all:", *arguments],
        check=False,
        capture_output=True,
    )
