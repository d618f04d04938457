"""Files of tens of megabytes: one diagnostic or a result within a memory bound, and every other file is linted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchrepro_lint.syntax.parse import ParseError, parse_module

resource = pytest.importorskip("resource", reason="Windows has no such bound")
FLAG = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
# Bytes that the run may map: what the interpreter and libcst take, and much less than fifty megabytes of statements would.
ROOM = 2 << 30
MEGABYTES = {
    "statements": "x = torch.rand(1)\n",
    "one line": "x = 1; ",
    "comments": "# more\n",
    "strings": "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'\n",
    "brackets": "(",
    "nothing": "\x00",
}


def test_what_is_too_large_is_said() -> None:
    with pytest.raises(ParseError, match="too large to analyse: 10,000,001 characters") as caught:
        parse_module("x" * 10_000_001)
    assert caught.value.offset == 0


@pytest.mark.parametrize("name", ["large.py", "large.ipynb"])
def test_a_file_of_gigabytes_is_one_diagnostic(tmp_path: Path, name: str) -> None:
    """It takes no room on the disk, and would take all of the memory."""
    (tmp_path / "small.py").write_text(FLAG, encoding="utf-8")
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, 6_000_000_000)
    assert _said(tmp_path) == [(name, "TRL001"), ("small.py", "TRL201")]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_the_memory_does_not_suffice_for_is_one_diagnostic(tmp_path: Path, jobs: int) -> None:
    book = f'{{"cells": [], "more": [{"1.5, " * 4_000_000}1]}}'
    (tmp_path / "large.ipynb").write_text(book, encoding="utf-8")
    (tmp_path / "small.py").write_text(FLAG, encoding="utf-8")
    assert _said(tmp_path, ROOM // 12, jobs) == [("large.ipynb", "TRL001"), ("small.py", "TRL201")]


@pytest.mark.long
@pytest.mark.parametrize("kind", MEGABYTES)
def test_fifty_megabytes_are_one_diagnostic(tmp_path: Path, kind: str) -> None:
    piece = MEGABYTES[kind]
    (tmp_path / "large.py").write_text(piece * (50_000_000 // len(piece)), encoding="utf-8")
    (tmp_path / "small.py").write_text(FLAG, encoding="utf-8")
    assert _said(tmp_path) == [("large.py", "TRL001"), ("small.py", "TRL201")]


@pytest.mark.long
def test_a_notebook_of_fifty_megabytes_of_pictures_is_read(tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 50_000_000}}
    cell = {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": FLAG, "outputs": [picture]}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "large.ipynb").write_text(json.dumps(book), encoding="utf-8")
    (tmp_path / "small.py").write_text(FLAG, encoding="utf-8")
    assert _said(tmp_path) == [("large.ipynb", "TRL201"), ("small.py", "TRL201")]


def _said(folder: Path, room: int = ROOM, jobs: int = 2) -> list[tuple[str, str]]:
    """The files and codes that a run reports which may not take more memory than there is room for."""
    options = ["--no-cache", "--output-format", "json", "--jobs", str(jobs)]
    command = [sys.executable, "-m", "torchrepro_lint", *options, "."]
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    return sorted((Path(one["filename"]).name, one["code"]) for one in json.loads(ran.stdout))
