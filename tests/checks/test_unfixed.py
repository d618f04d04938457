"""A finding without a fix says why, in a sentence of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Ran

Maker = Callable[..., Path]
Lint = Callable[..., Ran]

START = "import torch\n\nw = torch.ones(8, 8, requires_grad=True, device='cuda')\n"
CASES = [
    ("TRL001", "x = = 1", "a syntax error has to be corrected by hand"),
    (
        "TRL001",
        "def f(x):\n    return x.cuda(non_blocking=True, async=True)",
        "passes both async and non_blocking, and only",
    ),
    ("TRL001", "def f(x, async=True):\n    return x", "async is also a name of the program's own"),
    ("TRL401", "def f(x, i):\n    return x.index_select('N', i)", "the dimension is not a number"),
    ("TRL401", "def f(x, i, a):\n    return x.index_select(0, i, *a)", "passes something other than an input"),
    ("TRL401", "def f(x, i):\n    return torch.index_select(index=i + 1, dim=0, input=x + 1)", "cannot be swapped"),
    ("TRL401", "def f(x, i):\n    return x.index_select(0, [i])", "the index is not a tensor"),
    ("TRL401", "def f(x, i):\n    return x.index_select((  # zero\n        0), i)", "comment"),
    ("TRL401", "class A:\n    def __getitem__(self, i):\n        return w.index_select(0, i)", "may call itself"),
    (
        "TRL401",
        "range = 3\n\n\ndef f(x, d, i):\n    return x.index_select(d, i)",
        "redefines range or slice",
    ),
    ("TRL402", "w.put_(w.long(), w)\nw.kthvalue(3)[0].sum().backward()", "deterministic|left to you"),
    (
        "TRL101",
        (
            "import argparse\nimport numpy as np\n\np = argparse.ArgumentParser()\np.add_argument('--split_seed', type=int)\n"
            "a = p.parse_args()\nif a.split_seed is not None:\n    np.random.seed(a.split_seed)\n"
            "torch.save((torch.nn.Linear(2, 2), np.random.rand(3)), 'net.pt')"
        ),
        "not in scope",
    ),
    (
        "TRL105",
        (
            "import os\nfrom multiprocessing import Process\n\nimport numpy as np\n\n\ndef fill(path):\n    np.random.seed(os.getpid())\n"
            "    np.save(path, np.random.rand(3))\n\n\ndef main():\n    for path in 'ab':\n"
            "        Process(target=fill, args=(path,)).start()\n\n\nif __name__ == '__main__':\n    main()"
        ),
        "would all have the same seed",
    ),
    (
        "TRL105",
        (
            "from multiprocessing import Process\n\nimport numpy as np\n\n\ndef fill(path):\n    np.random.seed()\n"
            "    np.save(path, np.random.rand(3))\n\n\ndef main():\n    for path in 'ab':\n"
            "        Process(target=fill, args=(path,)).start()\n\n\nif __name__ == '__main__':\n    main()"
        ),
        "would all have the same seed",
    ),
    (
        "TRL203",
        (
            "def start(strict=False):\n    torch.use_deterministic_algorithms(strict)\n\n\n"
            "start()\nnet = torch.nn.Embedding(8, 8).cuda()\nnet(w.long()).sum().backward()"
        ),
        r"a call \(\S*run.py:7\) turns deterministic algorithms off by what it is passed; pass True there",
    ),
    (
        "TRL303",
        (
            "import random\n\nfrom torch.utils.data import SubsetRandomSampler\n\n\nclass Data:\n"
            "    def __init__(self, root, seed=123):\n        random.seed(seed)\n\n\ndef sampler(data):\n"
            "    return SubsetRandomSampler(range(3))\n\n\ndef main(*options):\n    torch.save(list(sampler(Data(*options))), 'x.pt')"
            "\n\n\nif __name__ == '__main__':\n    main('data')"
        ),
        "fix  none: the seed of the program is not in scope here",
    ),
    ("TRL504", "def f(x, n):\n    return hash(x) % n", "not known whether the value is text or bytes"),
    ("TRL504", "def f(x, n):\n    return hash((str(x), 1)) % n", "several ways to turn this tuple into bytes"),
    ("TRL504", "def f(x: str, n):\n    return f'{hash(x) % n}'", "inside an f-string"),
]


@pytest.mark.parametrize(("code", "text", "reason"), CASES)
def test_a_reason_is_given(project: Maker, lint: Lint, code: str, text: str, reason: str) -> None:
    root = project({"run.py": f"{START}\n\n{text}\n"})
    shown = lint(str(root), "--select", code, "--output-format", "full").out
    assert code in shown
    assert re.search(reason, shown), shown


TASKS = """import random
from functools import partial
from multiprocessing import Pool

import torch


def score(item, scale):
    return scale * item * random.random()


if __name__ == "__main__":
    with Pool(4) as pool:
        {run}
    torch.save(scores, "scores.pt")
"""
RUNS = [
    "scores = pool.map(partial(score, scale=2.0), range(9))",
    "task = partial(score, scale=2.0)\n        scores = pool.map(task, range(9))",
    "task = partial(score, scale=2.0)\n        scores = [each for each in pool.imap(task, range(9))]",
    "task = score\n        scores = pool.starmap(task, [(1, 2.0), (2, 2.0)])",
]


@pytest.mark.parametrize("run", RUNS)
def test_no_seed_is_written_into_a_task(project: Maker, lint: Lint, run: str) -> None:
    root = project({"run.py": TASKS.format(run=run)})
    shown = lint(str(root), "--select", "TRL103", "--diff", "--unsafe-fixes").out
    assert "random.seed" not in shown.partition("def score")[2].partition("__main__")[0], shown
    assert "TRL103" in lint(str(root), "--select", "TRL103").out
