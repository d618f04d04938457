"""A release, in a scratch repository."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tools import release
from torchrepro_lint import __version__
from torchrepro_lint.source.files import parse_toml

Run = Callable[..., str]
TOP = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- Much.\n\n## 0.1.0, 2026-01-02\n\n- The first.\n"
README = """```yaml
repos:
  - repo: https://github.com/torchrepro/torchrepro-lint
    rev: 1f2e3d4c
  - repo: https://github.com/other/hook
    rev: v0.1.0
```

- uses: actions/checkout@v0.1.0
- uses: torchrepro/torchrepro-lint@v0.1.0
pip install git+https://github.com/torchrepro/torchrepro-lint@<commit>.
code --install-extension torchrepro-lint-0.1.0.vsix
"""
FILES = {
    "torchrepro_lint/__init__.py": '"""The tool."""\n\n__version__ = "0.1.0"\n',
    "CHANGELOG.md": CHANGELOG,
    "README.md": README,
    "docs/page.md": "nothing of releases\n",
    "editors/vscode/package.json": '{\n  "name": "x",\n  "version": "0.1.0",\n  "engines": {"vscode": "1"}\n}\n',
    "editors/vscode/package-lock.json": '{\n  "version": "0.1.0",\n  "packages": {\n    "": {\n      "version": "0.1.0"\n'
    '    },\n    "a": {\n      "version": "0.1.0"\n    }\n  }\n}\n',
}


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", *who, *words), cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an origin."""
    folder = tmp_path / "work"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", str(tmp_path / "origin.git"))
    for name, value in (("user.name", "test"), ("user.email", "test@example.org"), ("commit.gpgsign", "false")):
        git(folder, "config", name, value)
    git(folder, "config", "tag.gpgsign", "false")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Start")
    monkeypatch.setattr(release, "TOP", folder)
    return folder


@pytest.fixture
def run(repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command; what it prints, or why it ends."""

    def command(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["release", *words])
        try:
            release.main()
        except SystemExit as ended:
            return str(ended.code)
        return capsys.readouterr().out

    return command


def test_a_release(repository: Path, run: Run) -> None:
    printed = run("0.2.0")
    assert printed == ("committed and tagged v0.2.0; to publish it: git push --atomic origin HEAD refs/tags/v0.2.0\n")
    text = {path: (repository / path).read_text(encoding="utf-8") for path in FILES}
    today = datetime.now(timezone.utc).date().isoformat()
    assert text["torchrepro_lint/__init__.py"] == FILES["torchrepro_lint/__init__.py"].replace("0.1.0", "0.2.0")
    assert text["CHANGELOG.md"] == CHANGELOG.replace("Unreleased", f"0.2.0, {today}")
    assert text["README.md"] == (
        README.replace("1f2e3d4c", "v0.2.0")
        .replace("lint@v0.1.0", "lint@v0.2.0")
        .replace("<commit>", "v0.2.0")
        .replace("0.1.0.vsix", "0.2.0.vsix")
    )
    assert text["docs/page.md"] == FILES["docs/page.md"]
    assert json.loads(text["editors/vscode/package.json"])["version"] == "0.2.0"
    lock = json.loads(text["editors/vscode/package-lock.json"])
    versions = [lock["version"], *(each["version"] for each in lock["packages"].values())]
    assert versions == ["0.2.0", "0.2.0", "0.1.0"]
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "log", "-1", "--format=%s").strip() == "Release 0.2.0"
    assert git(repository, "describe", "--exact-match").strip() == "v0.2.0"
    assert git(repository, "ls-remote", "origin") == ""
    assert run("0.2.0", "--notes") == "### Added\n\n- Much.\n"


def test_a_dry_run_shows_the_changes_only(repository: Path, run: Run) -> None:
    shown = run("0.2.0", "--dry-run")
    assert '+__version__ = "0.2.0"\n' in shown
    assert "+    rev: v0.2.0\n" in shown
    assert git(repository, "status", "--porcelain") == git(repository, "tag") == ""
    assert git(repository, "log", "-1", "--format=%s").strip() == "Start"


def test_a_push(repository: Path, run: Run) -> None:
    assert run("0.2.0", "--push") == ""
    pushed = git(repository, "ls-remote", "origin").split()[1::2]
    assert pushed == ["refs/heads/main", "refs/tags/v0.2.0", "refs/tags/v0.2.0^{}"]


def test_a_first_release_of_the_version_that_is_written_already(repository: Path, run: Run) -> None:
    (repository / "CHANGELOG.md").write_text("## 0.1.0, unreleased\n\n- All.\n", encoding="utf-8")
    git(repository, "commit", "-qam", "Say all")
    assert run("0.1.0").startswith("committed and tagged v0.1.0")
    assert run("0.1.0", "--notes") == "- All.\n"


def test_a_pre_release_leaves_the_extension_alone(repository: Path, run: Run) -> None:
    assert run("0.2.0rc1").startswith("committed and tagged v0.2.0rc1")
    assert '"version": "0.1.0"' in (repository / "editors/vscode/package.json").read_text(encoding="utf-8")
    assert run("0.2.0b1", "--dry-run") == "no release: 0.2.0b1 is older than 0.2.0rc1"


@pytest.mark.parametrize(
    ("version", "path", "text", "why"),
    [
        ("0.2", None, "", "0.2 is no version like 0.2.0 or 0.2.0rc1"),
        ("v0.2.0", None, "", "v0.2.0 is no version like 0.2.0 or 0.2.0rc1"),
        ("0.0.9", None, "", "0.0.9 is older than 0.1.0"),
        ("0.2.0", "new.txt", "x", "the tree has changes; commit them first"),
        (
            "0.2.0",
            "CHANGELOG.md",
            "## 0.1.0, 2026-01-02\n",
            "CHANGELOG.md needs one heading like '## Unreleased', and has 0",
        ),
        (
            "0.2.0",
            "CHANGELOG.md",
            "## Unreleased\n\n## 0.1.0, 2026-01-02\n",
            "nothing is said under the heading of CHANGELOG.md",
        ),
        ("0.2.0", "CHANGELOG.md", "## Unreleased\n", "nothing is said under the heading of CHANGELOG.md"),
    ],
)
def test_what_is_refused(repository: Path, run: Run, version: str, path: str | None, text: str, why: str) -> None:
    if path:
        (repository / path).write_text(text, encoding="utf-8")
    if path == "CHANGELOG.md":
        git(repository, "commit", "-qam", "Change")
    before = git(repository, "rev-parse", "HEAD")
    assert run(version) == f"no release: {why}"
    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "tag") == ""


def test_a_tag_that_is_there(repository: Path, run: Run) -> None:
    git(repository, "tag", "v0.2.0")
    assert run("0.2.0") == "no release: the tag v0.2.0 is there already"


def test_notes_are_of_the_version_that_is_checked_out(run: Run) -> None:
    assert run("0.1.0", "--notes") == "- The first.\n"
    assert run("0.2.0", "--notes") == "no release: the version is 0.1.0, not 0.2.0"


def test_the_version_is_written_once() -> None:
    project = parse_toml((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == release._PACKAGE
    assert release._VERSION.fullmatch(__version__)


def test_the_changelog_of_the_project_can_be_released() -> None:
    text = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert all(re.fullmatch(r"[\d.]+, \d{4}-\d\d-\d\d", each) for each in headings[1:])
    assert re.search(r"unreleased|\d{4}-\d\d-\d\d", headings[0], re.IGNORECASE)
