"""The CI runs what the README promises."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from torchrepro_lint.source.files import parse_toml

TOP = Path(__file__).parents[1]


def test_the_readmes_test_command_is_the_one_of_the_checks() -> None:
    command = "python -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest -n 2"
    assert command in (TOP / "README.md").read_text(encoding="utf-8").splitlines()
    assert command in (TOP / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_other_pythons_get_the_requirements_of_the_project() -> None:
    (function,) = re.findall(
        r"^requirements\(\) \{$.*?^\}$", (TOP / ".ci" / "compat").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    command = ["bash", "-c", f"{function}\nrequirements dependencies; requirements test"]
    ran = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    project = parse_toml((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ran.stdout.splitlines() == [*project["dependencies"], *project["optional-dependencies"]["test"]]
    assert all(">=" in each for each in project["dependencies"])
