"""A survey on this machine: its rows, what hostile repositories cost, going on after it was killed or something changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import survey_repositories as made
from conftest import Ran
from overview_projects import STUDY, overview_of

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra survey (pyarrow)")
pytest.importorskip("duckdb", reason="needs the extra survey (duckdb)")

from torchrepro_lint.interfaces.survey.dataset import SCHEMA, TABLES  # noqa: E402

TIMES = ("wall_seconds", "cpu_seconds", "peak_bytes")
Lint = Callable[..., Ran]


def rows(dataset: Path, table: str) -> list[dict[str, Any]]:
    manifest = json.loads((dataset / "survey.json").read_text())
    return [row for part in manifest["parts"] for row in pq.read_table(dataset / table / f"{part}.parquet").to_pylist()]


def runs(dataset: Path) -> dict[str, dict[str, Any]]:
    found = rows(dataset, "runs")
    assert len({row["repository"] for row in found}) == len(found)
    return {row["repository"]: row for row in found}


def everything(dataset: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows, without what a run says of time and memory."""
    told = {table: rows(dataset, table) for table in TABLES}
    told["runs"] = [{key: value for key, value in row.items() if key not in TIMES} for row in told["runs"]]
    return told


@pytest.fixture
def four(tmp_path: Path) -> list[str]:
    """The same project as a folder, in git, in an sdist and in a zip."""
    source = made.folder(tmp_path / "project")
    return [
        str(source),
        f"{made.bare(tmp_path / 'project.git', source)}@HEAD",
        str(made.sdist(tmp_path / "project-1.0.tar.gz")),
        str(made.zipped(tmp_path / "project.zip")),
    ]


def test_the_rows_are_what_a_report_says(four: list[str], tmp_path: Path, lint: Lint) -> None:
    ran = lint("survey", *four, "-o", str(tmp_path / "out"), "-q")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    overview = overview_of(Path(four[0]))
    told = everything(tmp_path / "out")
    assert {name: run["status"] for name, run in runs(tmp_path / "out").items()} == dict.fromkeys(sorted(four), "ok")
    for name, run in runs(tmp_path / "out").items():
        found = [row for row in told["findings"] if row["repository"] == name]
        assert [(row["id"], row["code"], row["message"], row["line"]) for row in found] == [
            (item.id, item.code, item.message, item.line) for item in overview.findings
        ]
        entries = [row for row in told["entry_points"] if row["repository"] == name]
        assert [(row["id"], [cell["state"] for cell in row["controls"]]) for row in entries] == [
            (entry.id, [cell.state for cell in entry.cells]) for entry in overview.entries
        ]
        verdicts = {row["path"]: row["verdict"] for row in entries}
        assert verdicts == {"train.py": "to fix", "steady.py": "reproducible"}
        assert (run["entry_points"], run["reproducible"], run["findings"]) == (2, 1, len(overview.findings))
        assert (run["torch"], run["frameworks"], run["files"]) == ("2.13", [], 3)
        assert run["peak_bytes"] > 10_000_000
        assert 0 < run["cpu_seconds"] < run["wall_seconds"] + 1
    assert {row["operation"] for row in told["operations"]} == {use.operation for use in overview.uses}
    assert {row["kind"] for row in told["gaps"]} >= {gap.kind for gap in overview.gaps}


def test_the_schema_is_in_each_file_and_on_its_page(four: list[str], tmp_path: Path, lint: Lint) -> None:
    lint("survey", four[0], "-o", str(tmp_path / "out"), "-q")
    page = (Path(__file__).parents[3] / "docs" / "survey.md").read_text(encoding="utf-8")
    assert f"schema {SCHEMA}" in page
    for table, schema in TABLES.items():
        (file,) = (tmp_path / "out" / table).iterdir()
        stored = pq.read_schema(file)
        assert stored.remove_metadata() == schema
        assert stored.metadata[b"torchrepro_lint.schema"] == str(SCHEMA).encode()
        section = page.partition(f"### `{table}`")[2].partition("\n##")[0]
        assert [name for name in schema.names[2:] if f"| `{name}` |" not in section] == [], table


