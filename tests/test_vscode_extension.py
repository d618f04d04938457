"""The extension for Visual Studio Code: its own tests under Node, and what its manifest promises of this package."""

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

from torchrepro_lint import __version__
from torchrepro_lint.config.settings import DEVICES, OWN_FILE, SEVERITIES
from torchrepro_lint.interfaces.lsp import workspace

TOP = Path(__file__).parents[1]
EXTENSION = TOP / "editors" / "vscode"
SECTION = workspace.SECTION
# The settings that the extension keeps to itself.
OWN = {"enable", "interpreter", "path", "trace.server"}


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    return found


def settings() -> dict[str, dict[str, Any]]:
    """The declared settings by name, without the section."""
    properties = manifest()["contributes"]["configuration"]["properties"]
    assert all(name.startswith(f"{SECTION}.") for name in properties)
    return {name.removeprefix(f"{SECTION}."): each for name, each in properties.items()}


def test_the_settings_are_those_of_the_server() -> None:
    of_server = {re.sub(r"-(.)", lambda found: found[1].upper(), name) for name in workspace._READERS}
    assert settings().keys() - OWN == of_server


def test_the_choices_and_defaults_are_those_of_the_server() -> None:
    declared = settings()
    assert declared["minSeverity"]["enum"] == [None, *SEVERITIES]
    assert declared["device"]["enum"] == [None, *DEVICES]
    usual = workspace.Preferences()
    assert declared["delay"]["default"] == usual.delay * 1000
    assert declared["isolated"]["default"] == usual.isolated
    for name in ("minimum", "maximum"):
        _, mistakes = workspace.preferences({"delay": declared["delay"][name]})
        assert mistakes == ()


@pytest.mark.parametrize("version", ["", "minimum", "2.6", "2.6.1+cu124", "2", "newest", "v2.6"])
def test_a_version_is_taken_by_both_or_by_none(version: str) -> None:
    pattern = settings()["torchVersion"]["pattern"]
    _, mistakes = workspace.preferences({"torchVersion": version or None})  # an empty text is not sent
    assert bool(re.search(pattern, version)) == (mistakes == ())


def test_settings_files_are_checked_against_the_schema_of_the_package() -> None:
    (entry,) = manifest()["contributes"]["tomlValidation"]
    assert entry["fileMatch"] == OWN_FILE
    folder = TOP / "torchrepro_lint" / "config"
    schema = folder / entry["url"].rpartition("/")[2]
    if not any(folder.glob("*.schema.json")):
        pytest.skip("this checkout has no schema of the settings")
    assert json.loads(schema.read_text(encoding="utf-8"))["$id"] == entry["url"]


def test_each_setting_is_in_the_readme() -> None:
    table = re.findall(
        rf"^\| `{SECTION}\.([\w.]+)` \|", (EXTENSION / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert table == list(settings())


def test_it_has_the_version_of_the_package() -> None:
    assert manifest()["version"] == __version__
    assert f"\n## {__version__}\n" in (EXTENSION / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_lock_file_names_no_host() -> None:
    """It would be the registry, or a mirror of it, of whoever wrote it."""
    assert "://" not in re.sub(
        r'"url": "https://[^"]+"', "", (EXTENSION / "package-lock.json").read_text(encoding="utf-8")
    )


def node() -> str | None:
    """Why the extension cannot be built here; None where it can."""
    if not (shutil.which("node") and shutil.which("npm")):
        return "no Node on this machine (apt-get install nodejs npm)"
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    return None if (found := re.match(r"v(\d+)", said)) and int(found[1]) >= 20 else "Node is older than 20"


@pytest.mark.long
@pytest.mark.slow
def test_the_tests_of_the_extension_pass(tmp_path: Path) -> None:
    pytest.importorskip("pygls", reason="the extra lsp is not installed")
    if (missing := node()) is not None:
        pytest.skip(missing)
    copy = tmp_path / "extension"
    shutil.copytree(EXTENSION, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "out", "*.vsix"))
    if (failed := run_npm(copy, "ci")) and re.search(r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN", failed):
        pytest.skip("the npm registry cannot be reached")
    assert failed is None
    assert run_npm(copy, "test") is None


def run_npm(folder: Path, command: str) -> str | None:
    """What npm wrote if it failed."""
    paths = os.pathsep.join(filter(None, [str(TOP), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "TORCHREPRO_LINT_PYTHON": sys.executable, "PYTHONPATH": paths}
    ran = subprocess.run(
        [str(shutil.which("npm")), command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return f"{ran.stdout}{ran.stderr}" if ran.returncode else None
