"""The table of causes: small programs with one cause each, and a twin without it that is silent.

Each page of this folder is a group. A heading names a case; below it stand two examples in the format of the rules' pages,
first the program with its cause marked, then its twin. The rules' own tests lint them. Here both are run: what the program
prints differs from run to run, what its twin prints does not. ``run=no`` on a program says that its difference can't be
shown here, a paragraph that begins with "Not run:" says why, and neither is run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from page_examples import Example, examples

HERE = Path(__file__).parent
RUNS = 4
# What depends on a race may come out the same a few times: such a program is run more often.
MOST_RUNS = 24
LEAST = 120


class Case(NamedTuple):
    """A program with a cause, and its twin."""

    page: str
    title: str
    cause: Example
    twin: Example

    @property
    def runs(self) -> bool:
        return self.cause.options.get("run") != "no"


def cases() -> list[Case]:
    """All cases of all pages, in order."""
    return [case for page in sorted(HERE.glob("*.md")) for case in cases_of(page)]


def cases_of(page: Path) -> list[Case]:
    text = page.read_text(encoding="utf-8")
    titles = [
        (text.count("\n", 0, match.start()) + 1, match[1]) for match in re.finditer(r"^## (.*)$", text, re.MULTILINE)
    ]
    found = examples(page)
    ends = [*(line for line, _ in titles[1:]), text.count("\n") + 2]
    below = [[one for one in found if line < one.line < end] for (line, _), end in zip(titles, ends, strict=True)]
    uneven = [title for (_, title), pair in zip(titles, below, strict=True) if len(pair) != 2]
    assert uneven == [], f"{page.name}: a case is a program and its twin"
    assert sum(map(len, below)) == len(found), f"{page.name}: an example stands above the first case"
    return [Case(page.stem, title, *pair) for (_, title), pair in zip(titles, below, strict=True)]


def test_the_table_is_large() -> None:
    assert len(cases()) >= LEAST
    assert sum(case.runs for case in cases()) >= LEAST


def test_each_program_has_a_cause_and_each_twin_has_none() -> None:
    assert [case.title for case in cases() if not case.cause.expected] == []
    assert [case.title for case in cases() if case.twin.expected] == []


def test_no_case_has_the_title_of_another() -> None:
    titles = [(case.page, case.title) for case in cases()]
    assert len(set(titles)) == len(titles)


def test_what_is_not_run_says_why() -> None:
    for page in sorted(HERE.glob("*.md")):
        parts = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        silent = [part.partition("\n")[0] for part in parts if ("run=no" in part) is not ("\nNot run: " in part)]
        assert silent == [], page.name


@pytest.mark.long
def test_programs_differ_and_twins_agree(tmp_path: Path) -> None:
    run = [case for case in cases() if case.runs]
    folders = [
        written(example, tmp_path / f"{index}{kind}") for index, case in enumerate(run) for kind, example in pair(case)
    ]
    plan = tmp_path / "plan.json"
    seen = [
        list(each) for each in zip(*(observed(number, plan, folders) for number in range(1, RUNS + 1)), strict=True)
    ]
    for number in range(RUNS + 1, MOST_RUNS + 1):
        again = [index for index in range(0, len(folders), 2) if len(set(seen[index])) == 1]
        for index, outcome in zip(again, observed(number, plan, [folders[index] for index in again]), strict=True):
            seen[index].append(outcome)
    failed = [(folder, outcome) for folder, each in zip(folders, seen, strict=True) for outcome in each if outcome[0]]
    assert failed == [], "a program ends with an error"
    wrong = [
        f"{case.page}: {case.title}: {what}"
        for index, case in enumerate(run)
        for what, outcomes, differs in (
            ("the program prints the same in each run", seen[2 * index], True),
            ("its twin differs", seen[2 * index + 1], False),
        )
        if (len(set(outcomes)) > 1) is not differs
    ]
    assert wrong == []


def pair(case: Case) -> tuple[tuple[str, Example], tuple[str, Example]]:
    return (("cause", case.cause), ("twin", case.twin))


def written(example: Example, folder: Path) -> Path:
    """The folder of a program; a single file is its ``main.py``."""
    for path, text in example.files.items():
        place = folder / ("main.py" if len(example.files) == 1 else path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


def observed(number: int, plan: Path, folders: list[Path]) -> list[tuple[int, str]]:
    """Each program's exit status and output under one number's hash seed and accidents."""
    if not folders:
        return []
    plan.write_text(json.dumps([str(folder) for folder in folders]))
    environment = {**os.environ, "PYTHONHASHSEED": str(number), "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        [sys.executable, str(HERE / "observe.py"), str(number), str(plan)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [(status, text) for status, text in json.loads(ran.stdout)]
