"""The proof: training programs give other bits in each run as they are written, and the same bits once they are fixed.

Each program in ``programs`` is small and real, runs on the CPU, makes up its own data, leaves its weights in files and prints
its metrics. It is run in processes of its own under different hash seeds. Those in ``on_card`` show their fault on a GPU only.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

import installed
from prepared_python import Python, in_fresh_process
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.run import run
from torchrepro_lint.engine.writing import write_all

pytestmark = pytest.mark.xdist_group("programs of torch")
HERE = Path(__file__).parent
PROGRAMS = sorted(HERE.joinpath("programs").iterdir())
ON_CARD = sorted(HERE.joinpath("on_card").iterdir())
STEADY = sorted(HERE.joinpath("steady").iterdir())
SCRIPTS = ("train.py", "main.py")
# These are tried every time, and all of them by `pytest -m long`.
ALWAYS = ("classification", "gan", "helper_misses_numpy", "name_as_seed", "seeded_too_late", "trainer")
# What a program needs beside the tool's own dependencies and torch.
NEEDS = {"sklearn_split": "sklearn"}


def programs(folders: list[Path]) -> list[object]:
    """Programs as parameters; those that are not tried every time are marked."""
    return [pytest.param(each, id=each.name, marks=() if each.name in ALWAYS else pytest.mark.long) for each in folders]


def has_card() -> bool:
    torch = installed.torch()
    return bool(torch.cuda.is_available())


@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_fixes_make_a_program_repeat(program: Path, tmp_path: Path, python: Python) -> None:
    if program.name in NEEDS:
        pytest.importorskip(NEEDS[program.name])
    prove(program, tmp_path, python)


@pytest.mark.cuda
@pytest.mark.skipif(not has_card(), reason="needs a CUDA device")
@pytest.mark.parametrize("program", ON_CARD, ids=lambda program: program.name)
def test_fixes_make_a_program_repeat_on_a_card(program: Path, tmp_path: Path) -> None:
    prove(program, tmp_path, in_fresh_process)


@pytest.mark.parametrize("program", ON_CARD, ids=lambda program: program.name)
def test_what_a_card_would_show_is_fixed_without_one(program: Path, tmp_path: Path) -> None:
    folder = copied(program, tmp_path)
    outcome = fix(folder)
    assert (outcome.diagnostics, outcome.errors, len(outcome.changes)) == ((), (), 1)


def prove(program: Path, tmp_path: Path, python: Python) -> None:
    """Other bits in each run, fixes, and then the same bits in each run."""
    folder = copied(program, tmp_path)
    assert left_by(folder, python, hash_seed=1) != left_by(folder, python, hash_seed=2), (
        "it is to be irreproducible as it is written"
    )

    outcome = fix(folder)
    assert outcome.errors == ()
    assert outcome.changes
    assert write_all(outcome.changes).errors == ()
    assert left_by(folder, python, hash_seed=1) == left_by(folder, python, hash_seed=2)
    assert fix(folder).changes == (), "fixing again changes something"


def copied(program: Path, tmp_path: Path) -> Path:
    """A program in a folder of its own, with the torch that it is for."""
    folder = tmp_path / program.name
    shutil.copytree(program, folder)
    (folder / "torchrepro-lint.toml").write_text('torch-version = "2.13"\n', encoding="utf-8")
    return folder


@pytest.mark.parametrize("program", programs(STEADY))
def test_a_steady_program_repeats(program: Path, tmp_path: Path, python: Python) -> None:
    """The programs that ``test_mutants`` breaks."""
    folder = tmp_path / program.name
    shutil.copytree(program, folder)
    assert left_by(folder, python, hash_seed=1) == left_by(folder, python, hash_seed=2)


def left_by(folder: Path, python: Python, hash_seed: int) -> dict[str, str]:
    """What a run prints and leaves: a digest for standard output and for each file that it writes."""
    script = next(name for name in SCRIPTS if (folder / name).exists())
    before = set(folder.rglob("*"))
    ran = python(folder, [script], hash_seed, {})
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout, "a program is to print its metrics"
    left = {"standard output": digest(ran.stdout)}
    for path in sorted(set(folder.rglob("*")) - before):
        if path.is_file():
            left[path.relative_to(folder).as_posix()] = digest(path.read_bytes())
            path.unlink()
    return left


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fix(folder: Path) -> RunOutcome:
    """What ``--fix --unsafe-fixes`` does, not yet written."""

    def overrides(settings: Settings) -> Settings:
        return settings._replace(unsafe_fixes=True)

    return run(plan([str(folder)], ConfigOptions(overrides=overrides)), True, True, lambda total: lambda: None)
