"""Timelines: events in lanes, their order, troubles, and their output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from one_file import NAME, project_of
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.domain.programs import all_programs
from torchrepro_lint.domain.timeline import KINDS, LANES, Timeline, timeline
from torchrepro_lint.interfaces.cli.app import main
from torchrepro_lint.interfaces.report import timeline_text
from torchrepro_lint.source.text import Lines
from torchrepro_lint.trace.traces import Context


def traced(source: str, torch: str = "2.13", others: Mapping[str, str] | None = None) -> Timeline:
    """The timeline of a file's only entry point."""
    files = {**(others or {}), NAME: source}
    project = project_of(files, "auto", torch)
    project.position = lambda path, offset: Lines(files[path]).position(offset)
    (program,) = (each for each in all_programs(project) if each.entry.path == NAME)
    context = Context(NAME, project.files[NAME], Lines(source), project, catalogue.load(torch), Settings())
    return timeline(context, program)


def shape(found: Timeline) -> list[tuple[str, str, str]]:
    """Lane, kind, and the code of what is wrong."""
    return [(each.lane, each.kind, each.trouble.code if each.trouble else "") for each in found.moments]


TRAINING = """\
import os, random
import numpy as np
import torch
from torch import nn

torch.backends.cudnn.benchmark = True
order = np.random.permutation(8)
model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 1, 3))
torch.manual_seed(0)
np.random.seed(0)
random.seed()
os.environ["OMP_NUM_THREADS"] = "1"
model.cuda()
for _ in range(3):
    model(torch.rand(1, 1, 8, 8).cuda()).sum().backward()
print("loss", random.random())
"""


def test_a_run_from_top_to_bottom() -> None:
    assert shape(traced(TRAINING)) == [
        ("flags", "set", "TRL201"),
        ("numpy", "draw", "TRL104"),
        ("flags", "operation", "TRL203"),
        ("torch", "draw", "TRL104"),
        ("torch", "seed", ""),
        ("numpy", "seed", ""),
        ("python", "entropy", "TRL105"),
        ("variables", "set", ""),
        ("device", "accelerator", ""),
        ("torch", "draw", ""),
        ("device", "work", ""),
        ("device", "backward", ""),
        ("python", "draw", ""),
    ]


def test_lanes_say_what_came_of_each_generator() -> None:
    states = {lane.key: lane.state for lane in traced(TRAINING).lanes}
    assert states == {
        "torch": "late", "numpy": "late", "python": "entropy", "own": "untouched",
        "flags": "touched", "variables": "touched", "device": "touched",
    }  # fmt: skip


def test_draws_behind_one_statement_are_one_moment() -> None:
    found = next(each for each in traced(TRAINING).moments if each.lane == "torch")
    assert (found.text, found.times) == ("nn.Conv2d", 2)


def test_what_is_missing_is_told_at_the_end() -> None:
    assert [each.code for each in traced(TRAINING).missing] == ["TRL203"]
    source = TRAINING.replace("np.random.seed(0)\n", "torch.use_deterministic_algorithms(True)\n")
    assert [each.code for each in traced(source, torch="2.6").missing] == ["TRL102", "TRL205"]
    assert [each.code for each in traced(source, torch="2.13").missing] == ["TRL102"]


REPAIRED = """\
import os

import torch

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = torch.nn.Conv2d(1, 1, 3).cuda()
model(torch.rand(1, 1, 8, 8).cuda()).sum().backward()
"""


@pytest.mark.parametrize("torch", ["1.8", "2.6", "2.13"])
def test_a_repeatable_run_has_no_trouble(torch: str) -> None:
    found = traced(REPAIRED, torch=torch)
    assert not [each for each in found.moments if each.trouble]
    assert not found.missing


def test_the_way_leads_through_calls_with_their_conditions() -> None:
    helper = "import torch\n\n\ndef seed(value):\n    if value is not None:\n        torch.manual_seed(value)\n"
    source = "from helper import seed\n\n\ndef main():\n    seed(3)\n\n\nif __name__ == '__main__':\n    main()\n"
    (moment,) = traced(source, others={"helper.py": helper}).moments
    assert (moment.path, moment.text) == ("helper.py", "torch.manual_seed(value)")
    assert [step.text for step in moment.way] == ["calls main", "calls seed"]
    assert moment.conditions == ("if value is not None",)


def test_a_variable_is_removed_and_a_value_unknown() -> None:
    source = "import os, sys\nos.environ['A'] = sys.argv[1]\nos.environ.pop('B')\n"
    found = traced(source).moments
    assert [(each.kind, each.text, each.value) for each in found] == [
        ("set", "A = sys.argv[1]", None),
        ("remove", "B removed", None),
    ]


