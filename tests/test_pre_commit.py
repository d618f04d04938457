"""The hook, run by pre-commit itself on a scratch repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from notebooks import notebook

TOP = Path(__file__).parents[1]
SEEDED = "import torch\n\ntorch.manual_seed(0)\n"
BROKEN = "import torch\n\ntorch.manual_seed(\n"


def run(*command: str, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PRE_COMMIT"))}
    environment |= {"PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_pre_commit_try_repo(tmp_path: Path) -> None:
    """The tool is taken from a commit of its own working tree, as ``try-repo`` does for a hook in development."""
    tool, scratch, home = tmp_path / "tool", tmp_path / "scratch", tmp_path / "home"
    files = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=TOP, home=home).stdout
    if not files:
        pytest.skip("not a git checkout")
    for name in files.split("\0"):
        if name.startswith(("torchrepro_lint/", "rules/")) or name in SETUP:
            _copy(TOP / name, tool / name)
    _commit(tool, home)
    scratch.mkdir()
    (scratch / "good.py").write_text(SEEDED, encoding="utf-8")
    _commit(scratch, home)
    command = (sys.executable, "-m", "pre_commit", "try-repo", str(tool), "torchrepro-lint", "--all-files", "--verbose")
    clean = run(*command, cwd=scratch, home=home)
    if "InstallationError" in clean.stdout or "No matching distribution" in clean.stdout:
        pytest.skip("pip cannot reach a package index")
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert "No findings in 1 file" in clean.stdout
    (scratch / "bad.py").write_text(BROKEN, encoding="utf-8")
    (scratch / "bad.ipynb").write_text(notebook("x = 1", BROKEN), encoding="utf-8")
    (scratch / "notes.txt").write_text("(\n", encoding="utf-8")
    run("git", "add", ".", cwd=scratch, home=home)
    dirty = run(*command, cwd=scratch, home=home)
    assert dirty.returncode == 1, dirty.stdout + dirty.stderr
    assert "bad.py:" in dirty.stdout
    assert "bad.ipynb:cell 2:3:" in dirty.stdout
    assert "TRL001" in dirty.stdout
    assert "notes.txt" not in dirty.stdout


SETUP = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", ".gitignore")


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())


def _commit(folder: Path, home: Path) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "Start")):
        ran = run("git", *words, cwd=folder, home=home)
        assert ran.returncode == 0, ran.stderr
