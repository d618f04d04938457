"""The corpus: wheels from the package index, unpacked below a cache directory, never committed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Pure Python, and pinned: a figure means nothing without the code it was measured on.
TIMM = "timm==1.0.31"
MANY = (TIMM, "torch_geometric==2.8.1", "monai==1.6.1", "lightning==2.6.6", "ultralytics==8.4.190")
# A million lines and more.
MORE = (*MANY, "transformers==5.23.0")


def cache() -> Path:
    """Where unpacked packages are kept between runs."""
    given = os.environ.get("TORCHREPRO_LINT_BENCHMARK_DIR")
    return Path(given) if given else Path.home() / ".cache" / "torchrepro-lint-benchmarks"


def unpacked(requirement: str) -> Path:
    """The directory of a package, downloaded when it is not there yet; raises ``CalledProcessError`` offline.

    A pyproject.toml in it makes it a project, so that it is linked as one wherever the cache lies.
    """
    place = cache() / re.sub(r"[^\w.]+", "-", requirement)
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            _download(requirement, Path(scratch))
            shutil.move(Path(scratch, "tree"), place)
    return place


def joined() -> Path:
    """One directory, and so one project, with all packages of ``MANY`` side by side."""
    place = cache() / "joined"
    if not place.is_dir():
        with tempfile.TemporaryDirectory(dir=unpacked(TIMM).parent) as scratch:
            for requirement in MANY:
                package = requirement.partition("==")[0]
                shutil.copytree(unpacked(requirement) / package, Path(scratch, "tree", package))
            Path(scratch, "tree", "pyproject.toml").write_text('[project]\nname = "joined"\nversion = "0"\n')
            shutil.move(Path(scratch, "tree"), place)
    return place


def grown(place: Path, lines: int) -> Path:
    """A project at a place with so many lines of ``MORE``, and a file over: its files in order, package by package."""
    left = lines
    for requirement in MORE:
        top = unpacked(requirement)
        for path in sources(top / requirement.partition("==")[0]):
            if left <= 0:
                break
            data = path.read_bytes()
            left -= data.count(b"\n")
            copy = place / path.relative_to(top)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
    Path(place, "pyproject.toml").write_text('[project]\nname = "grown"\nversion = "0"\n')
    return place


def repeated(place: Path, project: Path, times: int) -> Path:
    """A project at a place that holds another so often, each in a folder of its own."""
    for number in range(times):
        shutil.copytree(project, place / f"copy{number}", ignore=shutil.ignore_patterns("pyproject.toml"))
    shutil.copy(project / "pyproject.toml", place)
    return place


def sources(directory: Path) -> list[Path]:
    """The Python files below a directory, sorted."""
    return sorted(path for path in directory.rglob("*.py") if path.is_file())


def _download(requirement: str, scratch: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*command, "--dest", str(scratch), requirement], check=True)
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch / "tree")
    Path(scratch, "tree", "pyproject.toml").write_text('[project]\nname = "unpacked"\nversion = "0"\n')
