"""The target torch of a project, and what decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchrepro_lint.config.target import Target, find_target

KNOWN = ("1.7", "1.8", "1.13", "2.0", "2.1", "2.13")
POETRY = "[tool.poetry.dependencies]\ntorch = {}\n"
PROJECT = '[project]\nname = "x"\ndependencies = ["torch{}"]\n'


def target(folder: Path, files: dict[str, str], asked: str | None = None) -> Target:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return find_target(folder, asked, KNOWN)


@pytest.mark.parametrize(
    ("files", "version", "decided_by"),
    [
        ({}, "2.13", "the newest release known"),
        ({"uv.lock": '[[package]]\nname = "torch"\nversion = "2.1.2"\n'}, "2.1", "uv.lock"),
        ({"poetry.lock": '[[package]]\nname = "torch"\nversion = "1.13.1+cu117"\n'}, "1.13", "poetry.lock"),
        ({"pdm.lock": '[[package]]\nname = "torchvision"\nversion = "0.9"\n'}, "2.13", "the newest release known"),
        ({"requirements.txt": "numpy\ntorch==1.8.1+cu111 # gpu\n"}, "1.8", "requirements.txt"),
        ({"requirements/train.txt": "torch==2.0.1; sys_platform == 'linux'\n"}, "2.0", "requirements/train.txt"),
        ({"requirements-dev.txt": "torch>=1.8,<2\n"}, "1.13", "requirements-dev.txt"),
        ({"requirements.txt": "torch==1.8.*\n"}, "1.8", "requirements.txt"),
        (
            {"requirements.txt": "# platform: linux-64\nnumpy=1.18.1=py37_0\npytorch=1.8.1=py3.7_cuda10.1_0\n"},
            "1.8",
            "requirements.txt",
        ),
        ({"requirements.txt": "torch=2.0.1=pypi_0\n"}, "2.0", "requirements.txt"),
        ({"requirements.txt": "torch=1.8.0+cu111=pypi_0\n"}, "1.8", "requirements.txt"),
        ({"requirements.txt": "pytorch=1.8.1\npytorch-cuda=11.7=h778d358_5\n"}, "2.13", "the newest release known"),
        ({"requirements.txt": "-r base.txt\ntorchvision==0.9\n--hash x\n"}, "2.13", "the newest release known"),
        ({"pyproject.toml": PROJECT.format("==2.0.0")}, "2.0", "pyproject.toml"),
        ({"pyproject.toml": PROJECT.format("~=2.0.0")}, "2.0", "pyproject.toml"),
        ({"pyproject.toml": PROJECT.format("<2.1")}, "2.0", "pyproject.toml"),
        ({"pyproject.toml": PROJECT.format("")}, "2.13", "the newest release known"),
        ({"pyproject.toml": '[dependency-groups]\ntrain = ["torch>=1.8,<1.9"]\n'}, "1.8", "pyproject.toml"),
        ({"pyproject.toml": POETRY.format('"^1.8"')}, "1.13", "pyproject.toml"),
        ({"pyproject.toml": POETRY.format('"~1.8.1"')}, "1.8", "pyproject.toml"),
        ({"pyproject.toml": POETRY.format('{ version = "2.0.1" }')}, "2.0", "pyproject.toml"),
        ({"environment.yml": "dependencies:\n  - pytorch=1.8\n"}, "1.8", "environment.yml"),
        ({"environment.yml": "dependencies:\n  - pytorch::pytorch==2.0.1=py3.10_cuda\n"}, "2.0", "environment.yml"),
        ({"environment.yml": "dependencies:\n  - pip:\n    - torch>=1.7,<1.8\n"}, "1.7", "environment.yml"),
        ({"environment.yml": "dependencies:\n  - pytorch-cuda=11.7\n"}, "2.13", "the newest release known"),
        (
            {"pyproject.toml": PROJECT.format(">=1.8"), "uv.lock": '[[package]]\nname = "torch"\nversion = "2.0.1"\n'},
            "2.0",
            "uv.lock",
        ),
        ({"pyproject.toml": PROJECT.format(">=1.8"), "requirements.txt": "torch==2.0.1\n"}, "2.0", "requirements.txt"),
        ({"pyproject.toml": "not toml", "uv.lock": "not toml"}, "2.13", "the newest release known"),
    ],
)
def test_the_project_decides(tmp_path: Path, files: dict[str, str], version: str, decided_by: str) -> None:
    found = target(tmp_path, files)
    assert (found.version, found.decided_by, found.asked) == (version, decided_by, None)


def test_a_project_admits_what_its_specifiers_do(tmp_path: Path) -> None:
    found = target(tmp_path, {"requirements.txt": "torch>=2.0\n"})
    assert found.admitted[0] == "2.0"
    assert found.admitted[-1] == found.version
    assert found.declared


def test_a_project_without_specifiers_admits_the_newest_releases(tmp_path: Path) -> None:
    found = target(tmp_path, {})
    assert found.admitted[-1] == found.version
    assert not found.declared


def test_the_setting_comes_first(tmp_path: Path) -> None:
    found = target(tmp_path, {"requirements.txt": "torch==2.0.1\n"}, asked="1.8.1")
    assert found == Target("1.8", "the torch-version setting")


def test_minimum_asks_for_the_lower_bound(tmp_path: Path) -> None:
    lock = '[[package]]\nname = "torch"\nversion = "2.1.2"\n'
    assert target(tmp_path, {"pyproject.toml": PROJECT.format(">=1.8"), "uv.lock": lock}, "minimum").version == "1.8"


@pytest.mark.parametrize(("asked", "nearest"), [("1.4", "1.7"), ("1.9", "1.8"), ("3.0", "2.13"), ("2.14.1", "2.13")])
def test_an_unknown_release_takes_the_nearest_and_says_so(tmp_path: Path, asked: str, nearest: str) -> None:
    found = target(tmp_path, {}, asked)
    assert (found.version, found.asked) == (nearest, ".".join(asked.split(".")[:2]))
