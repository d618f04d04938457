"""``python -m benchmarks.stories``: the modules that take part in a finding, for the two stories of the architecture page.

Each story is a file of a dozen lines with one rule selected. Counted are the modules of the package whose functions are
entered while the engine runs, in the order of the first entry, and how often a call leads from one module into another. ``--checkout DIR``
counts in another checkout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.running import ROOT


class Story(NamedTuple):
    """A file, and the rule that is to find something in it."""

    rule: str
    text: str


STORIES = (
    Story(
        "TRL302",
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.zeros(8, 2))
    for (batch,) in DataLoader(data, batch_size=2, shuffle=True):
        torch.save(batch, "batch.pt")


if __name__ == "__main__":
    main()
""",
    ),
    Story(
        "TRL102",
        """\
import numpy as np


def noise(shape):
    return np.random.rand(*shape)


if __name__ == "__main__":
    np.save("noise.npy", noise((2, 2)))
""",
    ),
)
# Runs the engine under a profile function, in a process of its own, once everything is imported: what finds, not what prints.
_COUNT = """
import pkgutil
import sys
from collections import Counter
from importlib import import_module

import torchrepro_lint

for each in pkgutil.walk_packages(torchrepro_lint.__path__, "torchrepro_lint."):
    if not each.name.endswith("__main__"):
        import_module(each.name)

from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.run import run

entered, switches, at = Counter(), 0, [""]


def profile(frame, event, _argument):
    global switches
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("torchrepro_lint"):
        entered[name] += 1
        switches += name != at[0]
        at[0] = name


planned = plan(["train.py"], ConfigOptions())
sys.setprofile(profile)
found = run(planned, False, honour_comments=True, progress=lambda _: lambda: None).diagnostics
sys.setprofile(None)
assert [each.code for each in found] == [sys.argv[1]], found
print(f"{len(entered)} modules entered, {switches} switches")
print(*(name.removeprefix("torchrepro_lint.") for name in entered))
"""


def main() -> None:
    """Print the figures of each story."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stories", description=__doc__)
    parser.add_argument("--checkout", type=Path, default=ROOT, metavar="DIR", help="count in this checkout")
    parser.add_argument("--names", action="store_true", help="print the modules in the order of their first entry")
    options = parser.parse_args()
    for story in STORIES:
        figures, _, names = _counted(story, options.checkout.resolve()).partition("\n")
        print(f"{story.rule}: {figures}")
        if options.names:
            print(f"  {names.strip()}")


def _counted(story: Story, checkout: Path) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        settings = f'[project]\nname = "story"\nversion = "0"\n\n[tool.torchrepro-lint]\nselect = ["{story.rule}"]\n'
        Path(scratch, "pyproject.toml").write_text(settings, encoding="utf-8")
        Path(scratch, "train.py").write_text(story.text, encoding="utf-8")
        command = [sys.executable, "-c", _COUNT, story.rule]
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0", "XDG_CACHE_HOME": scratch}
        run = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=True)
    return run.stdout


if __name__ == "__main__":
    main()
