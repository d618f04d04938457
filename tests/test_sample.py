"""``python -m benchmarks.sample`` draws the same findings again, and shows each with its lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.sample import Found, drawn, findings, rendered

_SCRIPT = """import os
import torch

first = 1
model = torch.load(os.listdir("a")[0])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of a script, a notebook and a file without findings."""
    (tmp_path / "pyproject.toml").write_text("[tool.torchrepro-lint]\n")
    (tmp_path / "train.py").write_text(_SCRIPT)
    (tmp_path / "none.py").write_text("import torch\n")
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["text"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": _SCRIPT},
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "look.ipynb").write_text(json.dumps(notebook))
    return tmp_path


def test_findings_are_shown_with_their_lines(project: Path) -> None:
    found = findings([str(project)], "TRL503")
    assert [(one.code, Path(one.shown).name, one.row) for one in found] == [
        ("TRL503", "look.ipynb", 5),
        ("TRL503", "train.py", 5),
    ]
    text = "\n".join(rendered(found, 2, 7))
    for name in ("look.ipynb:cell 2", "train.py"):
        assert f"{project}/{name}:5:20 TRL503" in text
    assert text.count('>    5 model = torch.load(os.listdir("a")[0])') == 2
    assert text.count("     1 import os") == 2


def test_rules_that_were_not_asked_for_are_left_out(project: Path) -> None:
    assert findings([str(project)], "TRL3") == []


def test_the_seed_alone_decides_what_is_drawn() -> None:
    found = [Found("a.py", 0, row, 1, row, "TRL503", "message", "/a.py") for row in range(1, 100)]
    once = drawn(found, 10, 7)
    assert once == drawn(found[::-1], 10, 7) == sorted(once)
    assert len(set(once)) == 10
    assert once != drawn(found, 10, 8)
    assert drawn(found, 1000, 7) == found
