"""Fixes of notebooks: a seed stays in its cell, and a copy goes to the cell that draws first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Ran
from notebooks import notebook

Maker = Callable[..., Path]
Lint = Callable[..., Ran]

TRAIN = "net = torch.nn.Linear(3, 3)\nnet(torch.ones(3)).sum().backward()"


def fixed_cells(project: Maker, lint: Lint, *cells: str) -> list[str]:
    root = project({"a.ipynb": notebook(*cells)})
    lint(str(root), "--fix", "--unsafe-fixes", "--select", "TRL104")
    assert "TRL104" not in lint(str(root), "--select", "TRL104").out
    return ["".join(cell["source"]) for cell in json.loads((root / "a.ipynb").read_text())["cells"]]


def test_a_seed_is_copied_to_the_cell_that_draws_first(project: Maker, lint: Lint) -> None:
    cells = ("import torch", "# Noise\nprint(torch.randn(3))", f"# Train\ntorch.manual_seed(0)\n{TRAIN}")
    assert fixed_cells(project, lint, *cells) == [cells[0], f"torch.manual_seed(0)\n{cells[1]}", cells[2]]


def test_a_seed_moves_within_its_cell(project: Maker, lint: Lint) -> None:
    cells = ("import torch", f"print(torch.randn(3))\ntorch.manual_seed(0)\n{TRAIN}")
    moved = f"torch.manual_seed(0)\nprint(torch.randn(3))\n{TRAIN}"
    assert fixed_cells(project, lint, *cells) == [cells[0], moved]