@pytest.mark.parametrize("width", [40, 72, 100, 140])
def test_text_keeps_to_the_width_where_there_is_room(width: int) -> None:
    text = timeline_text.render([traced(TRAINING)], width, colour=False)
    assert max(map(len, text.splitlines())) <= max(width, 60)


def test_text_has_a_mark_in_the_lane_of_each_moment() -> None:
    lines = timeline_text.render([traced(TRAINING)], 100, colour=False).splitlines()
    table = lines[lines.index("T N P F V D") + 1 :]
    assert table[0] == "· · · ■ · ·   main.py:6  cudnn.benchmark = True  ✗ chooses algorithms by timing them (TRL201)"
    assert table[1].startswith("· ○ · · · ·   main.py:7  np.random.permutation draws  ✗ before it is seeded (TRL104)")


def test_colour_changes_nothing_but_colour() -> None:
    plain, painted = (timeline_text.render([traced(TRAINING)], 100, colour=each) for each in (False, True))
    assert "\033[31m" in painted
    for code in ("\033[31m", "\033[32m", "\033[2m", "\033[1m", "\033[0m"):
        painted = painted.replace(code, "")
    assert painted == plain


def run(arguments: list[str]) -> int:
    """The exit status of the command line."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_json_is_as_it_is_documented(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    assert run(["trace", str(tmp_path / "train.py"), "--torch-version", "2.13", "--output-format", "json"]) == 0
    (found,) = json.loads(capfdbinary.readouterr().out)
    assert list(found) == ["format", "entry", "torch", "device", "lanes", "moments", "missing", "gaps"]
    assert found["entry"] == {"path": "train.py", "function": None}
    assert (found["format"], found["torch"], found["device"]) == (1, "2.13", "cuda")
    assert [lane["key"] for lane in found["lanes"]] == [key for key, _ in LANES]
    assert {moment["kind"] for moment in found["moments"]} <= set(KINDS)
    assert found["moments"][0] == {
        "lane": "flags", "kind": "set", "what": "cudnn-benchmark", "text": "cudnn.benchmark = True", "value": "True",
        "conditions": [], "path": "train.py", "row": 6, "column": 1, "times": 1, "way": [],
        "trouble": {"lane": "flags", "code": "TRL201", "text": "chooses algorithms by timing them"},
    }  # fmt: skip
    assert found["missing"] == [
        {"lane": "flags", "code": "TRL203", "text": "1 operation needs torch.use_deterministic_algorithms(True)"}
    ]


def test_each_command_of_a_file_has_a_timeline(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = "import click, torch\n\n\n@click.command()\ndef one():\n    return torch.rand(1)\n\n\n@click.command()\ndef two():\n    torch.manual_seed(0)\n"
    (tmp_path / "cli.py").write_text(source)
    assert run(["trace", str(tmp_path / "cli.py"), "--output-format", "json"]) == 0
    found = json.loads(capfdbinary.readouterr().out)
    assert [each["entry"]["function"] for each in found] == ["one", "two"]


WRONG = [
    ("model.py", "class Net: pass\n", "model.py is not an entry point"),
    ("broken.py", "def f(:\n", "broken.py: "),
    ("notes.txt", "hello", "not an entry point"),
]


@pytest.mark.parametrize(("name", "text", "message"), WRONG)
def test_what_is_no_entry_point_is_a_usage_error(
    name: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "train.py").write_text("import torch\ntorch.manual_seed(0)\n")
    assert run(["trace", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_entry_points_that_there_are_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text("class Net: pass\n")
    (tmp_path / "train.py").write_text("import model\nprint(model.Net())\n")
    assert run(["trace", str(tmp_path / "model.py")]) == 2
    assert "the entry points of the project are train.py" in capsys.readouterr().err


def test_a_file_that_is_not_there_and_a_directory_are_usage_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(tmp_path / "none.py")]) == 2
    assert "none.py: no such file or directory" in capsys.readouterr().err
    assert run(["trace", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    assert run(["trace", str(tmp_path / "none.py"), "--torch-version", "new"]) == 2
    assert "--torch-version" in capsys.readouterr().err


def test_the_device_is_what_was_asked_for(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "train.py").write_text(REPAIRED)
    assert run(["trace", str(tmp_path / "train.py"), "--device", "cpu", "--output-format", "json"]) == 0
    (found,) = json.loads(capfdbinary.readouterr().out)
    assert found["device"] == "cpu"
