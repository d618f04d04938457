"""``python -m benchmarks.planting``: an operator plants what it names, and verdicts come from the linter."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.planting import places, rendered, run
from benchmarks.plants import Edit, Operator, Plant, Source, planted, rows
from benchmarks.plants.table import OPERATORS

_TEXT = """import torch
from torch.utils.data import DataLoader


def test_loader(dataset, workers):
    return DataLoader(dataset, num_workers=workers, shuffle=False)
"""


# Something for each operator to change.
_RICH = """import argparse
import glob
import os
import random
from multiprocessing import Pool

import gymnasium
import torch
from optuna.samplers import TPESampler
from torch.utils.data import DataLoader, Dataset, SequentialSampler, random_split


class Images(Dataset):
    def __init__(self, root, names):
        self.root = root
        self.names = [name for name in sorted(os.listdir(root))]
        self.masks = sorted(glob.glob(root))[0]
        self.classes = enumerate(sorted(set(names)))

    def __getitem__(self, index):
        return self.names[index]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    random.seed(args.seed)
    state, _ = gymnasium.make("Pong").reset(seed=args.seed)
    return random.sample(state, 3)


def load(dataset, root, names, name):
    torch.manual_seed(0)
    sampler = TPESampler(seed=7)
    generator = torch.Generator()
    train, rest = random_split(dataset, [0.5, 0.5], generator=torch.Generator())
    order = SequentialSampler(train)
    found = os.listdir(root)
    found.sort()
    kinds = []
    for kind in ["train", "test"]:
        kinds.append(kind)
    pool = Pool()
    for each in pool.map(len, names):
        kinds.append(each)
    yield DataLoader(train, shuffle=True, num_workers=4, generator=generator)
    yield DataLoader(rest, shuffle=False, num_workers=4, sampler=order)
    yield DataLoader(rest, shuffle=False, num_workers=4)


class Net(torch.nn.Module):
    def forward(self, x):
        x = self.conv(x)
        return x


def main(names, width):
    optimizer = torch.optim.SGD(Net().parameters(), lr=0.1)
    total = torch.zeros(width)
    for name in names:
        total += Net()(name)
        total.sum().backward()
    return optimizer


if __name__ == "__main__":
    main([], 3)
"""


# The same for those that plant into a module without torch.
_PREPARING = """import os


def prepare(root, names):
    files = []
    for name in names:
        files.append(os.path.join(root, name))
    return files
"""


def _named(name: str) -> Operator:
    return next(one for one in OPERATORS if one.name == name)


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "loading.py").write_text(_TEXT)
    (tmp_path / "other.py").write_text("print('no loader')\n")
    (tmp_path / "broken.py").write_text("DataLoader(")
    return str(tmp_path)


def test_a_cause_is_planted_into_a_copy_and_reported(project: str) -> None:
    (verdict,) = run([project], [_named("shuffle=False becomes True")], 5, 1)
    assert verdict.answer == "reported"
    assert [line for line in verdict.change if line.startswith("+")] == [
        "+    return DataLoader(dataset, num_workers=workers, shuffle=True)"
    ]
    assert Path(project, "loading.py").read_text() == _TEXT


def test_what_the_rule_does_not_name_is_missed(project: str) -> None:
    operator = Operator("nothing", "TRL302", ("DataLoader",), lambda source: iter([Plant((Edit(0, 0, "\n"),))]))
    (verdict,) = run([project], [operator], 5, 1)
    assert verdict.answer == "missed"
    assert "# 0 of 1 planted causes reported" in "\n".join(rendered([verdict]))


def test_what_was_there_before_is_no_verdict(project: str) -> None:
    Path(project, "loading.py").write_text(_TEXT.replace("=False", "=True"))
    around = _TEXT.index("DataLoader(d"), _TEXT.index("\n", _TEXT.index("DataLoader(d"))
    operator = Operator("nothing", "TRL302", ("DataLoader",), lambda source: iter([Plant((Edit(0, 0, "\n"),), around)]))
    assert run([project], [operator], 5, 1) == []


def test_the_seed_decides_the_order_of_places(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.py").write_text(_TEXT)
    operator = _named("shuffle=False becomes True")
    once, again, other = ([one.path for one in places([str(tmp_path)], operator, seed)] for seed in (1, 1, 2))
    assert once == again
    assert once != other
    assert sorted(once) == sorted(other) == [f"{number}.py" for number in range(9)]


def test_rows_are_those_of_what_was_written() -> None:
    text = "one\ntwo\nthree\nfour\n"
    assert rows(text, Plant((Edit(4, 7, "2\n2"), Edit(0, 0, "zero\n")))) == (3, 4)
    assert rows(text, Plant((Edit(8, 8, "new\nnew\n"),))) == (3, 4)
    assert rows(text, Plant((Edit(8, 13, "3"), Edit(0, 0, "zero\n")), (4, 18))) == (3, 5)


def test_nodes_are_found_in_text_that_is_not_ascii() -> None:
    source = Source("'é'; first('ü',\n  2); last()\n")
    (call,) = source.calls("first")
    assert source.segment(call) == "first('ü',\n  2)"
    assert [source.segment(call) for call in source.calls("last")] == ["last()"]


def test_imports_stand_where_they_may() -> None:
    for text in ('"""Doc."""\nimport os\n', '"""Doc."""\nfrom __future__ import annotations\nx = 1\n', "x = 1\n"):
        source = Source(text)
        ast.parse(planted(text, [source.importing("numpy"), source.at_the_end("y = 2\n")]))


def test_operators_have_names_of_their_own() -> None:
    assert len({one.name for one in OPERATORS}) == len(OPERATORS)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_an_operator_finds_its_place_and_leaves_python(operator: Operator) -> None:
    text = _PREPARING if "without torch" in operator.name else _RICH
    plants = list(operator.find(Source(text)))
    assert plants
    for plant in plants:
        new = planted(text, plant.edits)
        ast.parse(new)
        assert new != text
        first, last = rows(text, plant)
        assert 1 <= first <= last <= len(new.splitlines())
