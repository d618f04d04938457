"""Adoption: comments that suppress existing findings, and a baseline that lists them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
pytestmark = pytest.mark.usefixtures("toys")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("BAD = 1\n", "BAD = 1  # noqa: TRL901\n"),
        ("BAD = RISKY = BAD\n", "BAD = RISKY = BAD  # noqa: TRL901,TRL902\n"),
        ("BAD = 1  # why\n", "BAD = 1  # why  # noqa: TRL901\n"),
        ("BAD = 1  # noqa: E501, W1\n", "BAD = 1  # noqa: E501, W1,TRL901\n"),
        ("BAD = RISKY  # noqa: TRL902  really\r\n", "BAD = RISKY  # noqa: TRL902,TRL901  really\r\n"),
        ('BAD = """\n"""\n', 'BAD = """\n"""  # noqa: TRL901\n'),
        ("BAD = \\\n    1\n", "BAD = \\\n    1  # noqa: TRL901\n"),
        ("x = (BAD,\n    RISKY)", "x = (BAD,  # noqa: TRL901\n    RISKY)  # noqa: TRL902"),
        ("x = 1\n", "x = 1\n"),
    ],
)
def test_comments_are_added_and_hide_what_was_found(project: Maker, lint: Lint, before: str, after: str) -> None:
    folder = project({"a.py": before})
    found = lint().out.count("\n")
    ran = lint("--add-noqa")
    assert ran == Ran(
        0, "", f"Suppressed {found} finding{'s' * (found != 1)} in {int(found > 0)} file{'s' * (not found)}\n"
    )
    assert (folder / "a.py").read_bytes() == after.encode()
    assert lint("--exit-zero") == Ran(0, "", "No findings in 1 file\n")


def test_what_cannot_be_parsed_or_is_piped_in_is_not_annotated(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "x = (\n"})
    assert lint("--add-noqa").status == 0
    assert (folder / "a.py").read_text(encoding="utf-8") == "x = (\n"
    assert lint("--add-noqa", "-", stdin=b"BAD\n").status == 2
    assert lint("--add-noqa", "--fix").status == 2


def test_a_notebook_is_annotated_in_its_cells(project: Maker, lint: Lint) -> None:
    cell = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": ["BAD = 1\n", "x = 2"],
    }
    folder = project({"a.ipynb": json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})})
    assert lint("--add-noqa", "a.ipynb").status == 0
    data = json.loads((folder / "a.ipynb").read_text(encoding="utf-8"))
    assert data["cells"][0]["source"] == ["BAD = 1  # noqa: TRL901\n", "x = 2"]


def test_a_baseline_knows_findings_wherever_they_move(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD = 1\nBAD = 1\n", "sub/b.py": "    \nRISKY\n"})
    assert lint("--write-baseline", "known.json") == Ran(0, "", "Wrote 3 findings to known.json\n")
    assert lint("--baseline", "known.json") == Ran(0, "", "No new findings in 2 files; 3 in the baseline\n")
    (folder / "a.py").write_text("x = 1\nif x:\n    BAD = 1\nBAD = 1\nBAD = 2\nBAD = 1\n", encoding="utf-8")
    ran = lint("--baseline", "known.json")
    assert (ran.status, ran.out) == (1, "./a.py:5:1: TRL901 BAD is not GOOD\n./a.py:6:1: TRL901 BAD is not GOOD\n")
    assert ran.err.startswith("Found 2 warnings in 1 file, and 3 more in the baseline; 2 fixable with --fix")
    assert json.loads((folder / "known.json").read_text(encoding="utf-8")) == {
        "version": 1,
        "findings": [
            {"path": "a.py", "code": "TRL901", "line": "BAD = 1", "count": 2},
            {"path": "sub/b.py", "code": "TRL902", "line": "RISKY", "count": 1},
        ],
    }


def test_what_a_baseline_knows_and_is_gone_is_told(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\n", "b.py": "RISKY\n", "c.py": "BAD\n"})
    lint("--write-baseline", "known.json")
    (folder / "a.py").write_text("GOOD\n", encoding="utf-8")
    (folder / "b.py").unlink()
    told = (
        "known.json lists 2 findings that no longer exist; --write-baseline would leave out: "
        "a.py: TRL901 BAD; b.py: TRL902 RISKY\n"
    )
    assert lint("--baseline", "known.json").err == f"{told}No new findings in 2 files; 1 in the baseline\n"
    (folder / "c.py").write_text("GOOD\n", encoding="utf-8")
    assert "c.py" not in lint("--baseline", "known.json", "a.py").err
    assert "a.py" in lint("--baseline", "known.json", "a.py").err


def test_a_baseline_is_relative_to_its_own_folder(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project({"a.py": "BAD\n", "tools/known.json": ""})
    lint("--write-baseline", "tools/known.json")
    assert '"path": "../a.py"' in (folder / "tools/known.json").read_text(encoding="utf-8")
    monkeypatch.chdir(folder / "tools")
    assert lint("--baseline", "known.json", "..").status == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "not a file that --write-baseline wrote"),
        ('{"version": 1, "findings": [3]}', "not a file that --write-baseline wrote"),
        ('{"version": 2, "findings": []}', "written by another version"),
    ],
)
def test_a_bad_baseline_is_one_clear_line(project: Maker, lint: Lint, content: str | None, said: str) -> None:
    project({"a.py": "BAD\n", **({"known.json": content} if content is not None else {})})
    ran = lint("--baseline", "known.json")
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


def test_what_a_baseline_knows_is_neither_reported_nor_fixed(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD = 1\nRISKY\nBAD = 1\n", "b.py": "BAD\n"})
    lint("--write-baseline", "known.json")
    (folder / "a.py").write_text("x = 1\nBAD = 1\nRISKY\nBAD = 2\nBAD = 1\n", encoding="utf-8")
    fixing = ("--fix", "--unsafe-fixes", "--baseline", "known.json")
    diff = lint("--diff", *fixing[1:])
    assert [line for line in diff.out.splitlines() if line[0] in "+-"] == [
        "--- ./a.py",
        "+++ ./a.py",
        "-BAD = 2",
        "+GOOD = 2",
    ]
    assert diff.err == "Would fix 1 finding: 1 TRL901\n"
    assert lint(*fixing) == Ran(
        0, "", "Fixed 1 finding: 1 TRL901\nNo new findings left in 2 files; 4 in the baseline\n"
    )
    assert (folder / "a.py").read_text(encoding="utf-8") == "x = 1\nBAD = 1\nRISKY\nGOOD = 2\nBAD = 1\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "BAD\n"
    assert lint(*fixing) == Ran(0, "", "No new findings in 2 files; 4 in the baseline\n")


def test_what_is_new_is_fixed_beside_what_a_baseline_knows_as_often(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\n"})
    lint("--write-baseline", "known.json")
    (folder / "a.py").write_text("BAD\nBAD\n", encoding="utf-8")
    assert lint("--fix-only", "--baseline", "known.json").status == 0
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\nGOOD\n"


def test_what_a_baseline_knows_needs_no_comment(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\n"})
    lint("--write-baseline", "known.json")
    (folder / "a.py").write_text("BAD\nBAD = 2\n", encoding="utf-8")
    assert lint("--add-noqa", "--baseline", "known.json").err == "Suppressed 1 finding in 1 file\n"
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\nBAD = 2  # noqa: TRL901\n"


@pytest.mark.parametrize("option", ["--fix", "--fix-only", "--diff"])
def test_a_baseline_is_not_written_of_what_is_being_fixed(project: Maker, lint: Lint, option: str) -> None:
    folder = project({"a.py": "BAD\n"})
    ran = lint("--write-baseline", "known.json", option)
    assert (
        ran.status,
        "--write-baseline cannot be combined with --fix, --fix-only or --diff: fix first" in ran.err,
    ) == (2, True)
    assert not (folder / "known.json").exists()
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"
