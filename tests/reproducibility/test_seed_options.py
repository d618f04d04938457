"""Fixes keep what the seeds of a program keep apart: its runs by their seed option, and its ranks.

Each program in ``seeded`` takes ``--seed``. Once it is fixed, two runs with one seed are the same bit for bit, and those with
two seeds differ. It may be irreproducible before, and some keep a cause for which there is no fix: their number is in
``UNFIXED``, and they print only what does not depend on it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_reproducibility import copied, digest, fix

from prepared_python import Python
from torchrepro_lint.engine.writing import write_all

pytestmark = pytest.mark.xdist_group("programs of torch")
SEEDED = sorted(Path(__file__).parent.joinpath("seeded").iterdir())
RANKED = ("ranks", "worker_ranks")
# These are tried every time, and all of them by `pytest -m long`.
ALWAYS = ("nested_config", "none_in_set", "pool_map", "ranks")
# The programs with causes that have no fix, and the codes of these.
UNFIXED = {
    "executor": {"TRL106"},
    "none_in_set": {"TRL502"},
    "pool_map": {"TRL106"},
}
# Those that repeat as they are written: only what has no fix, or what repeats as long as nothing else changes, is reported.
STEADY = {"executor", "none_in_set", "optional_seed", "pool_map", "ports_and_names"}
# Those that print nothing that the seed decides.
SAME = {"executor", "none_in_set", "pool_map"}


def programs(names: list[str]) -> list[object]:
    """Programs as parameters; those that are not tried every time are marked."""
    folders = [each for each in SEEDED if each.name in names]
    return [pytest.param(each, id=each.name, marks=() if each.name in ALWAYS else pytest.mark.long) for each in folders]


@pytest.mark.parametrize("program", programs([each.name for each in SEEDED]))
def test_each_seed_gives_a_run_of_its_own(program: Path, tmp_path: Path, python: Python) -> None:
    folder = copied(program, tmp_path)
    steady = left_by(folder, python, seed=1, hash_seed=1) == left_by(folder, python, seed=1, hash_seed=2)
    assert steady is (program.name in STEADY), "as it is written"
    after_fixes(folder)
    one = left_by(folder, python, seed=1, hash_seed=1)
    assert one == left_by(folder, python, seed=1, hash_seed=2)
    assert (one != left_by(folder, python, seed=2, hash_seed=1)) is (program.name not in SAME)


@pytest.mark.parametrize("program", programs(list(RANKED)))
def test_each_rank_gives_a_run_of_its_own(program: Path, tmp_path: Path, python: Python) -> None:
    folder = copied(program, tmp_path)
    after_fixes(folder)
    ranks = [left_by(folder, python, seed=1, hash_seed=1, rank=rank) for rank in (0, 1)]
    assert ranks[0] == left_by(folder, python, seed=1, hash_seed=2, rank=0)
    assert ranks[0] != ranks[1]


@pytest.mark.parametrize("program", programs(["optional_seed"]))
def test_a_run_without_a_seed_stays_without_one(program: Path, tmp_path: Path, python: Python) -> None:
    folder = copied(program, tmp_path)
    after_fixes(folder)
    assert left_by(folder, python, seed=None, hash_seed=1) != left_by(folder, python, seed=None, hash_seed=1)


def after_fixes(folder: Path) -> None:
    """Apply all fixes; what is left has no fix, and says why."""
    outcome = fix(folder)
    assert outcome.errors == ()
    assert write_all(outcome.changes).errors == ()
    again = fix(folder)
    assert again.changes == (), "fixing again changes something"
    left = [each for each in again.diagnostics if each.severity != "note"]
    assert {each.code for each in left} == UNFIXED.get(folder.name, set())
    assert all(each.unfixed for each in again.diagnostics)


def left_by(folder: Path, python: Python, seed: int | None, hash_seed: int, rank: int = 0) -> dict[str, str]:
    """What a run prints and leaves: a digest for standard output and for each file that it writes."""
    variables = {"RANK": str(rank), **({} if seed is None else {"RUN_SEED": str(seed)})}
    before = set(folder.rglob("*"))
    ran = python(folder, ["train.py", *([] if seed is None else ["--seed", str(seed)])], hash_seed, variables)
    assert ran.returncode == 0, ran.stderr.decode()
    left = {"standard output": digest(ran.stdout)}
    for path in sorted(set(folder.rglob("*")) - before):
        left[path.relative_to(folder).as_posix()] = digest(path.read_bytes())
        path.unlink()
    return left
