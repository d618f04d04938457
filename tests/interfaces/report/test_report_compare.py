"""Comparison with an older report in all three formats, and files that are no report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Ran
from html_text import Taken
from overview_projects import STEADY, STUDY

Project = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

# NumPy gets its seed, deterministic mode goes, a file and its entry point come, another one goes.
AFTER = {
    "train.py": STUDY["train.py"].replace("    seed_all(0)\n", "    seed_all(0)\n    np.random.seed(0)\n"),
    "steady.py": STEADY.replace("torch.use_deterministic_algorithms(True)\n", ""),
    "new.py": STEADY.replace("random.seed(0)\nnp", "np"),
}


@pytest.fixture
def compared(project: Project, lint: Lint) -> Callable[[str], str]:
    """The report on what became of a project, in a format."""
    place = project({**STUDY, "gone.py": STEADY.replace("np.random.seed(0)\n", "")})
    assert lint("report", "-o", "old.json").status == 1
    (place / "gone.py").unlink()
    project(AFTER)
    return lambda kind: lint("report", "--compare", "old.json", "--output-format", kind).out


def test_cells_get_better_and_worse(compared: Callable[[str], str]) -> None:
    found = json.loads(compared("json"))
    names = {entry["id"]: entry["path"] for entry in found["entries"]}
    changes = {
        (names[each["entry"]], each["control"]): (each["verdict"], each["before"], each["now"], each["said"])
        for each in found["comparison"]["cells"]
    }
    assert changes == {
        ("train.py", "numpy"): ("better", "bad", "good", "never seeded"),
        ("steady.py", "algorithms"): ("worse", "good", "bad", "on"),
        ("steady.py", "cudnn"): ("worse", "good", "bad", "kernels fixed"),
    }
    assert [names[each] for each in found["comparison"]["new_entries"]] == ["new.py"]
    assert found["comparison"]["gone_entries"] == ["gone.py"]


def test_findings_come_and_go(compared: Callable[[str], str]) -> None:
    found = json.loads(compared("json"))
    new = {item["code"]: item["place"]["path"] for item in found["findings"] if item["id"] in found["comparison"]["new_findings"]}  # fmt: skip
    assert new == {"TRL103": "new.py", "TRL203": "steady.py"}
    gone = sorted((code, path) for code, path, _ in found["comparison"]["gone_findings"])
    assert gone == [("TRL102", "gone.py"), ("TRL102", "train.py")]


def test_page_and_markdown_show_the_same(compared: Callable[[str], str]) -> None:
    record = json.loads(compared("json"))["comparison"]
    page, told = compared("html"), compared("markdown")
    taken = Taken(page)
    for text in (taken.text, told):
        assert "1 control better, 2 worse; 2 findings gone, 2 new." in text
    assert (page.count("▲ better"), page.count("▼ worse"), page.count("▼ new")) == (1, 2, 2)
    lists = {title: rows.splitlines() for title, rows in re.findall(r"^\S (.*):\n\n((?:- .*\n)+)", told, re.MULTILINE)}
    assert [len(lists[title]) for title in ("Better", "Worse", "New findings", "Findings that are gone")] == [
        1,
        2,
        2,
        2,
    ]
    for _, path, line in record["gone_findings"]:
        assert f"{path} {line}" in taken.text
        assert f"`{path}` `{line}`" in told
    assert "gone.py" in taken.text
    assert lists["Entry points that are gone"] == ["- `gone.py`"]
    assert {value for _, name, value in taken.values if name == "href"} >= {
        f"#{each}" for each in record["new_findings"]
    }


def test_lines_that_move_are_the_same_findings(project: Project, lint: Lint) -> None:
    place = project(STUDY)
    lint("report", "-o", "old.json")
    (place / "train.py").write_text(
        f"'''Train.'''\n\n\n{STUDY['train.py']}".replace("    seed_all", "        \n    seed_all")
    )
    found = json.loads(lint("report", "--compare", "old.json", "--output-format", "json").out)
    nothing = {"cells": [], "new_entries": [], "gone_entries": [], "new_findings": [], "gone_findings": [], "notes": []}
    assert found["comparison"] == nothing
    assert "Nothing changed in entry points" in lint("report", "--compare", "old.json").out
    assert (
        "Nothing changed in entry points" in lint("report", "--compare", "old.json", "--output-format", "markdown").out
    )


def test_of_equal_findings_as_many_as_there_are_more(project: Project, lint: Lint) -> None:
    text = "import os, torch\ntorch.save(os.listdir('a'), 'x')\n"
    place = project({"run.py": text})
    lint("report", "-o", "old.json")
    (place / "run.py").write_text(text + "torch.save(os.listdir('a'), 'x')\n" * 2)
    found = json.loads(lint("report", "--compare", "old.json", "--output-format", "json").out)
    assert (len(found["findings"]), len(found["comparison"]["new_findings"])) == (3, 2)


def test_another_torch_is_told(project: Project, lint: Lint) -> None:
    project({"run.py": STEADY})
    lint("report", "-o", "old.json", "--torch-version", "2.5")
    out = lint("report", "--compare", "old.json", "--torch-version", "2.13", "--output-format", "json").out
    assert json.loads(out)["comparison"]["notes"] == ["The older report is for torch 2.5, this one for torch 2.13."]


def test_a_comparison_can_be_compared_with(project: Project, lint: Lint) -> None:
    project(STUDY)
    lint("report", "-o", "one.json")
    lint("report", "--compare", "one.json", "-o", "two.json")
    assert (
        json.loads(lint("report", "--compare", "two.json", "--output-format", "json").out)["comparison"]["cells"] == []
    )


def damaged(change: Callable[[Any], object]) -> Callable[[dict[str, Any]], str]:
    def make(record: dict[str, Any]) -> str:
        change(record)
        return json.dumps(record)

    return make


FOREIGN: dict[str, Callable[[dict[str, Any]], str]] = {
    "not JSON": lambda _: "<!doctype html>",
    "cut off": lambda record: json.dumps(record)[:2000],
    "empty": lambda _: "",
    "a list": lambda _: "[]",
    "a number": lambda _: "1",
    "of something else": lambda _: '{"version": 1, "findings": []}',
    "nested beyond reason": lambda _: "[" * 200_000,
    "without entries": damaged(lambda record: record.pop("entries")),
    "with a state of its own": damaged(lambda record: record["entries"][0]["cells"][0].update(state="splendid")),
    "with a number for a name": damaged(lambda record: record["entries"][0].update(path=1)),
    "with a finding that is none": damaged(lambda record: record["findings"].append(None)),
    "with true for a schema": damaged(lambda record: record.update(schema=True)),
    "with text for a schema": damaged(lambda record: record.update(schema="1")),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_no_report_is_refused(project: Project, lint: Lint, kind: str) -> None:
    place = project(STUDY)
    lint("report", "-o", "old.json")
    (place / "old.json").write_text(FOREIGN[kind](json.loads((place / "old.json").read_text())))
    ran = lint("report", "--compare", "old.json", "-o", "page.html")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "torchrepro-lint: old.json: not a report: --compare takes what torchrepro-lint report --output-format json writes\n"  # fmt: skip
    assert not (place / "page.html").exists()


def test_a_report_of_another_version_is_told_apart(project: Project, lint: Lint) -> None:
    place = project(STUDY)
    lint("report", "-o", "old.json")
    record = json.loads((place / "old.json").read_text())
    (place / "old.json").write_text(json.dumps({**record, "schema": 2}))
    ran = lint("report", "--compare", "old.json")
    assert (ran.status, "another version of the tool" in ran.err) == (2, True)


def test_bytes_that_are_no_text_are_refused(project: Project, lint: Lint) -> None:
    project({**STUDY, "old.json": b"\xff\xfe\x00{"})
    assert lint("report", "--compare", "old.json").status == 2