def test_number_of_processes_and_order_of_names_change_no_byte(four: list[str], tmp_path: Path, lint: Lint) -> None:
    lint("survey", *four, "-o", str(tmp_path / "one"), "-q", "-j", "1")
    lint("survey", *reversed(four), "-o", str(tmp_path / "two"), "-q", "-j", "3")
    assert everything(tmp_path / "one") == everything(tmp_path / "two")
    for table in set(TABLES) - {"runs"}:
        one, two = (next((tmp_path / side / table).iterdir()).read_bytes() for side in ("one", "two"))
        assert one == two


def test_settings_of_a_repository_and_around_it(tmp_path: Path, lint: Lint) -> None:
    settings = '[tool.torchrepro-lint]\nselect = ["TRL201"]\ntorch-version = "2.2"\n'
    around = made.folder(tmp_path / "around", {"torchrepro-lint.toml": 'select = ["TRL503"]\n'})
    files = {
        **STUDY,
        "pyproject.toml": settings,
        "noqa.py": "import torch\ntorch.backends.cudnn.benchmark = True  # noqa\n",
    }
    source = made.folder(around / "project", files)
    codes = {}
    for name, options in (("ignored", ()), ("honoured", ("--honour-settings",))):
        lint("survey", str(source), "-o", str(tmp_path / name), "-q", *options)
        found = rows(tmp_path / name, "findings")
        codes[name] = {row["code"] for row in found}
        assert any(row["path"] == "noqa.py" for row in found) is (name == "ignored")
    assert len(codes["ignored"]) > 3
    assert codes["honoured"] == {"TRL201"}
    assert runs(tmp_path / "honoured")[str(source)]["torch"] == "2.2"


def test_a_hostile_repository_costs_only_its_own_row(four: list[str], tmp_path: Path, lint: Lint) -> None:
    long = "import torch\n" + "".join(
        f"def f{number}(x):\n    return [x.a{number}(y) for y in x]\n\n" for number in range(2_000)
    )
    hostile = {
        "deadline": made.folder(tmp_path / "slow", {f"a{number}.py": long for number in range(80)}),
        "bomb": made.brackets(tmp_path / "deep-1.0.tar.gz", 3 << 30),
        "unsafe path": made.tar(tmp_path / "escape.tar.gz", [("../../../evil.py", b"")]),
        "unsafe link": made.tar(tmp_path / "link.tar.gz", [("a.py", b"")], made.link("out", "/etc")),
        "damaged archive": tmp_path / "cut.zip",
        "missing": tmp_path / "nothing",
    }
    hostile["damaged archive"].write_bytes(b"PK\x03\x04")
    names = [*four, *map(str, hostile.values())]
    ran = lint("survey", *names, "-o", str(tmp_path / "out"), "--deadline", "4")
    assert ran.status == 0
    assert f"10 repositories; {len(hostile)} could not be surveyed" in ran.err
    found = runs(tmp_path / "out")
    assert {reason: found[str(place)]["reason"] for reason, place in hostile.items()} == {
        reason: reason for reason in hostile
    }
    assert all(found[str(place)]["detail"] for place in hostile.values())
    assert found[str(hostile["deadline"])]["wall_seconds"] < 30
    lint("survey", *four, "-o", str(tmp_path / "alone"), "-q", "--deadline", "4")
    told, alone = everything(tmp_path / "out"), everything(tmp_path / "alone")
    told["runs"] = [run for run in told["runs"] if run["status"] == "ok"]
    assert told == alone
    assert not (tmp_path / "evil.py").exists()


def test_brackets_and_memory_cost_a_file_or_a_repository(tmp_path: Path, lint: Lint) -> None:
    deep = made.folder(
        tmp_path / "deep", {**made.PROJECT, "deep.py": "[" * 9_000_000, "chain.py": "x = 1" + "+1" * 200_000}
    )
    long = "".join(f"def f{number}(x):\n    return [x.a{number}(y) for y in x]\n\n" for number in range(40_000))
    large = made.folder(tmp_path / "large", {"a.py": f"import torch\n{long}"})
    lint("survey", str(deep), "-o", str(tmp_path / "out"), "-q")
    run = runs(tmp_path / "out")[str(deep)]
    assert run["reproducible"] == 1
    assert {row["what"] for row in rows(tmp_path / "out", "gaps") if row["kind"] == "syntax"} >= {"deep.py:1"}
    lint("survey", str(large), "-o", str(tmp_path / "small"), "-q", "--memory", "256", "--deadline", "100")
    run = runs(tmp_path / "small")[str(large)]
    # A long file has a process of its own, which some libraries end where they get no memory.
    assert (run["status"], run["reason"]) in {("failed", "memory"), ("partial", "memory"), ("partial", "files")}, run
    assert run["detail"]
    assert run["peak_bytes"] < 256 << 20


