"""``action.yml``: its steps, run by a shell as GitHub's runner runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

yaml = pytest.importorskip("yaml")
TOP = Path(__file__).parents[1]
Maker = Callable[[Mapping[str, str | bytes]], Path]
SWITCH = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
NOTE = "import torch\n\ntorch.manual_seed(0)\nfor (x,) in torch.utils.data.DataLoader(range(3), shuffle=True):\n    print(x)\n"
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TOP / "action.yml").read_text(encoding="utf-8"))
    return found


STEPS = action()["runs"]["steps"]


class Ran(NamedTuple):
    """What the action left: the status of its last step, the log, its outputs and summary, and the inputs of the upload."""

    status: int
    log: str
    errors: str
    outputs: dict[str, str]
    summary: str
    uploaded: dict[str, str] | None


class Runner:
    """The part of GitHub's runner that the steps behind the installation need."""

    def __init__(self, folder: Path, inputs: Mapping[str, str]) -> None:
        self.folder = folder
        self.context = {
            f"inputs.{name}": inputs.get(name, each["default"]) for name, each in action()["inputs"].items()
        }
        self.temp = folder / "runner temp"
        self.temp.mkdir()
        self.summary = self.temp / "summary.md"

    def run(self, tool: Path) -> Ran:
        status, log, errors, uploaded = 0, "", "", None
        for step in STEPS[2:]:
            if not self.holds(step.get("if", "true")):
                continue
            if "uses" in step:
                uploaded = {name: self.filled(text) for name, text in step["with"].items()}
                continue
            ran = self.script(step, tool)
            status, log, errors = ran.returncode, log + ran.stdout, errors + ran.stderr
            if status:
                break
        outputs = {name: self.filled(each["value"]) for name, each in action()["outputs"].items()}
        summary = self.summary.read_text(encoding="utf-8") if self.summary.exists() else ""
        return Ran(status, log, errors, outputs, summary, uploaded)

    def script(self, step: Mapping[str, Any], tool: Path) -> subprocess.CompletedProcess[str]:
        """A step with a script; what it writes to ``GITHUB_OUTPUT`` belongs to the context afterwards."""
        written = self.temp / "output"
        written.write_text("", encoding="utf-8")
        environment = {name: self.filled(text) for name, text in step["env"].items()} | {
            "TORCHREPRO_LINT": str(tool),
            "GITHUB_OUTPUT": str(written),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_WORKSPACE": str(self.folder),
            "RUNNER_TEMP": str(self.temp),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
        for line in written.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.context[f"steps.{step['id']}.outputs.{name}"] = value
        return ran

    def filled(self, text: str) -> str:
        """A text with the values of its expressions; an output that was not written is empty."""
        return EXPRESSION.sub(lambda found: self.context.get(found[1], ""), text)

    def holds(self, condition: str) -> bool:
        """A condition of comparisons that are joined by and."""
        if condition == "true":
            return True
        sides = (re.fullmatch(r"(\S+) ([!=]=) '(.*)'", each) for each in condition.split(" && "))
        return all((self.context.get(each[1], "") == each[3]) is (each[2] == "==") for each in sides if each)


@pytest.fixture
def act(project: Maker) -> Callable[..., Ran]:
    """The action on a project, with the tool or a script in its place."""
    files = {
        "pyproject.toml": "",
        "a.py": SWITCH,
        "good.py": "import torch\n",
        "a folder/b c.py": SWITCH,
        "note.py": NOTE,
    }
    folder = project(files)

    def run(inputs: Mapping[str, str], script: str = "") -> Ran:
        tool = folder / "bin" / "torchrepro-lint"
        tool.parent.mkdir()
        body = script or f'exec "{sys.executable}" -m torchrepro_lint "$@"'
        tool.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        tool.chmod(0o755)
        return Runner(folder, inputs).run(tool)

    return run


def test_every_input_is_used_and_none_is_pasted_into_a_script() -> None:
    text = str([{key: value for key, value in step.items() if key != "run"} for step in STEPS])
    assert all(f"inputs.{name}" in text for name in action()["inputs"])
    assert all("${{" not in step.get("run", "") for step in STEPS)
    assert all(step["shell"] == "bash" for step in STEPS if "run" in step)


def test_actions_of_others_are_pinned_to_a_commit() -> None:
    used = re.findall(r"uses: (\S+)(.*)", (TOP / "action.yml").read_text(encoding="utf-8"))
    assert len(used) == 2
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) and re.fullmatch(r" # v[\d.]+", note) for name, note in used)


@needs_bash
@pytest.mark.parametrize(
    ("inputs", "status", "findings", "shown"),
    [
        ({}, 1, "3", "::warning title=torchrepro-lint TRL201"),
        ({"fail": "false"}, 0, "3", "::warning title=torchrepro-lint TRL201"),
        ({"paths": "good.py"}, 0, "0", ""),
        ({"paths": "a.py\n\n  a folder/b c.py \ngood.py\r\n"}, 1, "2", "::warning title=torchrepro-lint TRL201"),
        ({"paths": "a folder"}, 1, "1", "::warning title=torchrepro-lint TRL201"),
        ({"args": "--ignore TRL201,TRL302", "output-format": "flake8"}, 0, "0", ""),
        (
            {"args": "--extend-exclude 'a folder'\n--ignore \"TRL302\""},
            1,
            "1",
            "::warning title=torchrepro-lint TRL201",
        ),
        ({"paths": "a.py", "output-format": "json-lines"}, 1, "1", '{"cell": null, "code": "TRL201"'),
        ({"output-file": "out/a b.txt", "output-format": "flake8"}, 1, "3", ""),
    ],
)
def test_findings(act: Callable[..., Ran], inputs: dict[str, str], status: int, findings: str, shown: str) -> None:
    ran = act(inputs)
    assert ran.status == status, ran.errors
    assert ran.log.replace(" ", "").startswith(shown.replace(" ", ""))
    assert bool(ran.log) == bool(shown)
    assert ran.outputs == {"findings": findings, "sarif-file": "", "status": str(int(findings != "0"))}
    heading = ran.summary.partition("\n")[0]
    assert heading.startswith("### torchrepro-lint: ")
    assert ("no findings" in heading) == (findings == "0")
    assert Path("out/a b.txt").exists() == ("output-file" in inputs)
    assert ran.uploaded is None


