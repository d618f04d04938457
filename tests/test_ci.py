"""What the README promises is what is run."""

from __future__ import annotations

from pathlib import Path

TOP = Path(__file__).parents[1]


def test_the_readmes_test_command_is_the_one_of_the_checks() -> None:
    command = "python -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest -n 2"
    assert command in (TOP / "README.md").read_text(encoding="utf-8").splitlines()
    assert command in (TOP / ".ci" / "run").read_text(encoding="utf-8").splitlines()