def test_resuming_skips_what_is_there_and_unchanged(four: list[str], tmp_path: Path, lint: Lint) -> None:
    out = str(tmp_path / "out")
    lint("survey", *four, "-o", out, "-q")
    before = runs(tmp_path / "out")
    refused = lint("survey", *four, "-o", out)
    assert (refused.status, "add --resume" in refused.err) == (2, True)
    (Path(four[0]) / "train.py").write_text("import torch\ntorch.rand(1)\n")
    (Path(four[0]) / "README.md").write_text("Another one, which is not read.\n")
    more = str(made.folder(tmp_path / "more", {"a.py": "import torch\n"}))
    ran = lint("survey", *four, more, "-o", out, "--resume")
    assert "5 repositories, of which 3 have not changed" in ran.err
    after = runs(tmp_path / "out")
    assert {name for name in before if after[name] != before[name]} == {four[0]}
    assert set(after) == {*before, more}
    lint("survey", *four, more, "-o", str(tmp_path / "anew"), "-q")
    assert everything(tmp_path / "out") == everything(tmp_path / "anew")
    assert [path.name for path in sorted((tmp_path / "out" / "runs").iterdir())] == [
        f"{part}.parquet" for part in json.loads((tmp_path / "out" / "survey.json").read_text())["parts"]
    ]


def test_a_failure_for_want_of_time_is_tried_again_with_more(tmp_path: Path, lint: Lint) -> None:
    long = "".join(f"def f{number}(x):\n    return [x.a{number}(y) for y in x]\n\n" for number in range(8_000))
    source, out = str(made.folder(tmp_path / "slow", {"a.py": f"import torch\n{long}"})), str(tmp_path / "out")
    lint("survey", source, "-o", out, "--deadline", "1", "-q")
    assert runs(tmp_path / "out")[source]["reason"] == "deadline"
    assert (
        "1 repository, of which 1 has not changed"
        not in lint("survey", source, "-o", out, "--resume", "--deadline", "1").err
    )
    lint("survey", source, "-o", out, "--resume", "-q")
    assert runs(tmp_path / "out")[source]["status"] == "ok"


