"""Paths inside messages lead where the path of the finding itself leads: from the working directory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from notebooks import notebook

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

FILES = {
    "sub/pyproject.toml": "",
    "sub/nets/model.py": "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n",
    "sub/train.py": "import torch\nfrom nets.model import build\n\nnet = build()\nnet(net.weight).sum().backward()\n"
    "torch.manual_seed(0)\n",
}
# What is given on the command line, from which directory, and how the two files are shown.
WAYS = (
    ("", "sub", "sub/train.py", "sub/nets/model.py"),
    ("", ".", "./sub/train.py", "./sub/nets/model.py"),
    ("", "sub/train.py", "sub/train.py", "sub/nets/model.py"),
    ("sub", ".", "./train.py", "./nets/model.py"),
    ("sub", "train.py", "train.py", "nets/model.py"),
    ("sub/nets", "..", "../train.py", "../nets/model.py"),
    ("sub/nets", "../train.py", "../train.py", "../nets/model.py"),
    ("", "{}/sub", "{}/sub/train.py", "{}/sub/nets/model.py"),
)


@pytest.mark.parametrize(("folder", "given", "own", "other"), WAYS)
def test_a_message_names_files_as_the_finding_itself_is_named(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, folder: str, given: str, own: str, other: str
) -> None:
    top = project(FILES)
    monkeypatch.chdir(top / folder)
    given, own, other = (each.format(top) for each in (given, own, other))
    once, again = (lint("-q", "--cache-dir", str(top / "cache"), given).out for _ in range(2))
    assert once.startswith(f"{own}:4:1: TRL104 nn.Linear ({other}:5, via build) draws")
    assert f"before torch.manual_seed ({own}:6) seeds it" in once
    assert again == once, "what was kept is shown in the same way"


def test_a_file_that_is_not_below_the_working_directory(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project({path.replace("train", "code/train"): text for path, text in FILES.items()}) / "sub/code")
    assert "TRL104 nn.Linear (../nets/model.py:5, via build)" in lint("-q", "train.py").out


@pytest.mark.parametrize(("folder", "given", "own"), [(folder, given, own) for folder, given, own, _ in WAYS])
def test_the_code_of_a_module_is_named_by_its_file_in_the_same_way(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, folder: str, given: str, own: str
) -> None:
    text = (
        "import random\n\nimport torch\n\n\ndef pick(rows):\n    return random.choice(rows)\n\n\ntorch.manual_seed(0)\n"
    )
    top = project({**FILES, "sub/train.py": f"{text}print(torch.randn(2), pick([1, 2, 3]))\n"})
    monkeypatch.chdir(top / folder)
    given, own = given.format(top), own.format(top)
    out = lint("-q", "--no-cache", "--select", "TRL110", given).out
    assert f"which {own} does not seed although it calls torch.manual_seed ({own}:10)" in out


def test_a_run_that_is_kept_is_shown_from_another_directory(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = project(FILES)
    whole, cache = str(top / "sub"), ("--cache-dir", str(top / "cache"), "--output-format", "sarif")
    for folder, shown in (("", "sub/nets/model.py"), ("sub", "nets/model.py")):
        monkeypatch.chdir(top / folder)
        (result,) = json.loads(lint("-q", *cache, whole).out)["runs"][0]["results"]
        assert result["message"]["text"].startswith(f"nn.Linear ({shown}:5, via build)")


def test_steps_titles_and_reasons_name_files_in_the_same_way(project: Maker, lint: Lint) -> None:
    project(
        {
            "sub/pyproject.toml": "",
            "sub/model.py": "import torch\n\nnet = torch.nn.AvgPool3d(3)\nconv = torch.nn.Conv3d(1, 1, 1).cuda()\n",
            "sub/train.py": "from model import conv, net\n\nconv(net(conv.weight)).sum().backward()\n",
        }
    )
    found = json.loads(lint("--output-format", "json", "--select", "TRL203", "sub/train.py").out)
    assert [one["unfixed"] for one in found] == [
        "deterministic algorithms would raise an error at nn.AvgPool3d (sub/model.py:3)"
    ]
    assert found[0]["steps"][0]["message"] == "imports sub/model.py"


def test_a_fix_of_another_file_names_it_in_the_same_way(project: Maker, lint: Lint) -> None:
    project(
        {
            "sub/pyproject.toml": "",
            "sub/seeding.py": "import torch\n\n\ndef seed_all(seed):\n    torch.manual_seed(seed)\n",
            "sub/train.py": "import numpy as np\nimport torch\nfrom seeding import seed_all\n\nseed_all(0)\n"
            "net = torch.nn.Linear(3, 1)\nnet(torch.tensor(np.random.rand(3))).sum().backward()\n",
        }
    )
    out = lint("--output-format", "full", "--select", "TRL102", "./sub/train.py").out
    _, fix = out.split("  fix  ")
    assert fix.splitlines()[1].strip() == "sub/seeding.py"


def test_a_cell_is_named_with_its_notebook(project: Maker, lint: Lint) -> None:
    cells = ("import torch\nnet = torch.nn.Linear(3, 1)", "net(net.weight).sum().backward()", "torch.manual_seed(0)")
    project({"sub/pyproject.toml": "", "sub/train.ipynb": notebook(*cells)})
    assert "before torch.manual_seed (sub/train.ipynb:cell 3:1) seeds it" in lint("-q", "sub").out


def test_the_diff_of_a_fix_names_a_cell_that_is_not_that_of_the_finding(project: Maker, lint: Lint) -> None:
    cells = (
        "import numpy as np\nimport torch",
        "x = torch.tensor(np.random.rand(3))\nnet = torch.nn.Linear(3, 1)",
        "net(x).sum().backward()\ntorch.manual_seed(0)",
    )
    project({"a.ipynb": notebook(*cells)})
    first, second = lint("--output-format", "full", "--select", "TRL1", "a.ipynb").out.split("  fix  ")[1:]
    assert first.splitlines()[1:4] == ["       cell 1", "       3 +", "       4 + np.random.seed(0)"]
    assert second.splitlines()[1] == "       2 + torch.manual_seed(0)", "the cell of the finding itself"


def test_each_place_in_the_messages_of_the_example_exists(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    places = re.findall(r"\(([^() ]+\.py):(\d+)[,)]", lint("-q", "examples").out)
    assert len(places) > 3
    for path, row in places:
        assert len(Path(path).read_text(encoding="utf-8").splitlines()) >= int(row)
