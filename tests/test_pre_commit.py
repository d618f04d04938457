"""The hook, run by pre-commit itself on a scratch repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from notebooks import notebook

# One worker installs the tool for all of them.
pytestmark = pytest.mark.xdist_group("pre-commit")
TOP = Path(__file__).parents[1]
SEEDED = "import torch\n\ntorch.manual_seed(0)\n"
BROKEN = "import torch\n\ntorch.manual_seed(\n"


def run(*command: str, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PRE_COMMIT"))}
    environment |= {"PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


class Tool(NamedTuple):
    """A repository of the tool with its working tree as one commit, and a home of pre-commit."""

    repository: Path
    commit: str
    home: Path


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """All tests share what pre-commit installs."""
    folder = tmp_path_factory.mktemp("tool")
    repository, home = folder / "torchrepro-lint", folder / "home"
    files = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=TOP, home=home).stdout
    if not files:
        pytest.skip("not a git checkout")
    for name in files.split("\0"):
        if name.startswith(("torchrepro_lint/", "rules/")) or name in SETUP:
            _copy(TOP / name, repository / name)
    _commit(repository, home)
    commit = run("git", "rev-parse", "HEAD", cwd=repository, home=home).stdout.strip()
    return Tool(repository, commit, home)


def hook(tool: Tool, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """pre-commit on all files of a repository."""
    words = (sys.executable, "-m", "pre_commit", *command, "--all-files", "--verbose")
    ran = run(*words, cwd=folder, home=tool.home)
    if "InstallationError" in ran.stdout or "No matching distribution" in ran.stdout:
        pytest.skip("pip cannot reach a package index")
    return ran


@pytest.mark.slow
def test_a_repository_that_names_a_commit(tool: Tool, tmp_path: Path) -> None:
    """What the documentation shows: an address, a commit and the hook; then what a broken and a flawed file give."""
    _configure(tool, tmp_path)
    (tmp_path / "good.py").write_text(SEEDED, encoding="utf-8")
    _commit(tmp_path, tool.home)
    clean = hook(tool, tmp_path, "run")
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert " in 1 file" in clean.stdout
    (tmp_path / "bad.py").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "bad.ipynb").write_text(notebook("x = 1", BROKEN), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("(\n", encoding="utf-8")
    run("git", "add", ".", cwd=tmp_path, home=tool.home)
    dirty = hook(tool, tmp_path, "run")
    assert dirty.returncode == 1, dirty.stdout + dirty.stderr
    assert "bad.py:" in dirty.stdout
    assert "bad.ipynb:cell 2:3:" in dirty.stdout
    assert "TRL001" in dirty.stdout
    assert "notes.txt" not in dirty.stdout


@pytest.mark.slow
def test_a_hook_that_fixes(tool: Tool, tmp_path: Path) -> None:
    """A file that is fixed fails the hook once, so that the change is looked at and added; a second run is clean."""
    _configure(tool, tmp_path, "--fix", "--extend-select=TRL002")
    file = tmp_path / "train.py"
    file.write_text(f"{SEEDED}x = 1  # noqa: TRL201\n", encoding="utf-8")
    _commit(tmp_path, tool.home)
    ran = hook(tool, tmp_path, "run")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "files were modified by this hook" in ran.stdout
    assert file.read_text(encoding="utf-8") == f"{SEEDED}x = 1\n"
    assert hook(tool, tmp_path, "run").returncode == 0


@pytest.mark.slow
def test_files_that_the_settings_exclude(tool: Tool, tmp_path: Path) -> None:
    """pre-commit names each file, and yet the settings decide."""
    _configure(tool, tmp_path)
    (tmp_path / "torchrepro-lint.toml").write_text('extend-exclude = ["vendor"]\n', encoding="utf-8")
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "bad.py").write_text(BROKEN, encoding="utf-8")
    _commit(tmp_path, tool.home)
    ran = hook(tool, tmp_path, "run")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.slow
def test_a_try_before_there_is_a_commit(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BROKEN, encoding="utf-8")
    _commit(tmp_path, tool.home)
    ran = hook(tool, tmp_path, "try-repo", str(tool.repository), "torchrepro-lint")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "TRL001" in ran.stdout


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


def _configure(tool: Tool, folder: Path, *arguments: str) -> None:
    written = f"        args: [{', '.join(arguments)}]\n" if arguments else ""
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {tool.repository}\n    rev: {tool.commit}\n    hooks:\n      - id: torchrepro-lint\n{written}",
        encoding="utf-8",
    )
