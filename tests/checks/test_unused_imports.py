"""Imports that a fix leaves unused go with it; those that something may use stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Ran
from notebooks import notebook

Maker = Callable[..., Path]
Lint = Callable[..., Ran]

FIX = ("--fix", "--unsafe-fixes", "--select", "TRL105,TRL106")
USE = "import random\n\nSEED = 7\nrandom.seed({})\nprint(random.random())\n"


@pytest.mark.parametrize(
    ("imported", "value", "left"),
    [
        ("import time\n", "time.time()", ""),
        ("import time as t\n", "t.time()", ""),
        ("import time  # the clock\n", "time.time()", ""),
        ("from time import time\n", "time()", ""),
        ("from datetime import datetime\n", "datetime.now().microsecond", ""),
        ("import os, time\nprint(os)\n", "time.time()", "import os\nprint(os)\n"),
        ("import time, os\nprint(os)\n", "time.time()", "import os\nprint(os)\n"),
        ("import sys, time, os\nprint(os, sys)\n", "time.time()", "import sys, os\nprint(os, sys)\n"),
        (
            "from time import (\n    sleep,\n    time,\n)\nsleep(1)\n",
            "time()",
            "from time import (\n    sleep,\n)\nsleep(1)\n",
        ),
        (
            "from time import (\n    time,\n    sleep,\n)\nsleep(1)\n",
            "time()",
            "from time import (\n    sleep,\n)\nsleep(1)\n",
        ),
        ("import sys\n\nimport time\n\nprint(sys)\n", "time.time()", "import sys\n\nprint(sys)\n"),
        ("import os\n# The clock.\nimport time\n\nprint(os)\n", "time.time()", "import os\n\nprint(os)\n"),
        ("print('time:')\nimport time\n", "time.time()", "print('time:')\n"),
        (
            "import time\nx = dict(time=1)\nx['time'].time = 3\n",
            "time.time()",
            "x = dict(time=1)\nx['time'].time = 3\n",
        ),
    ],
)
def test_an_import_goes_with_its_last_use(project: Maker, lint: Lint, imported: str, value: str, left: str) -> None:
    root = project({"run.py": imported + USE.format(value)})
    lint(str(root), *FIX)
    assert (root / "run.py").read_text() == left + USE.format("SEED")


@pytest.mark.parametrize(
    "imported",
    [
        "import time\nprint(time.time())\n",
        "import time\nprint(f'{time.time()} s')\n",
        "import time\nx: 'time.struct_time'\n",
        "import time\n__all__ = ['time']\n",
        "import time  # noqa: F401\n",
        "try:\n    import time\nexcept ImportError:\n    pass\n",
        "if True:\n    import time\n",
        "import sys; import time\n",
        "from time import *\n",
    ],
)
def test_an_import_that_may_be_used_stays(project: Maker, lint: Lint, imported: str) -> None:
    call = "time()" if "*" in imported else "time.time()"
    root = project({"run.py": imported + USE.format(call)})
    lint(str(root), *FIX)
    assert (root / "run.py").read_text().startswith(imported)


def test_an_import_stays_that_another_file_takes(project: Maker, lint: Lint) -> None:
    text = "import time\n" + USE.format("time.time()")
    takers = {"from run import time": True, "import run\nrun.time.time()": True, "import run\nprint(time)": False}
    for taker, stays in takers.items():
        root = project({"run.py": text, "other.py": f"{taker}\n"})
        lint(str(root), *FIX)
        assert (root / "run.py").read_text().startswith("import time") is stays, taker


def test_an_import_of_a_package_stays(project: Maker, lint: Lint) -> None:
    root = project({"pkg/__init__.py": "import time\n" + USE.format("time.time()")})
    lint(str(root), *FIX)
    assert (root / "pkg/__init__.py").read_text() == "import time\n" + USE.format("SEED")


def test_two_fixes_take_the_last_two_uses(project: Maker, lint: Lint) -> None:
    uses = "import random\nimport numpy as np\n\nSEED = 7\nrandom.seed({0})\nnp.random.seed({0})\nprint(random.random(), np)\n"
    root = project({"run.py": "import time\n" + uses.format("int(time.time())")})
    lint(str(root), *FIX)
    assert (root / "run.py").read_text() == uses.format("SEED")


def test_a_fix_that_needs_the_import_keeps_it(project: Maker, lint: Lint) -> None:
    text = "import os\n\nimport torch\n\ntorch.manual_seed(os.getpid())\ntorch.use_deterministic_algorithms(True)\n"
    text += 'torch.save(torch.mm(torch.ones(2, 2).cuda(), torch.ones(2, 2).cuda()), "x.pt")\n'
    root = project({"run.py": text})
    lint(str(root), "--fix", "--unsafe-fixes", "--select", "TRL105,TRL205", "--torch-version", "2.6")
    fixed = (root / "run.py").read_text()
    assert fixed.startswith("import os\n")
    assert "os.environ[" in fixed
    assert "getpid" not in fixed


def test_an_import_of_another_cell_goes_unless_a_magic_uses_it(project: Maker, lint: Lint) -> None:
    body = USE.format("time.time()")
    root = project(
        {
            "a.ipynb": notebook("import os\nimport time", body),
            "b.ipynb": notebook("import time", body, "%timeit time.time()"),
        }
    )
    lint(str(root), *FIX)
    assert "time" not in (root / "a.ipynb").read_text()
    assert "import time" in (root / "b.ipynb").read_text()


def test_a_single_fix_tells_of_the_import(project: Maker, lint: Lint) -> None:
    root = project({"run.py": "import time\n" + USE.format("time.time()")})
    shown = lint(str(root), "--select", "TRL105", "--output-format", "json").out
    assert '"content": "SEED"' in shown.replace("\n", "")
    assert shown.count('"content"') == 2
