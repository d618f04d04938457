"""Repositories for tests of a survey: the same small project as a folder, in git, and in archives; and hostile ones."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from overview_projects import HELPERS, STEADY, TRAIN

PROJECT: Mapping[str, str] = {
    "train.py": TRAIN,
    "helpers.py": HELPERS,
    "steady.py": STEADY,
    "requirements.txt": "torch==2.13.0\npytorch-lightning\n",
    "README.md": "Not read.\n",
    "conf/model.yaml": "_target_: helpers.Pictures\n",
}


def folder(place: Path, files: Mapping[str, str] = PROJECT) -> Path:
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return place


def git(place: Path, *words: str) -> str:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", "-C", str(place), *words], check=True, capture_output=True, text=True, env=environment
    ).stdout


def bare(place: Path, source: Path) -> Path:
    """A bare git repository with one commit of a folder."""
    place.mkdir(parents=True)
    git(place, "init", "-q", "--bare")
    git(place, "--work-tree", str(source), "add", "-A")
    git(place, "--work-tree", str(source), "commit", "-q", "-m", "all")
    return place


def sdist(place: Path, files: Mapping[str, str] = PROJECT) -> Path:
    """An sdist ``name-version.tar.gz``: everything below one folder of that name."""
    top = place.name.removesuffix(".tar.gz")
    members = {"PKG-INFO": "Name: x\n", **files}
    return tar(place, [(f"{top}/{path}", text.encode()) for path, text in members.items()])


def tar(place: Path, members: Iterable[tuple[str, bytes]], *others: tarfile.TarInfo) -> Path:
    with tarfile.open(place, "w:gz") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in others:
            archive.addfile(info)
    return place


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(place: Path, files: Mapping[str, str] = PROJECT) -> Path:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return place


def brackets(place: Path, count: int) -> Path:
    """An archive whose one program is so many nested brackets: some megabytes stand for gigabytes."""
    info = tarfile.TarInfo("deep-1.0/deep.py")
    info.size = count
    piece = gzip.compress(b"[" * (1 << 26), 9)
    with open(place, "wb") as file:
        file.write(gzip.compress(info.tobuf()))
        file.writelines(piece for _ in range(count >> 26))
        file.write(gzip.compress(b"\0" * 1024))
    return place
