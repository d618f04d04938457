"""``python -m benchmarks.entered FOLDER...``: the functions of the package that no run over real code enters.

Each folder is a project. It is linted with all rules, and again with a diff of all fixes. A function that no run enters serves another
interface (the language server, a report, a survey), a rare case, or nothing: before one is deleted, its tests say which. The table
has the functions and their lines by package; ``--names`` lists them.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.running import ROOT, environment

_PACKAGE = ROOT / "torchrepro_lint"
_COMMANDS = (("--select", "ALL"), ("--diff", "--unsafe-fixes"))
# Runs the tool in its own process, and writes where each function that was entered begins: its file and line.
_RUN = """
import atexit, json, sys
codes = set()
sys.setprofile(lambda frame, event, _: codes.add(frame.f_code) if event == "call" else None)
out = sys.argv.pop(1)
def save():
    sys.setprofile(None)
    with open(out, "w") as file:
        json.dump(sorted({(each.co_filename, each.co_firstlineno) for each in codes}), file)
atexit.register(save)
from torchrepro_lint.__main__ import main
main()
"""


class Definition(NamedTuple):
    """A function of the package: its file in the package, its first line, decorators included, its name and its number of lines."""

    file: str
    line: int
    name: str
    lines: int


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entered", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+", help="projects")
    parser.add_argument("--names", action="store_true", help="list the functions, too")
    options = parser.parse_args()
    entered = {place for folder in options.folder for place in entered_by(folder)}
    every = list(definitions())
    idle = [each for each in every if (each.file, each.line) not in entered]
    print(f"{len(options.folder)} projects")
    print("\n".join(_table(every, idle)))
    if options.names:
        print("\n".join(f"{each.file}:{each.line} {each.name} ({each.lines})" for each in idle))


def entered_by(folder: Path) -> Iterator[tuple[str, int]]:
    """Where the functions begin that runs over a project enter, each by its file in the package and its line."""
    for command in _COMMANDS:
        with tempfile.TemporaryDirectory() as place:
            out = Path(place, "entered.json")
            subprocess.run(
                [sys.executable, "-P", "-c", _RUN, str(out), ".", "--no-cache", "--exit-zero", "-j", "1", *command],
                cwd=folder,
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            for file, line in json.loads(out.read_text()):
                if Path(file).is_relative_to(_PACKAGE):
                    yield Path(file).relative_to(_PACKAGE).as_posix(), line


def definitions() -> Iterator[Definition]:
    """All functions and methods of the package."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                file = path.relative_to(_PACKAGE).as_posix()
                yield Definition(file, start, node.name, node.end_lineno - start + 1)


def _table(every: Sequence[Definition], idle: Sequence[Definition]) -> Iterator[str]:
    yield "| package | functions | lines | never entered | their lines |"
    yield "|---|---:|---:|---:|---:|"
    packages = sorted({each.file.partition("/")[0] for each in every})
    for package in (*packages, ""):
        own, rest = ([each for each in some if each.file.startswith(package)] for some in (every, idle))
        counts = (len(own), sum(each.lines for each in own), len(rest), sum(each.lines for each in rest))
        yield f"| {package or 'all'} | {' | '.join(f'{each:,}' for each in counts)} |"


if __name__ == "__main__":
    main()
