"""The findings of a file depend neither on which files are given, their order or the working directory, nor on the order of
sets, the number of processes, or the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from alone import differences, whole
from conftest import Ran

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

EXAMPLES = Path(__file__).parents[2] / "examples"

# Packages that import each other in a circle, re-export, inherit, pass datasets and models on, and are started from
# three places; with calls that lead back to themselves.
SEVERAL = {
    "pyproject.toml": '[project]\nname = "x"\nversion = "0"\n\n[project.scripts]\nx = "work.cli:main"\n',
    "work/__init__.py": "from .nets import *\nfrom .data import Pictures\nfrom . import helpers\n",
    "work/nets/__init__.py": "from .small import Small, build\nfrom work.data import Pictures as Images\n",
    "work/nets/small.py": """\
import torch
from torch import nn

from work import helpers


class Small(nn.Module):
    def __init__(self, parent=None):
        super().__init__()
        self.parent = parent
        self.pool = nn.AdaptiveAvgPool2d(7)
        self.inner = helpers.wrap(parent.inner if parent else nn.Linear(2, 2))

    def forward(self, x):
        x = x.reshape(2, -1)
        x = self.inner(x)
        return self.pool(helpers.twist(x)).cumsum(0)


def build(depth):
    return build(depth - 1) if depth else Small(Small())
""",
    "work/data/__init__.py": "from work.data.pictures import Pictures, loader\n",
    "work/data/pictures.py": """\
import random

import numpy as np
from torch.utils.data import DataLoader, Dataset

from work import nets


class Pictures(Dataset):
    def __init__(self, transform=None):
        self.transform = transform or nets.Small

    def __getitem__(self, index):
        return self.transform(np.random.rand(2)), random.random()


def loader(dataset, workers=2):
    return DataLoader(dataset, shuffle=True, num_workers=workers)
""",
    "work/helpers.py": """\
import torch


def wrap(module):
    return module if module else twist(module)


def twist(x):
    return wrap(x) if x is not None else pick(wrap(x), torch.tensor([0]))


def pick(x, index):
    return x.index_select(0, index)


def seed(value):
    torch.manual_seed(value)
""",
    "work/cli.py": """\
from work import Images, Small, helpers
from work.data import loader


def main():
    model = Small().cuda()
    for batch in loader(Images()):
        model(batch).sum().backward()
""",
    "scripts/train.py": """\
import torch
from work import Pictures, Small, helpers
from work.data.pictures import loader

torch.backends.cudnn.benchmark = True
helpers.seed(1)
model = Small().cuda()
for batch in loader(Pictures(), workers=0):
    model(batch).sum().backward()
torch.save(model, "model.pt")
""",
    "scripts/evaluate.py": """\
import random
from work.cli import main

if __name__ == "__main__":
    random.shuffle([1])
    main()
""",
}


def test_files_of_the_example_alone() -> None:
    run = whole(EXAMPLES)
    assert any(one.findings for one in run.found.values())
    assert list(differences(run, run.found)) == []


def test_files_of_a_project_of_several_packages_alone(project: Maker) -> None:
    run = whole(project(SEVERAL))
    codes = {finding.code for one in run.found.values() for finding in one.findings}
    assert codes >= {"TRL101", "TRL103", "TRL201", "TRL302"}
    assert not any(one.errors for one in run.found.values())
    assert list(differences(run, run.found)) == []


@pytest.mark.parametrize(
    "arguments", [(), ("--select", "ALL", "--output-format", "json"), ("--diff", "--unsafe-fixes")]
)
def test_the_hash_seed_changes_no_byte(project: Maker, arguments: tuple[str, ...]) -> None:
    folder = project(SEVERAL)
    command = [sys.executable, "-m", "torchrepro_lint", ".", "--quiet", "--exit-zero", *arguments]
    reports = set()
    for seed in ("0", "1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
        reports.add(ran.stdout)
    assert len(reports) == 1
    assert b"TRL" in reports.pop() or "--diff" in arguments


@pytest.mark.parametrize("arguments", [("--verbose", "--output-format", "full"), ("--diff", "--unsafe-fixes")])
def test_neither_processes_nor_order_nor_cache_nor_place_change_a_byte(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    folder = project({f"one/{path}": text for path, text in SEVERAL.items()})
    shutil.copytree(folder / "one", folder / "another place" / "and deeper")
    options = ("--select", "ALL", "--quiet", "--cache-dir", str(tmp_path / "kept"), *arguments)
    monkeypatch.chdir(folder / "one")
    names = sorted(path.relative_to(folder / "one").as_posix() for path in (folder / "one").rglob("*.py"))
    said = [lint(*options, "--no-cache", "--jobs", jobs, ".") for jobs in ("1", "2", "8")]
    said += [lint(*options, ".") for _ in ("cold", "warm")]
    monkeypatch.chdir(folder / "another place" / "and deeper")
    said += [lint(*options, "."), lint(*options, "--no-cache", "--jobs", "2", ".")]
    assert "work/" in said[0].out
    assert len(set(said)) == 1
    given = [lint(*options, "--no-cache", *each) for each in (names, names[::-1], (*names[3:], *names[:3], names[0]))]
    assert len(set(given)) == 1
    assert given[0].out.replace("./", "") == said[0].out.replace("./", "")