@needs_bash
def test_notes_alone_fail_the_step_where_they_fail_the_tool(act: Callable[..., Ran]) -> None:
    ran = act({"paths": "note.py"})
    command = [sys.executable, "-m", "torchrepro_lint", "note.py"]
    alone = subprocess.run(command, capture_output=True, text=True, check=False).returncode
    assert ran.log.startswith("::notice title=torchrepro-lint TRL302")
    assert (ran.status, ran.outputs["status"], ran.outputs["findings"]) == (alone, str(alone), "1")


@needs_bash
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"args": "--select nothing-like-it", "fail": "false"}, "unknown rule 'nothing-like-it'"),
        ({"paths": "$(touch hacked) ;touch hacked"}, "touch hacked"),
        ({"args": "$(touch hacked) `touch hacked`"}, "touch"),
        ({"paths": "--ignore=TRL201", "upload-sarif": "true"}, "--ignore=TRL201"),
    ],
)
def test_an_error_of_usage_fails_and_uploads_nothing(
    act: Callable[..., Ran], inputs: dict[str, str], said: str
) -> None:
    ran = act(inputs)
    assert ran.status == 2
    assert said in ran.errors
    assert ran.outputs == {"findings": "", "sarif-file": "", "status": "2"}
    assert (ran.summary, ran.uploaded) == ("", None)
    assert not Path("hacked").exists()


@needs_bash
def test_a_quote_that_is_not_closed_fails(act: Callable[..., Ran]) -> None:
    ran = act({"args": "--ignore 'TRL201"})
    assert ran.status != 0
    assert "quote" in ran.errors
    assert ran.outputs == {"findings": "", "sarif-file": "", "status": ""}


@needs_bash
@pytest.mark.parametrize("script", ["kill -SEGV $$", "exit 127"])
def test_a_crash_fails_whatever_is_asked(act: Callable[..., Ran], script: str) -> None:
    ran = act({"fail": "false", "upload-sarif": "true"}, script)
    assert ran.status == int(ran.outputs["status"]) > 2
    assert (ran.outputs["sarif-file"], ran.summary, ran.uploaded) == ("", "", None)


@needs_bash
@pytest.mark.parametrize(("inputs", "findings"), [({}, 3), ({"paths": "good.py", "category": "nightly"}, 0)])
def test_findings_are_uploaded_before_the_step_fails(
    act: Callable[..., Ran], inputs: dict[str, str], findings: int
) -> None:
    ran = act({"upload-sarif": "true", **inputs})
    assert ran.status == int(findings > 0)
    assert ran.uploaded == {
        "sarif_file": ran.outputs["sarif-file"],
        "category": inputs.get("category", "torchrepro-lint"),
    }
    (run,) = json.loads(Path(ran.outputs["sarif-file"]).read_text(encoding="utf-8"))["runs"]
    assert len(run["results"]) == findings
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert places == ["a%20folder/b%20c.py", "a.py", "note.py"][:findings]


@needs_bash
def test_a_file_of_sarif_without_an_upload(act: Callable[..., Ran]) -> None:
    ran = act({"sarif-file": "my results.sarif", "summary": "false"})
    assert (ran.outputs["sarif-file"], ran.summary, ran.uploaded) == ("my results.sarif", "", None)
    assert Path("my results.sarif").exists()


@needs_bash
def test_the_project_is_analysed_once(act: Callable[..., Ran]) -> None:
    """The other formats are written from what the first run left in the cache."""
    program = "import sys; from torchrepro_lint.interfaces.cli.app import main\ntry: main()\nfinally: "
    program += 'print("torchrepro_lint.engine.run" in sys.modules, file=open("analysed", "a"))'
    ran = act({"upload-sarif": "true"}, f'exec "{sys.executable}" -c \'{program}\' "$@"')
    assert ran.status == 1
    assert Path("analysed").read_text(encoding="utf-8").split() == ["True", "False", "False", "False"]


@needs_bash
@pytest.mark.slow
def test_the_installation(tmp_path: Path) -> None:
    """It runs in the folder of the project, and runs none of its modules."""
    for name in ("argparse.py", "ensurepip.py", "pip.py", "venv.py"):
        (tmp_path / name).write_text("raise SystemExit('a module of the project ran')\n", encoding="utf-8")
    environment = {"PYTHON": sys.executable, "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(tmp_path / "env")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[1]["run"]]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment = {**inherited, **environment, "GITHUB_ACTION_PATH": str(TOP)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    if "No matching distribution" in ran.stderr:
        pytest.skip("pip cannot reach a package index")
    assert ran.returncode == 0, ran.stderr
    name, _, tool = (tmp_path / "env").read_text(encoding="utf-8").strip().partition("=")
    assert name == "TORCHREPRO_LINT"
    shown = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True, env=inherited)
    assert shown.stdout.startswith("torchrepro-lint ")
