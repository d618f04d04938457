"""A file that may call something is never left out, however the name gets there."""

from __future__ import annotations

import pytest

from torchrepro_lint.mentions import paths_calling, paths_constructing
from torchrepro_lint.modules import Modules
from torchrepro_lint.names import Names
from torchrepro_lint.reading import read

LOADER = "torch.utils.data.DataLoader"
OTHERS = {"other.py": "import torch\n\nfor x in range(3):\n    torch.save(x, 'x')\n"}


def _names(files: dict[str, str]) -> Names:
    facts = {path: read(text.encode()).facts for path, text in files.items()}
    return Names(Modules({path: each for path, each in facts.items() if each is not None}, (".",)), "2.13")


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


def test_a_word_that_nobody_mentions_leads_nowhere() -> None:
    assert paths_calling(_names(OTHERS), ["manual_seed"]) == ()
