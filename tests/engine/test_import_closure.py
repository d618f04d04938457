"""The import closure: what is read of a directory that is never taken whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.config import discovery
from torchrepro_lint.config.discovery import GivenFile
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.import_closure import plan

Maker = Callable[[Mapping[str, str]], Path]
Lint = Callable[..., Ran]


@pytest.fixture
def home(project: Maker, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """Files in the home directory."""

    def make(files: Mapping[str, str]) -> Path:
        folder = project(files)
        monkeypatch.setenv("HOME", str(folder))
        return folder

    return make


def read(*paths: str, stdin: str | None = None) -> list[str]:
    piped = GivenFile("train.py", str(Path("train.py").resolve()), stdin.encode()) if stdin is not None else None
    (tree,) = plan(paths, ConfigOptions(), stdin=piped).trees
    return list(tree.files)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"train.py": "import net", "net.py": "import deep", "deep.py": "", "beside.py": ""}, ["deep.py", "net.py"]),
        ({"train.py": "from a import b", "a/__init__.py": "", "a/b.py": "", "a/c.py": ""}, ["a/__init__.py", "a/b.py"]),
        ({"train.py": "import a.b", "a/b.py": "from . import c", "a/c.py": "", "a/d.py": ""}, ["a/b.py", "a/c.py"]),
        (
            {
                "train.py": "import a.b.c",
                "a/__init__.py": "",
                "a/b/__init__.py": "from .. import d",
                "a/b/c.py": "",
                "a/d.py": "",
            },
            ["a/__init__.py", "a/b/__init__.py", "a/b/c.py", "a/d.py"],
        ),
        (
            {"train.py": "from a import *", "a/__init__.py": "from .b import *", "a/b.py": "x = 1"},
            ["a/__init__.py", "a/b.py"],
        ),
        ({"train.py": "def f():\n    import late", "late.py": ""}, ["late.py"]),
        (
            {"train.py": "import sys\nsys.path.append('lib')\nimport net", "lib/net.py": "", "lib/x.py": ""},
            ["lib/net.py"],
        ),
        (
            {
                "train.py": "import paths\nimport net",
                "paths.py": "import sys\nsys.path.append('lib')",
                "lib/net.py": "",
            },
            ["lib/net.py", "paths.py"],
        ),
        ({"train.py": "import net", "src/net.py": "import other", "src/other.py": ""}, []),
        ({"train.py": "import net", "net.py": "import train"}, ["net.py"]),
        ({"train.py": "import net", "net.py": "def broken(", "x.py": ""}, ["net.py"]),
        ({"train.py": "import data.load", "data/a.png": ""}, []),
        ({"train.py": "import os, torch"}, []),
    ],
)
def test_what_the_given_file_imports(home: Maker, files: dict[str, str], expected: list[str]) -> None:
    home(files)
    assert read("train.py") == sorted([*expected, "train.py"])


def test_imports_are_resolved_as_in_a_whole_project(home: Maker) -> None:
    """The folder of pictures in the script's own folder is no module; the one of the home directory is."""
    home({"exp/train.py": "import utils", "exp/utils/a.png": "", "utils.py": "", "exp/other.py": ""})
    assert read("exp/train.py") == ["exp/train.py", "utils.py"]


def test_a_file_on_standard_input_counts_with_its_text(home: Maker) -> None:
    home({"train.py": "import old", "old.py": "", "new.py": ""})
    assert read(stdin="import new") == ["new.py", "train.py"]


def test_what_is_excluded_is_not_read(home: Maker) -> None:
    home({"train.py": "import a, b", "a.py": "", "b.py": "", ".gitignore": "b.py\n"})
    assert read("train.py") == ["a.py", "train.py"]


def test_a_notebook_imports_too(home: Maker) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "%pylab\nimport net"}
    book = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    home({"a.ipynb": book, "net.py": "", "x.py": ""})
    assert read("a.ipynb") == ["a.ipynb", "net.py"]


def test_a_directory_that_is_given_is_taken_whole(home: Maker) -> None:
    home({"a.py": "", "b/c.py": ""})
    planned = plan((".",), ConfigOptions())
    assert planned.trees[0].files == ("a.py", "b/c.py")
    assert planned.notes == ()


