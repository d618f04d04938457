"""``python -m benchmarks.fixing``: its notion of a lost token, its output for a small project, and the public repositories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks import fixing, flaking
from benchmarks.repositories import REPOSITORIES, Repository, clone, moved
from benchmarks.untouched import compare
from torchrepro_lint.config.discovery import GivenFile
from torchrepro_lint.engine.fixer import FixResult
from torchrepro_lint.engine.writing import FileChange
from torchrepro_lint.source.decoding import Source
from torchrepro_lint.source.text import Edit, Span

Maker = Callable[[Mapping[str, str | bytes]], Path]
LINE = "x = f(a, b)  # why\n"
PROGRAM = "import torch\n\ntorch.save(torch.rand(3), 'x.pt')  # drawn\n"
TINY = Repository("someone/tiny", "0" * 40, "nothing")


def status(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["fixing", *arguments])
    with pytest.raises(SystemExit) as ended:
        fixing.main()
    return ended.value.code


@pytest.mark.parametrize(
    ("edit", "outside", "lost"),
    [
        (Edit(Span(10, 10), ", c=1"), 9, []),  # beside tokens
        (Edit(Span(0, 0), "import os\n"), 9, []),
        (Edit(Span(6, 7), "z"), 8, []),  # in the stead of one
        (Edit(Span(9, 10), "''"), 8, []),
        (Edit(Span(7, 7), "1"), 9, ["a"]),  # grown onto one
        (Edit(Span(4, 4), "# "), 9, ["f", "(", "a", ",", "b", ")", "# why"]),  # a comment that swallows the rest
        (Edit(Span(18, 18), " not"), 9, ["# why"]),  # a comment that goes on
    ],
)
def test_tokens_outside_an_edit_are_to_stay(edit: Edit, outside: int, lost: list[str]) -> None:
    compared = compare(LINE, [edit])
    assert (compared.outside, [each.string for each in compared.lost]) == (outside, lost)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_tokens_are_found_again_behind_several_edits(line_end: str) -> None:
    text = line_end.join(("if x:", "    y = 'é'", "    z = 2  # two", ""))
    edits = [Edit(Span(0, 0), f"import os{line_end}"), Edit(Span(text.index("2"), text.index("2") + 1), "345")]
    assert compare(text, edits).lost == ()


def test_a_project_is_copied_fixed_and_told_of(
    project: Maker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project({"code/a.py": PROGRAM, "code/b.py": "x = 1\n", "code/old.py": "print 'x'\n"})
    assert status(monkeypatch, "code", "--select", "TRL101", "--diffs", "diffs") == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["| code | 3 | 1 | 1 | 16 | 0 |", "", "1 TRL101"]
    assert (folder / "code/a.py").read_text(encoding="utf-8") == PROGRAM
    assert "+torch.manual_seed(0)\n" in (folder / "diffs/code.diff").read_text(encoding="utf-8")


def test_a_directory_may_hold_several_projects(
    project: Maker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "[tool.torchrepro-lint]\n"
    project({"code/a.py": PROGRAM, "code/inner/pyproject.toml": settings, "code/inner/b.py": PROGRAM})
    assert status(monkeypatch, "code", "--select", "TRL101") == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["| code | 2 | 2 | 2 | 32 | 0 |", "", "2 TRL101"]


def test_the_hunks_of_a_rule_are_in_one_file_of_all_directories(
    project: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "x = 1\n" * 9 + "import glob\n\ny = torch.load(glob.glob('*.pt')[0])\n"
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in ("x = 1\n", PROGRAM)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    folder = project({"one/a.py": PROGRAM + late, "two/b.ipynb": json.dumps(notebook)})
    assert status(monkeypatch, "one", "two", "--select", "TRL101,TRL503", "--diffs", "diffs") == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in (folder / "diffs/rules").iterdir()}
    assert {name: headings(text) for name, text in written.items()} == {
        "TRL101.diff": ["--- one/a.py", "@@ -1,4 +1,6 @@ TRL101", "--- two/b.ipynb:cell 2", "@@ -1,3 +1,5 @@ TRL101"],
        "TRL503.diff": ["--- one/a.py", "@@ -12,4 +14,4 @@ TRL503"],
    }
    patch = (folder / "diffs/one.diff").read_text(encoding="utf-8")
    assert headings(patch) == ["--- a.py", "@@ -1,4 +1,6 @@ TRL101", "@@ -12,4 +14,4 @@ TRL503"]


def headings(patch: str) -> list[str]:
    return [line for line in patch.splitlines() if line.startswith(("--- ", "@@ "))]


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [
        ("import os\nimport sys\n", "import os\nx = 1\nimport sys\n", ["E402 module level import not at top of file"]),
        ("x = 1\n", "import os\nimport sys\n", ["F401 'os' imported but unused", "F401 'sys' imported but unused"]),
        ("x = 1\n", "x = y\nz = y\n", ["F821 undefined name 'y' (2 times)"]),
        (
            "import os\nimport os\n",
            "x = 1\nimport os\nimport os\n",
            ["E402 module level import not at top of file (2 times)"],
        ),
        ("x = y\n", "import os\nos.sep\nx = y\n", []),
    ],
)
def test_what_flake8_says_anew_is_told(before: str, after: str, added: Sequence[str]) -> None:
    assert sorted(flaking.added({"a.py": (before, after)})) == [f"a.py: flake8 says {line}" for line in added]


def test_an_import_may_begin_any_cell_of_a_notebook() -> None:
    assert flaking.added({"a.ipynb": ("", "x = 1\nimport os\n")}) == [
        "a.ipynb: flake8 says F401 'os' imported but unused"
    ]


def test_public_repositories_are_all_to_be_there(
    project: Maker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fixing, "REPOSITORIES", (TINY, TINY._replace(slug="someone/gone")))
    project({"public/tiny/a.py": PROGRAM, "public/other/a.py": PROGRAM})
    assert status(monkeypatch, "--public", "public") == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| tiny | 1 | 1 | 1 | 16 | 0 |",
        "",
        "1 TRL101",
        f"someone/gone at {TINY.commit}: not there",
    ]


def test_a_fix_that_puts_code_above_imports_is_told_of(
    project: Maker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def added_above(*_: object, **__: object) -> FixResult:
        given = GivenFile("a.py", str(folder / "public/tiny/a.py"))
        before, after = (Source(text) for text in (PROGRAM, f"torch = 1\n{PROGRAM}"))
        change = FileChange(given, before, after)
        return FixResult({}, {"a.py": change}, ("TRL101",), (), ({"a.py": (Edit(Span(0, 0), "torch = 1\n"),)},))

    monkeypatch.setattr(fixing, "REPOSITORIES", (TINY,))
    monkeypatch.setattr(fixing, "fix_tree", added_above)
    folder = project({"public/tiny/a.py": PROGRAM})
    assert status(monkeypatch, "--public", "public") == 1
    assert "tiny: a.py: flake8 says E402 module level import not at top of file" in capsys.readouterr().out.splitlines()


def test_repositories_are_twenty_each_with_a_directory_and_a_commit_of_its_own() -> None:
    assert len({each.name for each in REPOSITORIES}) == len(REPOSITORIES) == 20
    assert all(re.fullmatch(r"[0-9a-f]{40}", each.commit) for each in REPOSITORIES)


def test_a_repository_is_cloned_at_its_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(origin), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    origin = tmp_path / "host/someone/tiny"
    origin.mkdir(parents=True)
    git("init", "--quiet")
    for text in ("x = 1\n", "x = 2\n"):
        (origin / "a.py").write_text(text, encoding="utf-8")
        git("add", "a.py")
        git("commit", "--quiet", "--message", text)
    tiny = TINY._replace(commit=git("rev-parse", "HEAD^"))
    assert clone(tiny, tmp_path, host=str(tmp_path / "host")) == ""
    assert (tmp_path / "tiny/a.py").read_text(encoding="utf-8") == "x = 1\n"
    assert moved(tiny, tmp_path) == ""
    assert moved(TINY, tmp_path) == f"is at {tiny.commit}"
    assert "tiny" in clone(tiny, tmp_path, host=str(tmp_path / "elsewhere"))
