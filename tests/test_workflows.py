"""The workflows of GitHub: checked by actionlint and shellcheck, and held to what good practice asks of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchrepro_lint.source.files import parse_toml

yaml = pytest.importorskip("yaml")
TOP = Path(__file__).parents[1]
FILES = sorted((TOP / ".github" / "workflows").glob("*.yml"))
ACTION = TOP / "action.yml"
WORKFLOWS = {file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in FILES}
JOBS = {(name, job): each for name, flow in WORKFLOWS.items() for job, each in flow["jobs"].items()}
USED = [
    (file.name, *found)
    for file in (*FILES, ACTION)
    for found in re.findall(r"uses: (\S+)(.*)", file.read_text("utf-8"))
]


def tool(name: str) -> str:
    """A program of the tests' requirements, beside this Python or on the path."""
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        pytest.skip(f"{name} is not installed; there is none for this machine")
    return found


def test_there_are_workflows() -> None:
    assert list(WORKFLOWS) == ["ci.yml", "lint.yml", "release.yml"]


def test_actionlint_has_nothing_to_say() -> None:
    command = [tool("actionlint"), "-no-color", "-shellcheck", tool("shellcheck"), *map(str, FILES)]
    ran = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_actionlint_sees_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "ci.yml"
    file.write_text(
        FILES[0].read_text(encoding="utf-8").replace("matrix.python }}", "matrix.pyhton }}"), encoding="utf-8"
    )
    ran = subprocess.run([tool("actionlint"), "-no-color", str(file)], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert 'property "pyhton" is not defined' in ran.stdout


@pytest.mark.parametrize("script", [TOP / ".ci" / "run", TOP / ".ci" / "compat"], ids=lambda each: each.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    ran = subprocess.run([tool("shellcheck"), str(script)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_shellcheck_has_nothing_to_say_of_the_action() -> None:
    """An unquoted variable there would be split at blanks, as paths must not be."""
    for step in yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]:
        if "run" in step:
            command = [tool("shellcheck"), "--shell", "bash", "-"]
            ran = subprocess.run(command, input=step["run"], capture_output=True, text=True, check=False)
            assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_permissions_are_said_and_few(name: str) -> None:
    flow = WORKFLOWS[name]
    assert flow["permissions"] in ({}, {"contents": "read"})
    writes = {
        (job, what)
        for job, each in flow["jobs"].items()
        for what, level in each.get("permissions", {}).items()
        if level == "write"
    }
    allowed = {
        "lint.yml": {("lint", "security-events")},
        "release.yml": {("publish", "id-token"), ("release", "contents")},
    }
    assert writes == allowed.get(name, set())
    assert set(flow["concurrency"]) == {"group", "cancel-in-progress"}


def test_each_job_ends_after_a_while_on_a_fixed_system() -> None:
    assert [each for each, job in JOBS.items() if not 0 < job.get("timeout-minutes", 0) <= 60] == []
    assert {job["runs-on"] for job in JOBS.values()} == {"ubuntu-24.04"}


def test_actions_of_others_are_pinned_to_a_commit_with_its_version() -> None:
    others = [each for each in USED if each[1] != "./"]
    assert len(others) > 10
    assert [each for each in others if not re.fullmatch(r"[\w/.-]+@[0-9a-f]{40}", each[1])] == []
    assert [each for each in others if not re.fullmatch(r" # v\d+\.\d+\.\d+", each[2])] == []
    assert len({(each[1].partition("@")[0]) for each in others}) == len({each[1:] for each in others})


def test_no_checkout_leaves_credentials_behind() -> None:
    steps = [step for job in JOBS.values() for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert steps
    assert all(step["with"]["persist-credentials"] is False for step in steps)


def test_no_script_has_an_expression_in_it() -> None:
    """What a branch or a title says would become part of the script."""
    assert [each for each, job in JOBS.items() for step in job["steps"] if "${{" in step.get("run", "")] == []


def test_each_supported_python_is_tried() -> None:
    project = parse_toml((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert JOBS["ci.yml", "tests"]["strategy"]["matrix"]["python"] == supported
    assert JOBS["ci.yml", "tests"]["strategy"]["matrix"]["include"] == [{"python": supported[0], "oldest": "--oldest"}]


def test_what_they_install_and_start_is_there() -> None:
    runs = "\n".join(step.get("run", "") for job in JOBS.values() for step in job["steps"])
    extras = parse_toml((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    if not (TOP / "mkdocs.yml").exists() or not (TOP / "editors" / "vscode" / "package.json").exists():
        pytest.skip("without the site or the extension, as in an sdist")
    assert set(re.findall(r"\.\[(\w+)\]", runs)) <= set(extras)
    package = json.loads((TOP / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
    assert {"test", *re.findall(r"npm run (\w+)", runs)} <= set(package["scripts"])


def test_the_release_is_published_without_a_secret() -> None:
    publish = JOBS["release.yml", "publish"]
    assert publish["environment"]["name"] == "pypi"
    assert "secrets." not in FILES[-1].read_text(encoding="utf-8")
    # Attestations are made by default.
    assert [step.get("with", {}) for step in publish["steps"]][1:] == [{}]
    assert "cache" not in str(
        [step.get("with") for job in WORKFLOWS["release.yml"]["jobs"].values() for step in job["steps"]]
    )


def test_the_release_builds_what_the_command_tags(tmp_path: Path) -> None:
    triggers: Any = WORKFLOWS["release.yml"][True]  # YAML 1.1 reads "on" so
    assert triggers == {"push": {"tags": ["v*"]}}
    assert '"v{version}"' in (TOP / "tools" / "release.py").read_text(encoding="utf-8")