@pytest.mark.parametrize(("most", "taken"), [(3, ["a.py", "b.py", "c.py"]), (2, ["a.py", "b.py"])])
def test_an_unmarked_directory_of_too_many_files_is_not_taken_whole(
    project: Maker, monkeypatch: pytest.MonkeyPatch, most: int, taken: list[str]
) -> None:
    monkeypatch.setattr(discovery, "MAX_UNMARKED_FILES", most)
    project({"a.py": "import b", "b.py": "", "c.py": ""})
    assert read("a.py") == taken
    Path("setup.py").touch()
    assert read("a.py") == ["a.py", "b.py", "c.py", "setup.py"]


def test_the_search_stops_at_the_limit(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_MAX_UNMARKED_ENTRIES", 5)
    folder = project(
        {"train.py": "import a", "a.py": "", **{f"data/{number}.png": "" for number in range(9)}, "data/z/b.py": ""}
    )
    scanned: list[str] = []

    def entries(directory: str, most: int | None) -> Iterable[object]:
        scanned.append(directory)
        found = [*known(directory, most)]
        assert len(found) <= 6
        return iter(found)

    known: Callable[[str, int | None], Iterator[object]] = discovery._entries  # type: ignore[assignment]
    monkeypatch.setattr(discovery, "_entries", entries)
    assert read("train.py") == ["a.py", "train.py"]
    assert scanned == [str(folder), str(folder / "data")]


CONNECTED = {
    "train.py": "import torch\nfrom lib.net import build\nif __name__ == '__main__':\n    build()(torch.ones(1)).sum().backward()\n",
    "lib/__init__.py": "",
    "lib/net.py": "import torch\nfrom . import (\n    parts,  # (all)\n    more)\ndef build():\n    return torch.nn.Linear(1, 1)\n",
    "lib/parts.py": "",
    "lib/more.py": "",
    "lib/unused.py": "",
    "seeded.py": "import torch, train\ntorch.manual_seed(0)\ntrain.build()\n",
    "one_line.py": "x = 1; import seeded",
    "by_string.py": "import importlib\nname = 'one_line'\nimportlib.import_module(name)\n",
    "split.py": "from \\\n    by_string import name\n",
    "semicolon.py": "import torch; from split import name; import os\n",
    "nested/relative.py": "if True: from \\\n  ..lib import (parts, # one; two\n  net)\n",
    "of_torch.py": "from torchvision import lib, train\nimport torch.seeded as split, torch.lib; from os import (\n    one_line)\n",
    "alone.py": "import os\n# train, net\nx = 'lib'\n",
    "apart/net2.py": "import apart.other",
    "apart/other.py": "",
}


def test_only_what_imports_may_connect_is_parsed_where_much_was_not_given(project: Maker) -> None:
    project({**CONNECTED, **{f"other_{number}.py": "import os" for number in range(110)}})
    connected = sorted(CONNECTED.keys() - {"alone.py", "of_torch.py", "apart/net2.py", "apart/other.py"})
    assert read("train.py") == connected
    assert read("lib/more.py") == connected
    assert read("of_torch.py") == ["of_torch.py"]
    assert read("apart/other.py") == ["apart/net2.py", "apart/other.py"]
    assert read("alone.py", "apart/net2.py") == ["alone.py", "apart/net2.py", "apart/other.py"]
    assert len(read(".")) == len(CONNECTED) + 110
    Path("setup.cfg").touch()
    assert len(read("train.py")) == len(CONNECTED) + 110


def test_the_same_is_said_of_a_file_whatever_is_left_out(project: Maker, lint: Lint) -> None:
    folder = project(
        {**CONNECTED, **{f"other_{number}.py": "import torch\ntorch.manual_seed(0)" for number in range(110)}}
    )
    names = sorted(CONNECTED)
    few = [lint(name, "-q", "--select", "ALL").out for name in names]
    (folder / "setup.cfg").touch()
    assert [lint(name, "-q", "--select", "ALL").out for name in names] == few
    assert "TRL101" in few[names.index("train.py")]
