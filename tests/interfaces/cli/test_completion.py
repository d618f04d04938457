"""Shell completion, requested as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from torchrepro_lint.interfaces.cli.app import COMMANDS as OF_CLI
from torchrepro_lint.interfaces.cli.app import COMPLETED_COMMANDS


def ask(instruction: str, words: str = "") -> list[str]:
    environment = {**os.environ, "_TORCHREPRO_LINT_COMPLETE": instruction}
    if words:
        environment |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    command = [sys.executable, "-m", "torchrepro_lint"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_the_names_are_those_of_the_command_line() -> None:
    assert tuple(sorted(OF_CLI)) == COMPLETED_COMMANDS


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_script_for_the_shell(shell: str) -> None:
    assert "_TORCHREPRO_LINT_COMPLETE=" in "\n".join(ask(f"{shell}_source"))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("torchrepro-lint ru", ["plain,rule", "file,ru"]),
        ("torchrepro-lint src", ["file,src"]),
        ("torchrepro-lint a.py ru", ["file,ru"]),
        ("torchrepro-lint --output-format ju", ["plain,junit"]),
        ("torchrepro-lint --unsafe", ["plain,--unsafe-fixes"]),
        ("torchrepro-lint --select TRL201,TRL40", [f"plain,TRL201,TRL40{digit}" for digit in range(1, 7)]),
        ("torchrepro-lint rule cudnn-b", ["plain,cudnn-benchmark"]),
        ("torchrepro-lint ops --output-format h", ["plain,html"]),
    ],
)
def test_what_is_offered(words: str, offered: list[str]) -> None:
    assert ask("bash_complete", words) == offered
