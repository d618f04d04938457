"""The commands that are compared: this tool, bare parsers, and other linters for reproducibility."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.packages import sources
from benchmarks.running import ROOT, Row, environment
from benchmarks.tools import program

OURS = [sys.executable, "-m", "torchrepro_lint"]
# A change that a person makes: a new function at the end of a module, another one each time.
_CHANGE = "\n\ndef added_{number}(values):\n    return [value for value in values if value]\n"
# Of its rules, those that look for randomness.
_DSLINTER = ("--load-plugins=dslinter", "--disable=all", "--enable=W5507,W5508,W5511,W5512")


def our_rows(tree: Path, caches: Path) -> list[Row]:
    """All that someone does with us, on a tree that may be changed."""
    files = sources(tree)
    changed = files[len(files) // 2]
    run = [*OURS, str(tree), "--quiet", "--exit-zero"]
    cached = [*run, "--cache-dir", str(caches)]
    original = changed.read_bytes()
    numbers = itertools.count()

    def restore() -> None:
        changed.write_bytes(original)
        _age(changed)
        subprocess.run(cached, cwd=ROOT, check=True, env=environment(), capture_output=True)

    def change() -> None:
        restore()  # so that everything else is known
        changed.write_bytes(original + _CHANGE.format(number=next(numbers)).encode())

    one = [*OURS, str(changed), "--quiet", "--exit-zero", "--cache-dir", str(caches)]
    piped = [*OURS, "-", "--stdin-filename", str(changed), "--quiet", "--exit-zero", "--cache-dir", str(caches)]
    return [
        Row("ours, cold, one process", [*run, "--no-cache", "--jobs", "1"]),
        Row("ours, cold, all cores", [*run, "--no-cache"]),
        Row("ours, nothing changed", cached, restore),
        Row("ours, one file changed, whole tree", cached, change),
        Row("ours, one file changed, that file", one, change),
        Row("ours, one file on standard input", piped, restore, standard_input=changed),
        Row("ours, --help", [*OURS, "--help"]),
        Row("ours, rule TRL101", [*OURS, "rule", "TRL101"]),
    ]


def parser_rows(tree: Path) -> list[Row]:
    """The parsers alone, in one process; the garbage collector is off, as it is in ours."""
    tasks = [sys.executable, "-m", "benchmarks.tasks"]
    return [
        Row("libcst.parse_module, one process", [*tasks, "parse_libcst", str(tree), "off"]),
        Row("ast.parse, one process", [*tasks, "parse_ast", str(tree), "off"]),
    ]


def quick_rows(tree: Path, caches: Path, semgrep_rules: Sequence[Path]) -> Iterator[Row]:
    """Tools that take seconds for a tree; semgrep only where it is given rules."""
    select = ["check", "--select", "F,NPY", "--quiet", "--exit-zero", "--isolated"]
    warm = [*select, "--cache-dir", str(caches), str(tree)]
    yield from _tool("ruff check --select F,NPY, cold", "ruff", "ruff", [*select, "--no-cache", str(tree)])
    yield from _tool("ruff check --select F,NPY, warm", "ruff", "ruff", warm)
    yield from _tool("torchdetscan", "torchdetscan", "torchdetscan", [str(tree)])
    if semgrep_rules:
        rules = [word for path in semgrep_rules for word in ("--config", str(path))]
        arguments = ["scan", "--metrics=off", "--disable-version-check", "--quiet", *rules, str(tree)]
        yield from _tool(f"semgrep, {len(semgrep_rules)} rules", "semgrep", "semgrep", arguments)


def slow_rows(tree: Path) -> Iterator[Row]:
    """Tools that take a second for a thousand lines, on a small tree, and ours on the same one."""
    name, part = tree.name, str(tree)
    yield Row(f"ours, cold, all cores, on {name}", [*OURS, part, "--no-cache", "--quiet", "--exit-zero"])
    yield from _tool(f"TorchFix, on {name}", "torchfix", "torchfix", [part], slow=True)
    flake8 = ["--isolated", "--select", "TOR", part]
    yield from _tool(f"flake8 with TorchFix, on {name}", "flake8", "flake8", flake8, slow=True)
    yield from _tool(f"pylint with dslinter, on {name}", "dslinter", "pylint", [*_DSLINTER, part], slow=True)


def _tool(name: str, tool: str, command: str, arguments: list[str], *, slow: bool = False) -> Iterator[Row]:
    found = program(tool, command)
    if found is None:
        print(f"{name}: cannot be installed here", file=sys.stderr)
    else:
        yield Row(name, [str(found), *arguments], slow=slow)


def _age(path: Path) -> None:
    """Let a file look as if it had not been written just now: such a one is read again, since it may change once more."""
    before = time.time() - 60
    os.utime(path, (before, before))
