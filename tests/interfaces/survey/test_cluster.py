"""A survey on a real Dask cluster of two processes: the same rows, also where a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_survey import Lint, everything

import survey_repositories as made
from conftest import Ran

pytest.importorskip("pyarrow", reason="needs the extra survey (pyarrow)")
distributed = pytest.importorskip("distributed", reason="needs the extra survey (dask[distributed])")

from torchrepro_lint.interfaces.survey.repositories import named_repositories  # noqa: E402
from torchrepro_lint.interfaces.survey.scheduling import cluster_results, local_results  # noqa: E402
from torchrepro_lint.interfaces.survey.task import Result, Task, TaskLimits  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[str]:
    """The address of the scheduler."""
    command = [sys.executable, str(Path(__file__).parents[2] / "survey_cluster.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate("", timeout=60)


def workers(address: str) -> dict[str, int]:
    with distributed.Client(address, set_as_default=False) as client:
        return dict(client.run(os.getpid))


def plain(results: list[Result]) -> dict[str, object]:
    told = {}
    for run, rows in results:
        kept = {key: value for key, value in run.items() if key not in ("wall_seconds", "cpu_seconds", "peak_bytes")}
        assert run["repository"] not in told
        told[run["repository"]] = (kept, rows)
    return told


def test_a_cluster_gives_the_same_rows(cluster: str, tmp_path: Path, lint: Lint) -> None:
    source = made.folder(tmp_path / "project")
    names = [
        str(source),
        f"{made.bare(tmp_path / 'project.git', source)}@HEAD",
        str(made.sdist(tmp_path / "project-1.0.tar.gz")),
        str(made.brackets(tmp_path / "deep-1.0.tar.gz", 1 << 30)),
        str(tmp_path / "nothing"),
    ]
    ran: Ran = lint("survey", *names, "-o", str(tmp_path / "there"), "--scheduler", cluster)
    assert (ran.status, "5 repositories; 2 could not be surveyed" in ran.err) == (0, True), ran.err
    lint("survey", *names, "-o", str(tmp_path / "here"), "-q")
    assert everything(tmp_path / "there") == everything(tmp_path / "here")
    assert (
        "5 repositories, of which 4 have not changed"
        in lint("survey", *names, "-o", str(tmp_path / "there"), "--scheduler", cluster, "--resume").err
    )


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(cluster: str, tmp_path: Path) -> None:
    names = [str(made.folder(tmp_path / f"r{number:02}")) for number in range(24)]
    tasks = [Task(each, "", False, TaskLimits()) for each in named_repositories(names)]
    victim, *_ = workers(cluster).values()
    found = []
    for result in cluster_results(tasks, cluster):
        if len(found) == 3:
            os.kill(victim, signal.SIGKILL)
        found.append(result)
    assert plain(found) == plain(list(local_results(tasks, 2)))
    assert {run["status"] for run, _ in found} == {"ok"}
    assert victim not in workers(cluster).values()


def test_a_scheduler_that_is_not_there(tmp_path: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchrepro_lint.interfaces.survey.scheduling._CONNECT_SECONDS", 1)
    source = str(made.folder(tmp_path / "project", {"a.py": "import torch\n"}))
    ran = lint("survey", source, "-o", str(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:9")
    assert (ran.status, "no Dask scheduler answers there" in ran.err) == (2, True)
    # Nothing was surveyed, so that nothing is to be resumed.
    assert lint("survey", source, "-o", str(tmp_path / "out"), "-q").status == 0
