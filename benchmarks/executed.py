"""``python -m benchmarks.executed FOLDER...``: which statements of the package a cold run with the default rules executes.

Each folder holds repositories, which are linted one by one, without a cache, by a process that coverage (https://coverage.readthedocs.io)
watches; install it first. Under Python 3.12 and newer it hardly slows a run down.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from coverage import Coverage

from benchmarks.running import ROOT

PACKAGE = ROOT / "torchrepro_lint"
_SECONDS = 400


def main() -> None:
    """Print a row for each package inside the package."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.executed", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="where the repositories are")
    options = parser.parse_args()
    found = [each.resolve() for folder in options.folders for each in sorted(folder.iterdir()) if each.is_dir()]
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(_table(executed(found, Path(folder)), len(found))))


def executed(repositories: Sequence[Path], folder: Path) -> Coverage:
    """What runs over some repositories execute; the data is put into a folder. A run that takes too long is ended, and does not count."""
    settings = folder / "rc"
    settings.write_text(
        f"[run]\nsource = {PACKAGE}\nparallel = True\ndata_file = {folder / 'data'}\n", encoding="utf-8"
    )
    watched = (sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "torchrepro_lint")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if sys.version_info >= (3, 12):
        environment["COVERAGE_CORE"] = "sysmon"
    for repository in repositories:
        command = (*watched, ".", "--isolated", "--no-cache", "--jobs", "1")
        try:
            subprocess.run(command, cwd=repository, env=environment, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            print(f"{repository}: ended after {_SECONDS} s", file=sys.stderr)
    found = Coverage(data_file=str(folder / "data"), config_file=str(settings))
    found.combine([str(folder)])
    return found


def _table(found: Coverage, count: int) -> list[str]:
    statements: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).parent
        part = str(inside) if inside.name == "fixes" else inside.parts[0] if inside.parts else "."
        _, known, _, left, _ = found.analysis2(str(path))
        statements[part] += len(known)
        missing[part] += len(left)
    rows = (
        f"| `{part}` | {all_:,} | {missing[part]:,} | {missing[part] / all_:.1%} |" for part, all_ in statements.items()
    )
    return [f"{count} repositories", "", "| | statements | not executed | share |", "|---|---:|---:|---:|", *rows]


if __name__ == "__main__":
    main()
