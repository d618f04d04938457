"""The wheel as users install it: built from the sdist, alone in an environment, without a checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel
TOP = Path(__file__).parents[1]
TRAIN = """import torch

model = torch.nn.Linear(2, 2)
model(torch.ones(1, 2)).sum().backward()
torch.save(model.state_dict(), "model.pt")
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run outside the checkout, with nothing of it on any path."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel: ``build`` makes the wheel from the sdist by default."""
    folder = tmp_path_factory.mktemp("dist")
    ran = run(sys.executable, "-m", "build", "--outdir", folder, TOP, cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_two_builds_are_the_same_bytes(built: Path, tmp_path: Path) -> None:
    ran = run(sys.executable, "-m", "build", "--outdir", tmp_path, TOP, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in built.iterdir()
    }


def test_the_sdist_carries_rules_examples_and_tests(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"rules/TRL101-unseeded-torch.md", "tests/test_wheel.py", "LICENSE", "pyproject.toml"} <= names
    assert any(name.startswith("examples/") for name in names)


def test_the_wheel_brings_one_package_with_the_rules_inside(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"torchrepro_lint"}
    assert "torchrepro_lint/py.typed" in names
    assert {
        f"torchrepro_lint/interfaces/report/{name}"
        for name in ("page.css", "page.js", "ops_page.css", "ops_page.js", "survey_page.css")
    } <= set(names)
    assert {f"torchrepro_lint/config/{name}.schema.json" for name in ("torchrepro-lint", "pyproject")} <= set(names)
    rules = {path.relative_to(TOP / "rules").as_posix() for path in TOP.glob("rules/**/*") if path.is_file()}
    inside = "torchrepro_lint/_rules/"
    assert {name.removeprefix(inside) for name in names if name.startswith(inside)} == rules


def test_the_wheel_works_alone(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    folder = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    installed = run(folder / "python", "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    tool = folder / "torchrepro-lint"
    page = run(tool, "rule", "TRL101", cwd=tmp_path)
    assert (page.returncode, page.stderr) == (0, "")
    assert page.stdout == (TOP / "rules" / "TRL101-unseeded-torch.md").read_text(encoding="utf-8")
    schema = run(tool, "schema", cwd=tmp_path)
    assert (schema.returncode, schema.stderr) == (0, "")
    table = run(tool, "ops", "--output-format", "html", cwd=tmp_path)
    assert (table.returncode, table.stderr) == (0, "")
    assert {"<style", "<script"} <= set(re.findall(r"<\w+", table.stdout))
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(TRAIN, encoding="utf-8")
    scan = run(tool, cwd=work)
    assert scan.returncode == 1, scan.stderr
    assert scan.stdout.startswith("./train.py:3:1: TRL101 ")
    error = "adaptive_avg_pool2d_backward_cuda does not have a deterministic implementation"
    explained = run(tool, "explain", error, ".", cwd=work)
    assert (explained.returncode, explained.stderr) == (0, "")
    where = run(folder / "python", "-c", "import torchrepro_lint; print(torchrepro_lint.__file__)", cwd=work)
    assert where.stdout.startswith(str(tmp_path / "env"))
