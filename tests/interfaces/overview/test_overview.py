"""The overview: findings, operations, and gaps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from overview_projects import HELPERS, STEADY, STUDY, TRAIN, cells_of, overview_of, survey_of
from torchrepro_lint.domain.programs import Program
from torchrepro_lint.domain.timeline import Timeline, timeline
from torchrepro_lint.interfaces.overview.controls import STATES, lanes
from torchrepro_lint.interfaces.overview.gaps import GAP_KINDS
from torchrepro_lint.interfaces.overview.survey import release_shifts
from torchrepro_lint.interfaces.report.page_content import causes, fix_commands, verdict, why_no_entry_points
from torchrepro_lint.trace.traces import Context

Project = Callable[[Mapping[str, str | bytes]], Path]


def test_findings_know_whose_run_comes_by_them(project: Project) -> None:
    library = "import os\nimport torch\n\ndef rows(d):\n    return [torch.load(n) for n in os.listdir(d)]\n"
    lonely = "import os, torch\ndef unused(d):\n    return [torch.load(n) for n in os.listdir(d)]\n"
    call = "import torch\nfrom library import rows\ntorch.save(rows('d'), 'out')\n"
    overview = overview_of(project({"library.py": library, "lonely.py": lonely, "one.py": call, "two.py": call}))
    paths = {entry.id: entry.path for entry in overview.entries}
    found = {item.place.path: [paths[each] for each in item.entries] for item in overview.findings}
    assert {path: sorted(entries) for path, entries in found.items()} == {
        "library.py": ["one.py", "two.py"],
        "lonely.py": [],
    }


def test_an_operation_concerns_who_has_its_device_and_its_backward(project: Project) -> None:
    model = "from torch import nn\ndef build():\n    return nn.AdaptiveAvgPool2d(7)\n"
    train = (
        "import torch\nfrom model import build\nnet = build().cuda()\nnet(torch.ones(1, 1, 9, 9)).sum().backward()\n"
    )
    look = "import torch\nfrom model import build\nprint('loss', build()(torch.rand(1, 1, 9, 9)))\n"
    overview = overview_of(project({"model.py": model, "train.py": train, "look.py": look}))
    assert cells_of(overview, "train.py")["operations"].state == "bad"
    assert cells_of(overview, "look.py")["operations"].state == "unused"


def test_what_to_mend_first_is_what_concerns_most(project: Project) -> None:
    runs = {f"run{number}.py": STEADY.replace("np.random.seed(0)\n", "") for number in range(3)}
    found = causes(overview_of(project({**runs, "train.py": TRAIN, "helpers.py": HELPERS})))
    assert (found[0].control, found[0].says, len(found[0].entries)) == ("numpy", "never seeded", 4)
    assert [len(each.entries) for each in found] == [4, 1, 1, 1, 1]


def test_which_command_fixes_how_many(project: Project) -> None:
    overview = overview_of(project(STUDY))
    safe = sum(bool(item.fix and item.fix.safe) for item in overview.findings)
    unsafe = sum(bool(item.fix and not item.fix.safe) for item in overview.findings)
    assert (safe, unsafe) == (1, 4)
    assert (
        fix_commands(overview)
        == "torchrepro-lint --fix fixes 1 of them, torchrepro-lint --fix --unsafe-fixes fixes 4 more."
    )
    kept = overview._replace(findings=tuple(item for item in overview.findings if not (item.fix and item.fix.safe)))
    assert fix_commands(kept) == "torchrepro-lint --fix --unsafe-fixes fixes 4 of them."
    assert fix_commands(overview._replace(findings=())) == ""


def test_lanes_are_of_generators_and_switches(project: Project) -> None:
    overview = overview_of(project(STUDY))
    (train,) = (entry for entry in overview.entries if entry.path == "train.py")
    drawn = {lane.key: lane for lane in lanes(train)}
    assert list(drawn) == ["python", "numpy", "torch", "cuda", "cudnn", "algorithms", "device"]
    assert {key for key, lane in drawn.items() if lane.missing} == {"numpy", "algorithms"}
    assert [moment.text for _, moment in drawn["cudnn"].moments] == ["cudnn.benchmark = True"]
    # Seeding torch seeds its devices.
    assert [moment.what for _, moment in drawn["cuda"].moments] == ["torch"]
    numbers = [number for lane in drawn.values() for number, moment in lane.moments if lane.key != "cuda"]
    assert sorted(numbers) == list(range(len(train.timeline.moments)))


RESIZE = "import torch.nn.functional as F\n\ndef up(x):\n    return F.interpolate(x, scale_factor=2, mode='bilinear')\n"


def test_operations_by_release(project: Project) -> None:
    overview = overview_of(project({"up.py": RESIZE}), torch="2.13")
    (use,) = overview.uses
    assert (use.operation, use.status, [str(each) for each in use.places]) == (
        "torch.nn.functional.interpolate", "deterministic", ["up.py:4"],
    )  # fmt: skip
    behaviours = dict(use.releases)
    assert (behaviours["1.13"], behaviours["2.0"], behaviours["2.1"]) == ("raises", "raises", "deterministic")
    (shift,) = overview.shifts
    assert shift == ("2.13", "1.7\u20132.0", (("deterministic", "raises", 1),))
    (older,) = overview_of(project({"up.py": RESIZE}), torch="2.0").uses
    assert older.status == "raises"
    assert older.releases == use.releases
    assert release_shifts([older], "2.0")[0].changes == (("raises", "deterministic", 1),)


def test_releases_agree_with_what_each_of_them_is_linted_for(project: Project) -> None:
    text = RESIZE + "\ndef total(x):\n    return x.float().cumsum(0)\n\ndef count(x):\n    return x.int().bincount()\n"
    place = project({"up.py": text})
    (first, *_) = (overview_of(place, torch=version).uses for version in ("2.13",))
    by_release = {use.operation: dict(use.releases) for use in first}
    for version in ("1.7", "1.13", "2.5", "2.6", "2.13"):
        now = {use.operation: use.status for use in overview_of(place, torch=version).uses}
        assert now == {operation: told[version] for operation, told in by_release.items()}


def test_what_was_not_analysed(project: Project) -> None:
    place = project(
        {
            "pyproject.toml": '[project]\nname = "x"\nscripts = { go = "gone.cli:main" }\n'
            '[tool.torchrepro-lint]\nextend-exclude = ["old"]\nper-file-ignores = { "x*" = ["TRL503"] }\n',
            "bad.py": "def broken(:\n",
            "old/a.py": "x = 1\n",
            ".gitignore": "built/\n",
            "built/b.py": "x = 1\n",
            "quiet.py": "import os, torch, pandas\ntorch.save(os.listdir('.'), 'x')  # noqa: TRL503\n",
            "idle.py": "print('hello')\n",
            "tests/test_it.py": "import torch\n",
        }
    )
    found = {(gap.kind, gap.what): gap.why for gap in overview_of(place).gaps}
    assert "syntax" in {kind for kind, what in found if what == "bad.py:1"}
    assert found["excluded", "old/"] == "exclude of the settings"
    assert found["excluded", "built/"] == ".gitignore"
    assert found["hidden", "quiet.py"].startswith("1 finding")
    assert found["ignored", "x*"] == "per-file-ignores: TRL503"
    assert ("entry", "gone.cli:main") in found
    assert ("entry", "tests/test_it.py") in found
    assert ("idle", "idle.py") in found
    assert any(kind == "package" and "pandas (1)" in what and "os" not in what.split() for kind, what in found)
    assert any(kind == "rule" and "TRL403" in what for kind, what in found)
    kinds = [gap.kind for gap in overview_of(place).gaps]
    assert kinds == sorted(kinds, key=list(GAP_KINDS).index)


def test_calls_of_what_is_not_known_are_told(project: Project) -> None:
    text = "import torch\nfrom lib import apply\n\ndef run(step, size):\n    step(torch.rand(size))\n    size.go()\n\n"
    text += "apply(run)\n\ndef known():\n    pass\n\nalias = known\nalias()\n"
    found = [gap for gap in overview_of(project({"run.py": text})).gaps if gap.kind == "call"]
    assert [(gap.what, gap.why) for gap in found] == [
        ("run.py", "what step(torch.rand(...)) (run.py:5) runs is not known: no value that is passed for step is known")
    ]


def test_no_entry_point_is_said(project: Project) -> None:
    place = project({"library.py": "def f():\n    pass\n"})
    overview = overview_of(place)
    assert overview.entries == ()
    assert verdict(overview) == "No entry point was found whose run saves or measures anything."
    assert ("entry", "all of it") in {(gap.kind, gap.what) for gap in overview.gaps}
    assert why_no_entry_points(overview).startswith("No entry point was found")
    project({"idle.py": "print('hello')\n"})
    assert why_no_entry_points(overview_of(place)).startswith("1 entry point was found, and nothing in what it runs")


def test_several_projects_are_told_apart(project: Project) -> None:
    place = project({"one/pyproject.toml": "", "one/run.py": STEADY, "two/pyproject.toml": "", "two/run.py": TRAIN, "two/helpers.py": HELPERS})  # fmt: skip
    found = survey_of(place / "one", place / "two")
    assert [aim.root for aim in found.overview.aims] == ["one", "two"]
    assert sorted(entry.path for entry in found.overview.entries) == ["one/run.py", "two/run.py"]
    assert {item.place.path for item in found.overview.findings} == {"two/run.py"}
    entry = next(each for each in found.overview.entries if each.path == "two/run.py")
    assert {moment.path for moment in entry.timeline.moments} == {"two/run.py", "two/helpers.py"}


def test_states_are_told_apart_without_colour() -> None:
    assert (
        len({state.mark for state in STATES.values()}) == len({state.word for state in STATES.values()}) == len(STATES)
    )


def test_a_run_that_breaks_the_tool_breaks_no_more(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: Context, program: Program) -> Timeline:
        if program.entry.path == "train.py":
            raise KeyError("lost")
        return timeline(context, program)

    monkeypatch.setattr("torchrepro_lint.interfaces.overview.survey.timeline", broken)
    found = survey_of(project(STUDY))
    assert [entry.path for entry in found.overview.entries] == ["steady.py"]
    (gap,) = (gap for gap in found.overview.gaps if gap.kind == "fault")
    assert (gap.what, "KeyError: 'lost'" in gap.why) == ("train.py", True)
    assert found.errors == (f"{gap.what}: {gap.why}",)


def test_findings_of_a_notebook_come_in_the_order_of_its_cells(project: Project) -> None:
    flag = "torch.backends.cudnn.benchmark = True"
    sources = ["import torch", f"# first\n\n{flag}", flag]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": each} for each in sources]
    book = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    found = overview_of(project({"a.ipynb": book})).findings
    assert [str(each.place) for each in found if each.code == "TRL201"] == ["a.ipynb:cell 2:3", "a.ipynb:cell 3:1"]
