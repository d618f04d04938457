"""What the command line says of projects that nothing marks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Project = Callable[[Mapping[str, str]], Path]
Lint = Callable[..., Any]

DRAW = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n"
TRAIN = "import torch\nfrom model import draw\n\nif __name__ == '__main__':\n    torch.save(draw(), 'x.pt')\n"


@pytest.fixture
def many(project: Project) -> Path:
    return project({"train.py": TRAIN, "model.py": DRAW, **{f"other_{number}.py": "" for number in range(120)}})


def test_many_files_beside_a_lone_one_are_not_read_without_a_word(many: Path, lint: Lint) -> None:
    ran = lint("train.py")
    told = (
        f"Nothing marks the project of the given files, so it is looked for in all 122 Python files in {many}; "
        "put an empty torchrepro-lint.toml in the project's own folder to mark it\n"
    )
    assert ran.err.startswith(told)
    assert "TRL101" in ran.out
    assert "marks" not in ran.out
    assert lint("train.py").err == ran.err  # recalled
    assert "files = 1 to report on, 2 in the project" in lint("train.py", "--show-settings").out


@pytest.mark.parametrize("arguments", [(".",), ("train.py", "-q"), ("train.py", "--config", "own.toml")])
def test_nothing_is_said_of_many_files_that_were_asked_for(many: Path, lint: Lint, arguments: tuple[str, ...]) -> None:
    (many / "own.toml").touch()
    assert ("marks" in lint(*arguments).err) == ("--config" in arguments)


def test_a_marker_or_few_files_need_no_word(many: Path, lint: Lint) -> None:
    (many / "setup.cfg").touch()
    assert "project" not in lint("train.py").err
    (many / "setup.cfg").unlink()
    for number in range(30):
        (many / f"other_{number}.py").unlink()
    assert "project" not in lint("train.py").err


def test_a_file_in_the_home_directory_is_read_with_its_imports_and_a_word(
    many: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(many))
    ran = lint("train.py", "--output-format", "json")
    assert [each["code"] for each in json.loads(ran.out)] == ["TRL101"]
    assert ran.err.startswith(
        f"The project is only the given files and what they import, since {many} is the home directory; "
        "put an empty torchrepro-lint.toml in the project's folder to have all of it read\n"
    )
    assert "project" not in lint("train.py", "--quiet").err
    shown = lint("train.py", "--show-settings").out
    assert f"root = {many} (the working directory, which is the home directory)\n" in shown
    assert "files = 1 to report on, 2 in the project" in shown


def test_what_decided_the_root_is_shown(project: Project, lint: Lint) -> None:
    folder = project({"pkg/setup.py": "", "pkg/a.py": "", "b.py": ""})
    assert f"root = {folder / 'pkg'} (setup.py)\n" in lint("pkg", "--show-settings").out
    ran = lint("pkg", "b.py", "--show-files")
    assert ran.out == "b.py\npkg/a.py\npkg/setup.py\n"
    assert ran.err == f"root = {folder} (the working directory)\nroot = {folder / 'pkg'} (setup.py)\n"
    assert lint("pkg", "--show-files", "--quiet").err == ""


@pytest.mark.parametrize("command", [("trace", "train.py"), ("report", "train.py", "--output-format", "json")])
def test_other_commands_say_so_as_well(
    many: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOME", str(many))
    ran = lint(*command)
    assert "is the home directory" in ran.err
    assert "is the home directory" not in ran.out


@pytest.mark.parametrize("here", [".", "pkg", "pkg/sub"])
def test_a_file_of_an_unpacked_sdist_says_the_same_from_anywhere(
    project: Project, lint: Lint, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    """The program outside the package seeds; without it the package's file would draw unseeded."""
    script = "import torch\nfrom pkg.sub import draw\n\ntorch.manual_seed(0)\ndraw.main()\n"
    main = DRAW + "\n\ndef main():\n    torch.save(draw(), 'x.pt')\n\n\nif __name__ == '__main__':\n    main()\n"
    folder = project(
        {
            "pkg-1.0/setup.py": "",
            "pkg-1.0/pkg/__init__.py": "",
            "pkg-1.0/pkg/sub/__init__.py": "",
            "pkg-1.0/pkg/sub/draw.py": main,
            "pkg-1.0/pkg/sub/requirements.txt": "torch==1.7",
            "pkg-1.0/run.py": script,
        }
    )
    monkeypatch.chdir(folder / "pkg-1.0")
    whole = [each for each in json.loads(lint(".", "--output-format", "json").out) if "draw.py" in each["filename"]]
    monkeypatch.chdir(folder / "pkg-1.0" / here)
    alone = json.loads(lint(str(folder / "pkg-1.0/pkg/sub/draw.py"), "--output-format", "json").out)
    assert [(each["code"], each["message"]) for each in alone] == [(each["code"], each["message"]) for each in whole]
    assert [each["code"] for each in alone] == ["TRL101"]
