"""A project's requirement files and manifests: malformed parts are ignored, the rest is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchrepro_lint.config.settings import load_settings
from torchrepro_lint.config.target import LOCKS, console_scripts, find_target, project_name, required_libraries

KNOWN = ("1.8", "2.0", "2.1")
WRONG = [
    "5",
    "1.5",
    "true",
    "2024-01-01",
    '"torch"',
    '["torch"]',
    "[[5]]",
    "[{name = 5}]",
    "{torch = 5}",
    "{x = {x = 5}}",
]
LOCKED = [
    "package = {}",
    "package = [{}]",
    'package = [{{name = {}, version = "2.0"}}]',
    'package = [{{name = "torch", version = {}}}]',
]
KEYS = [
    "project",
    "project.name",
    "project.dependencies",
    "project.optional-dependencies",
    "project.optional-dependencies.x",
    "project.scripts",
    "project.scripts.x",
    "project.gui-scripts",
    "dependency-groups",
    "dependency-groups.x",
    "tool",
    "tool.poetry",
    "tool.poetry.name",
    "tool.poetry.dependencies",
    "tool.poetry.dependencies.torch",
    "tool.poetry.dependencies.torch.version",
    "tool.poetry.group",
    "tool.poetry.group.x",
    "tool.poetry.group.x.dependencies",
    "tool.poetry.scripts",
]


def heard(root: Path) -> str:
    """All that is asked of the papers of a project; the target torch."""
    required_libraries(root)
    console_scripts(root)
    project_name(root)
    return find_target(root, None, KNOWN).version


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("text", LOCKED)
def test_a_lock_of_another_shape_says_nothing(tmp_path: Path, name: str, text: str, value: str) -> None:
    (tmp_path / name).write_text(text.format(value) + "\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("torch==2.0\n", encoding="utf-8")
    assert heard(tmp_path) == "2.0"


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_another_type_says_nothing(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"{key} = {value}\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("torch==2.0\n", encoding="utf-8")
    load_settings(tmp_path / "pyproject.toml")
    assert heard(tmp_path) in ("2.0", "2.1")


def test_what_is_sound_beside_what_is_not_is_heard(tmp_path: Path) -> None:
    lock = 'package = [5, {name = 5}, {name = "torch"}, {name = "torch", version = "2.0.1"}]\n'
    (tmp_path / "uv.lock").write_text(lock, encoding="utf-8")
    assert heard(tmp_path) == "2.0"


@pytest.mark.parametrize("line", ["torch==2.0", "Torch == 2.0 ; python_version > '3'", "TORCH>=2.0,<2.1"])
def test_a_requirement_among_overlong_ones_is_heard(tmp_path: Path, line: str) -> None:
    text = f"torch=={'9' * 5000}.0\ntorch>=1 # {'x' * 5000}\n{line}\n"
    (tmp_path / "requirements.txt").write_text(text, encoding="utf-8")
    assert heard(tmp_path) == "2.0"


SETUP_SCRIPTS = [
    (
        "setup.py",
        """setup(name="x", entry_points={"console_scripts": [
        "train = pack.train:main", 'pack-eval=pack.eval:run',
        # "old = pack.old:main",
    ]}, cmdclass={"verify": Verify})""",
    ),
    (
        "setup.cfg",
        "[options.entry_points]\nconsole_scripts =\n    train = pack.train:main\n    pack-eval = pack.eval:run [gpu]\n",
    ),
]


@pytest.mark.parametrize(("name", "text"), SETUP_SCRIPTS)
def test_the_console_scripts_of_setuptools_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert console_scripts(tmp_path) == ("pack.eval:run", "pack.train:main")


def test_a_setup_without_console_scripts_has_none(tmp_path: Path) -> None:
    text = 'setup(name="x", url="https://x.org:80", extras_require={"a": ["b = c.d:e"]})'
    (tmp_path / "setup.py").write_text(text, encoding="utf-8")
    assert console_scripts(tmp_path) == ()
