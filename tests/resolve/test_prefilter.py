"""The may-call prefilter is sound: it keeps every file that may call something."""

from __future__ import annotations

import pytest

from one_file import project_of
from torchrepro_lint.catalogue.catalogue import seeding_identifiers
from torchrepro_lint.engine.parsed_file import parse_bytes
from torchrepro_lint.resolve.call_sites import call_candidates, paths_constructing
from torchrepro_lint.resolve.imports import ImportResolver
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.search_path import ModuleTree

LOADER = "torch.utils.data.DataLoader"
OTHERS = {"other.py": "import torch\n\nfor x in range(3):\n    torch.save(x, 'x')\n"}


def _names(files: dict[str, str]) -> Names:
    facts = {path: parse_bytes(text.encode()).facts for path, text in files.items()}
    found = {path: each for path, each in facts.items() if each is not None}
    return Names(ImportResolver(found, ModuleTree(found, (".",))), "2.13")


@pytest.mark.parametrize(
    ("files", "caller"),
    [
        ({"a.py": "from torch.utils.data import DataLoader\nDataLoader([])\n"}, "a.py"),
        ({"a.py": "import torch.utils.data as d\nd.DataLoader([])\n"}, "a.py"),
        ({"a.py": "from torch.utils.data import DataLoader as Batches\nBatches([])\n"}, "a.py"),
        ({"a.py": "from torch.utils.data import DataLoader as B\n", "b.py": "from a import B\nB([])\n"}, "b.py"),
        (
            {"a.py": "import functools, torch\nmake = functools.partial(torch.utils.data.DataLoader)\nmake([])\n"},
            "a.py",
        ),
        (
            {
                "a.py": "import torch\nBatches = torch.utils.data.DataLoader\n",
                "b.py": "import a\n\ndef f():\n    return a.Batches([])\n",
            },
            "b.py",
        ),
        (
            {
                "a.py": "import torch\nKINDS = {'plain': torch.utils.data.DataLoader}\n",
                "b.py": "from a import KINDS\nKINDS['plain']([])\n",
            },
            "b.py",
        ),
        (
            {
                "a.py": "import torch\nclass Mine(torch.utils.data.DataLoader):\n    pass\n",
                "b.py": "from a import Mine\n\nclass Yours(Mine):\n    pass\n",
                "c.py": "from b import Yours\nYours([])\n",
            },
            "c.py",
        ),
        ({"a.py": "from torch.utils.data import *\nDataLoader([])\n"}, "a.py"),
    ],
)
def test_a_file_that_may_construct_a_loader_is_among_them(files: dict[str, str], caller: str) -> None:
    found = paths_constructing(_names({**files, **OTHERS}), [LOADER])
    assert caller in found
    assert "other.py" not in found


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n\ndef f():\n    torch.manual_seed(0)\n",
        "import torch\n\ndef f():\n    fix = torch.manual_seed\n    fix(0)\n",
        "import torch\n\ndef f(fix=torch.manual_seed):\n    fix(0)\n",
        "def f():\n    from torch import manual_seed as fix\n    fix(0)\n",
        "import torch\n\nclass A:\n    def __init__(self):\n        self.fix = torch.manual_seed\n    def f(self):\n        self.fix(0)\n",
        "import functools, torch\n\ndef f():\n    fix = functools.partial(torch.manual_seed, 0)\n    fix()\n",
        "import torch\n\ndef pick():\n    return torch.manual_seed\n\ndef f():\n    fix = pick()\n    fix(0)\n",
        "import torch\nALL = {'torch': torch.manual_seed}\n\ndef f():\n    ALL['torch'](0)\n",
        "import torch\n\ndef f():\n    getattr(torch, 'manual_seed')(0)\n",
        "import torch\n\ndef f(cuda):\n    (torch.cuda.manual_seed if cuda else torch.manual_seed)(0)\n",
        "import torch\nALL = [torch.manual_seed]\n\ndef f():\n    for each in ALL:\n        each(0)\n",
    ],
)
def test_a_call_of_a_seeder_is_found_by_its_words_alone(text: str) -> None:
    project = project_of({"a.py": text})
    words = frozenset({"manual_seed"})
    found = [site for site in project.calls_by("a.py", words) if "torch.manual_seed" in site.names]
    assert found
    assert found == [site for site in project.calls("a.py") if "torch.manual_seed" in site.names]


def test_what_only_bears_a_word_of_a_seeder_costs_no_look_behind_its_neighbours() -> None:
    project = project_of({"a.py": "def f(args, net):\n    net.run(args.seed)\n    return net.step(1)\n"})
    assert list(project.calls_by("a.py", frozenset({"seed"}))) == []


def test_rows_of_packages_that_no_file_imports_have_no_words() -> None:
    modules = _names({"a.py": "import torch\ntorch.manual_seed(0)\n"}).modules
    words = seeding_identifiers(modules.mentions)
    assert "manual_seed" in words
    assert "train" not in words
    own = {"ultralytics/__init__.py": "class YOLO: pass\n", "a.py": "from ultralytics import YOLO\nYOLO().train()\n"}
    assert "train" not in seeding_identifiers(_names(own).modules.mentions)
    assert "train" in seeding_identifiers(_names({"a.py": own["a.py"]}).modules.mentions)


def test_a_word_that_nobody_mentions_leads_nowhere() -> None:
    assert call_candidates(_names(OTHERS), ["manual_seed"]).paths == ()