def test_a_survey_that_is_killed_goes_on(tmp_path: Path, lint: Lint) -> None:
    """Killed without warning while it works: what it had committed counts, what it had begun to write does not."""
    names = [str(made.folder(tmp_path / f"r{number:02}")) for number in range(12)]
    out = tmp_path / "out"
    code = (
        "import sys; from torchrepro_lint.interfaces.survey import dataset; dataset._MOST_REPOSITORIES = 2\n"
        "from torchrepro_lint.interfaces.cli.app import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "survey", *names, "-o", str(out), "-j", "1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not (out / "survey.json").exists() or len(json.loads((out / "survey.json").read_text())["parts"]) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    (out / "findings" / "part-000009.parquet").write_bytes(b"PAR1, cut off")
    (out / "findings" / "part-000003.writing").write_bytes(b"PAR1, cut off")
    had = len(rows(out, "runs"))
    assert 4 <= had < 12
    assert f"{had} have not changed" in lint("survey", *names, "-o", str(out), "--resume").err
    lint("survey", *names, "-o", str(tmp_path / "whole"), "-q")
    assert everything(out) == everything(tmp_path / "whole")
    assert len(list((out / "findings").iterdir())) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_a_survey(number: int, tmp_path: Path) -> None:
    """Neither a helper nor what it has forked: they end with the process, whether it is killed, ended or interrupted."""
    long = "".join(f"def f{number}(x):\n    return [x.a{number}(y) for y in x]\n\n" for number in range(60_000))
    source = made.folder(tmp_path / "slow", {"a.py": f"import torch\n{long}"})
    mark = f"SURVEY_MARK={tmp_path}"
    environment = {**os.environ, "SURVEY_MARK": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "torchrepro_lint", "survey", str(source), "-o", str(tmp_path / "out")]

    def living() -> list[str]:
        return [each.parent.name for each in Path("/proc").glob("[0-9]*/environ") if mark.encode() in _bytes(each)]

    if not Path("/proc/self/environ").exists():
        pytest.skip("no /proc here to look for processes in")
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        while len(living()) < 3:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        process.wait(60)
    for _ in range(500):
        if not living():
            break
        time.sleep(0.02)
    assert living() == []
    assert list(tmp_path.glob("torchrepro-survey-*")) == []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    for words in (
        ["survey", "x", "-o", "y"],
        ["survey", "show", "y"],
        ["survey", "report", "y"],
        ["survey", "compare", "y", "z"],
    ):
        code = (
            "import sys; sys.modules['pyarrow'] = sys.modules['duckdb'] = None\n"
            "from torchrepro_lint.interfaces.cli.app import main; main(sys.argv[1:])"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert ran.returncode == 2
        assert ran.stderr.rstrip().endswith("install torchrepro-lint[survey]"), ran.stderr
        assert not (tmp_path / "y").exists()


def test_help_loads_nothing_of_the_extra() -> None:
    code = (
        "import sys; from torchrepro_lint.interfaces.cli.app import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(sorted({'duckdb', 'pyarrow', 'distributed', 'libcst'} & set(sys.modules)), file=sys.stderr)\n"
    )
    for words in (["--help"], ["survey", "--help"], ["survey", "show", "--help"]):
        ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "[]\n")


def test_a_dataset_of_another_schema_or_none(tmp_path: Path, lint: Lint) -> None:
    source = str(made.folder(tmp_path / "project", {"a.py": "import torch\n"}))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    assert "has files, but no survey" in lint("survey", source, "-o", str(tmp_path / "full")).err
    assert "no survey is here" in lint("survey", "show", str(tmp_path / "full")).err
    lint("survey", source, "-o", str(tmp_path / "out"), "-q")
    manifest = json.loads((tmp_path / "out" / "survey.json").read_text())
    (tmp_path / "out" / "survey.json").write_text(json.dumps({**manifest, "schema": SCHEMA + 1}))
    assert f"a survey of schema {SCHEMA + 1}" in lint("survey", "show", str(tmp_path / "out")).err
    (tmp_path / "out" / "survey.json").write_text(json.dumps({**manifest, "parts": ["../../etc/passwd"]}))
    assert "not the manifest" in lint("survey", "show", str(tmp_path / "out")).err
    (tmp_path / "out" / "survey.json").write_text(json.dumps({**manifest, "version": "0.0.1"}))
    assert "nothing of it is used again" in lint("survey", source, "-o", str(tmp_path / "out"), "--resume").err


def test_a_scratch_folder_that_is_tidied_away_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner of temporary files may remove a helper's folder between two tasks."""
    from torchrepro_lint.interfaces.survey.repositories import named_repositories
    from torchrepro_lint.interfaces.survey.scheduling import local_results
    from torchrepro_lint.interfaces.survey.task import Task, TaskLimits

    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    names = [str(made.folder(tmp_path / f"r{number}")) for number in range(4)]
    found = []
    for result in local_results([Task(each, "", False, TaskLimits()) for each in named_repositories(names)], 1):
        for folder in (tmp_path / "scratch").iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        found.append(result.run["repository"])
    assert found == names


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("a.py: its process was ended by SIGXCPU", "deadline"),
        ("a.py: it takes more memory than there is", "memory"),
        ("a.py: its process ended with status 1", "files"),
    ],
)
def test_what_ends_the_process_of_one_file_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, reason: str
) -> None:
    from torchrepro_lint.interfaces.survey import task
    from torchrepro_lint.interfaces.survey.repositories import named_repositories

    real = task.survey
    monkeypatch.setattr(task, "survey", lambda *words: real(*words)._replace(errors=(error,)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    (repository,) = named_repositories([str(made.folder(tmp_path / "project"))])
    run = task.analyse(task.Task(repository, "", False, task.TaskLimits()), tmp_path / "scratch").run
    assert (run["status"], run["reason"], run["errors"]) == ("partial", reason, [error])
