"""What the message of TRL301 says of a program that seeds torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran

OWN = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(7)

    def __len__(self):
        return 9

    def __getitem__(self, index):
        return self.rng.random()


torch.manual_seed(7)
weight = torch.zeros(1, requires_grad=True)
for value in DataLoader(Noise(), num_workers=2):
    (value * weight).sum().backward()
"""
GLOBAL = OWN.replace("self.rng.random()", "np.random.rand()").replace("self.rng = np.random.default_rng(7)", "pass")
REPEATS = "without it, the draws repeat only while every earlier draw stays the same"


@pytest.mark.parametrize(
    ("text", "version", "says"), [(OWN, "2.1", False), (GLOBAL, "1.8", False), (GLOBAL, "2.1", True)]
)
def test_seeding_is_said_to_help_only_where_workers_are_seeded_by_torch(
    project: Callable[[Mapping[str, str]], Path], lint: Callable[..., Ran], text: str, version: str, says: bool
) -> None:
    project({"train.py": text})
    out = lint("train.py", "-q", "--select", "TRL301", "--torch-version", version).out
    assert "TRL301" in out
    assert (REPEATS in out) is says


def test_the_note_on_a_split_names_what_repeats(
    project: Callable[[Mapping[str, str]], Path], lint: Callable[..., Ran]
) -> None:
    project(
        {
            "train.py": "import torch\nfrom torch.utils.data import RandomSampler, random_split\n\n"
            "torch.manual_seed(7)\nparts = random_split(range(9), [6, 3])\nfor each in RandomSampler(range(9)):\n    print(parts, each)\n"
        }
    )
    out = lint("train.py", "-q", "--select", "TRL303").out
    assert "; without it, the split repeats only while every earlier draw stays the same" in out
    assert "; without it, the order repeats only while every earlier draw stays the same" in out
