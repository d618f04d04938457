"""The output formats, compared with those of flake8 and Ruff themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Ran
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report import flake8, statistics, summary
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.text import Fix, Lines, Position

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]


def diagnostic(code: str, fix: Fix | None = None, file: str = "a.py") -> Diagnostic:
    place = Position(1, 1)
    return Diagnostic(file, place, code, "message", f"/x/{file}", place, f"name-{code}", "warning", fix, Lines(""))


SAFE, UNSAFE = Fix("safe", (), True), Fix("unsafe", (), False)


@pytest.mark.usefixtures("toys")
def test_json_has_the_shape_of_ruffs(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "import os\nBAD = '''\n'''\n"})
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format", "json", "a.py"]
    theirs = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)[0]
    (ours,) = json.loads(lint("a.py", "--output-format", "json").out)
    assert shape(ours) == shape(theirs)
    assert ours == {
        "cell": None,
        "code": "TRL901",
        "end_location": {"column": 4, "row": 2},
        "filename": str(folder / "a.py"),
        "fix": {
            "applicability": "safe",
            "edits": [
                {"content": "GOOD", "end_location": {"column": 4, "row": 2}, "location": {"column": 1, "row": 2}}
            ],
            "message": "write GOOD",
        },
        "location": {"column": 1, "row": 2},
        "message": "BAD is not GOOD",
        "name": "bad-word",
        "noqa_row": 3,
        "severity": "warning",
        "url": "https://github.com/torchrepro/torchrepro-lint/blob/main/rules/TRL901-bad-word.md",
    }


def shape(value: Any) -> Any:
    """Keys and types, without the values."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value[:1]] if isinstance(value, list) else type(value).__name__


def test_json_of_nothing(project: Maker, lint: Lint) -> None:
    project({"a.py": "x = 1\n"})
    assert json.loads(lint("--output-format", "json").out) == []


@pytest.mark.parametrize("given", [".", "./", "src", "src/", "./src", "src/pkg/a.py", "b.py src", "src b.py"])
def test_paths_are_flake8s_for_the_same_arguments(project: Maker, lint: Lint, given: str) -> None:
    project({"src/pkg/a.py": "x = (\n", "src/c.py": "y = (\n", "b.py": "z = (\n"})
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "E9", *given.split()]
    theirs = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    ours = lint(*given.split()).out
    assert [line.split(":")[0] for line in ours.splitlines()] == list(
        dict.fromkeys(line.split(":")[0] for line in theirs.splitlines())
    )


def test_flake8_in_colour() -> None:
    assert flake8.render([diagnostic("TRL101")], View(colour=True)) == (
        "\033[1ma.py\033[m\033[36m:\033[m1\033[36m:\033[m1\033[36m:\033[m \033[1;33mTRL101\033[m message\n"
    )


def test_statistics() -> None:
    found = [
        diagnostic("TRL302", SAFE),
        *[diagnostic("TRL101", fix) for fix in (SAFE, UNSAFE, None)],
        diagnostic("TRL201"),
    ]
    counts = statistics.count(found, unsafe=False)
    assert (
        statistics.render(counts)
        == "3\tTRL101\t[-] name-TRL101\n1\tTRL201\t[ ] name-TRL201\n1\tTRL302\t[*] name-TRL302\n"
    )
    assert json.loads(statistics.render_json(counts))[0] == {
        "code": "TRL101",
        "count": 3,
        "fixable": True,
        "fixable_count": 1,
        "name": "name-TRL101",
    }
    assert (
        statistics.render(statistics.count([diagnostic("TRL101", UNSAFE)], unsafe=False)) == "1\tTRL101\tname-TRL101\n"
    )
    assert statistics.count([], unsafe=False) == []


@pytest.mark.parametrize(
    ("fixes", "fixed", "unsafe", "line"),
    [
        ([], 0, False, "No findings in 7 files"),
        ([None], 0, False, "Found 1 warning in 1 file"),
        ([None, SAFE], 0, False, "Found 2 warnings in 1 file; 1 fixable with --fix"),
        (
            [SAFE, UNSAFE, UNSAFE],
            0,
            False,
            "Found 3 warnings in 1 file; 1 fixable with --fix, 2 more with --unsafe-fixes",
        ),
        ([UNSAFE], 0, False, "Found 1 warning in 1 file; 1 fixable with --fix --unsafe-fixes"),
        ([SAFE, UNSAFE], 0, True, "Found 2 warnings in 1 file; 2 fixable with --fix"),
        ([], 3, False, "No findings left in 7 files"),
        ([None, SAFE], 1, False, "2 warnings left in 1 file; 1 fixable with --fix"),
    ],
)
def test_summary(fixes: list[Fix | None], fixed: int, unsafe: bool, line: str) -> None:
    assert summary.render([diagnostic("TRL101", fix) for fix in fixes], 7, fixed, unsafe) == line


@pytest.mark.parametrize(
    ("severities", "told"),
    [
        ("", "no findings"),
        ("n", "1 note"),
        ("wnewnw", "1 error, 3 warnings, 2 notes"),
        ("neen", "2 errors, 2 notes"),
    ],
)
def test_findings_are_counted_by_severity(severities: str, told: str) -> None:
    names = {"n": "note", "w": "warning", "e": "error"}
    assert summary.by_severity(names[letter] for letter in severities) == told


def test_findings_whose_fixes_could_not_be_written_are_left() -> None:
    one = diagnostic("TRL101")
    assert summary.render([], 3, 1, False, 2) == "2 findings left; their fixes could not be written"
    assert summary.render([one], 3, 1, False, 2) == "1 warning left in 1 file, 2 more whose fixes could not be written"
