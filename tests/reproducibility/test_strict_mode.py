"""Strict mode is not turned on in a program that it would stop on CUDA, however the program hides what it trains.

The programs in ``strict`` train a network with bicubic interpolation, which has no deterministic backward on CUDA. They run
on the CPU, too, and say at the end whether strict mode is on.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_reproducibility import copied, fix

from prepared_python import Python
from torchrepro_lint.engine.writing import write_all

pytestmark = pytest.mark.xdist_group("programs of torch")
STRICT = sorted(Path(__file__).parent.joinpath("strict").iterdir())


@pytest.mark.parametrize("program", STRICT, ids=lambda program: program.name)
def test_fixes_do_not_turn_strict_mode_on_where_it_would_stop(program: Path, tmp_path: Path, python: Python) -> None:
    folder = copied(program, tmp_path)
    (finding,) = (each for each in fix(folder).diagnostics if each.code == "TRL203")
    assert finding.fix is None
    assert ("would raise an error at F.interpolate" if program.name != "chosen" else "is not known") in finding.message
    assert after_fixes(folder, python).endswith("strict: False\n")


@pytest.mark.parametrize(
    "program", [each for each in STRICT if each.name != "chosen"], ids=lambda program: program.name
)
def test_fixes_turn_it_on_where_it_would_not(program: Path, tmp_path: Path, python: Python) -> None:
    folder = copied(program, tmp_path)
    network = folder / "network.py"
    network.write_text(network.read_text(encoding="utf-8").replace("bicubic", "bilinear"), encoding="utf-8")
    assert after_fixes(folder, python).endswith("strict: True\n")


def after_fixes(folder: Path, python: Python) -> str:
    """What a program prints after all fixes."""
    outcome = fix(folder)
    assert outcome.errors == ()
    assert write_all(outcome.changes).errors == ()
    ran = python(folder, ["train.py"], 1, {})
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.decode()
