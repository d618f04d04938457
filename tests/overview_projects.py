"""Small projects for tests of the overview, and the overview of files on disk."""

from __future__ import annotations

from pathlib import Path

from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.engine.read_project import ONE_PROCESS
from torchrepro_lint.interfaces.overview.records import Cell, Overview
from torchrepro_lint.interfaces.overview.survey import Survey, survey

# A training program with something of every kind: a helper that misses NumPy, a switch, a loader, a listing.
TRAIN = """\
import os
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader
from helpers import seed_all, Pictures

def main():
    seed_all(0)
    torch.backends.cudnn.benchmark = True
    names = [name for name in os.listdir("data")]
    order = np.random.permutation(len(names))
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(7)).cuda()
    loader = DataLoader(Pictures(names, order), shuffle=True, num_workers=4)
    for batch in loader:
        model(batch).sum().backward()
    torch.save(model.state_dict(), "model.pt")

if __name__ == "__main__":
    main()
"""
HELPERS = """\
import random
import torch
from torch.utils.data import Dataset

def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)

class Pictures(Dataset):
    def __init__(self, names, order):
        self.names = [names[i] for i in order]
    def __getitem__(self, index):
        return torch.load(self.names[index]) * random.random()
    def __len__(self):
        return len(self.names)
"""
# The same with everything settled.
STEADY = """\
import random
import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = nn.Sequential(nn.Conv2d(3, 8, 3)).cuda()
model(torch.rand(1, 3, 8, 8).cuda() * np.random.rand() * random.random()).sum().backward()
torch.save(model.state_dict(), "model.pt")
"""
PROJECT = '[project]\nname = "study"\ndependencies = ["torch==2.13.0"]\n'
STUDY = {"pyproject.toml": PROJECT, "train.py": TRAIN, "helpers.py": HELPERS, "steady.py": STEADY}


def survey_of(*paths: Path, torch: str | None = None, device: str = "auto") -> Survey:
    """The survey of files and folders."""

    def override(settings: Settings) -> Settings:
        return settings._replace(device=device, torch_version=torch or settings.torch_version)

    planned = plan([str(path) for path in paths], ConfigOptions(overrides=override))
    return survey(planned, "", True, lambda total: lambda: None, ONE_PROCESS)


def overview_of(*paths: Path, torch: str | None = None, device: str = "auto") -> Overview:
    """The overview of files and folders."""
    return survey_of(*paths, torch=torch, device=device).overview


def cells_of(overview: Overview, path: str) -> dict[str, Cell]:
    """The cells of a file's only entry point, by control."""
    (entry,) = (each for each in overview.entries if each.path == path)
    return {cell.control: cell for cell in entry.cells}


def many(entries: int, findings: int) -> dict[str, str]:
    """A project of so many entry points, each with so many findings beside the one that nothing seeds it."""
    lines = "".join(f"    torch.save(os.listdir('{number}'), 'out.pt')\n" for number in range(findings))
    text = f"import os\nimport torch\n\ndef main():\n    model = torch.nn.Linear(2, 2)\n{lines}\nif __name__ == '__main__':\n    main()\n"
    return {f"part{number % 7}/run{number:03}.py": text for number in range(entries)}
