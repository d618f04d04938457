"""``action.yml``: its steps, run by a shell as GitHub's runner runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
TOP = Path(__file__).parents[1]
Maker = Callable[[Mapping[str, str | bytes]], Path]
SWITCH = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TOP / "action.yml").read_text(encoding="utf-8"))
    return found


def test_every_input_is_used_and_none_is_pasted_into_a_script() -> None:
    steps = action()["runs"]["steps"]
    text = str([{key: value for key, value in step.items() if key != "run"} for step in steps])
    assert all(f"${{{{ inputs.{name} }}}}" in text for name in action()["inputs"])
    assert all("${{" not in step.get("run", "") for step in steps)
    assert all(step["shell"] == "bash" for step in steps if "run" in step)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("inputs", "status", "shown"),
    [
        ({}, 1, "::warning title=torchrepro-lint TRL201"),
        ({"fail": "false"}, 0, "::warning title=torchrepro-lint TRL201"),
        ({"paths": "good.py"}, 0, ""),
        ({"args": "--ignore TRL201", "output-format": "flake8"}, 0, ""),
        ({"output-format": "sarif", "output-file": "out/a b.sarif"}, 1, ""),
        ({"args": "--select nothing-like-it", "fail": "false"}, 2, ""),
        ({"paths": "$(touch hacked) ;touch hacked"}, 2, ""),
    ],
)
def test_the_last_step(project: Maker, inputs: dict[str, str], status: int, shown: str) -> None:
    folder = project({"pyproject.toml": "", "a.py": SWITCH, "good.py": "import torch\n"})
    tool = folder / "bin/torchrepro-lint"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchrepro_lint "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    step = action()["runs"]["steps"][-1]
    given = {name: inputs.get(name, each["default"]) for name, each in action()["inputs"].items()}
    environment = {
        name: value if not value.startswith("${{") else given[value.split(".")[1].removesuffix(" }}")]
        for name, value in step["env"].items()
    }
    environment |= {"TORCHREPRO_LINT": str(tool), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert ran.returncode == status, ran.stderr
    assert ran.stdout.startswith(shown)
    assert bool(ran.stdout) == bool(shown)
    assert not (folder / "hacked").exists()
    if status < 2:
        summary = (folder / "summary.md").read_text(encoding="utf-8")
        found = "1 warning in 1 file" if status or shown else "no findings"
        assert summary.startswith(f"### torchrepro-lint: {found}\n")
    assert (folder / "out/a b.sarif").exists() == ("output-file" in inputs)
