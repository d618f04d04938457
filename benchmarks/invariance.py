"""``python -m benchmarks.invariance``: real packages give the same findings under two hash seeds, and file by file."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.packages import TIMM, unpacked
from tests.alone import Whole, differences, whole

_ROOT = Path(__file__).parent.parent
# The packages, and how many of their files without findings are tried; None means all.
PACKAGES: tuple[tuple[str, int | None], ...] = (
    (TIMM, 20),
    ("torch_geometric==2.8.1", 20),
    ("open_clip_torch==3.3.0", None),
)


def main() -> None:
    """Print what was compared and every difference; status 1 if there is one."""
    options = _options()
    chosen = [(name, None) for name in options.package] or PACKAGES
    failures = [line for package, quiet in chosen for line in _failures(package, quiet)]
    print("\n".join(failures) or "no differences")
    sys.exit(1 if failures else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.invariance", description=__doc__)
    parser.add_argument(
        "package", nargs="*", metavar="NAME==VERSION", help="pure-Python wheels instead of the usual ones"
    )
    return parser.parse_args()


def _failures(package: str, quiet: int | None) -> Iterator[str]:
    directory = unpacked(package)
    reports = [_report(directory, seed) for seed in ("1", "2")]
    print(f"{package}: {len(reports[0])} bytes of report under each of two hash seeds", file=sys.stderr)
    if reports[0] != reports[1]:
        yield f"{package}: the report depends on the hash seed"
    run = whole(directory)
    yield from (f"{path}: {error}" for path, one in run.found.items() for error in one.errors)
    paths = _sample(run, quiet)
    print(f"{package}: {len(paths)} of {len(run.found)} files, each alone", file=sys.stderr)
    yield from differences(run, paths)


def _report(directory: Path, seed: str) -> bytes:
    command = [
        sys.executable,
        "-m",
        "torchrepro_lint",
        ".",
        "--output-format",
        "json",
        "--select",
        "ALL",
        "--exit-zero",
    ]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": seed}
    return subprocess.run(command, cwd=directory, env=environment, stdout=subprocess.PIPE, check=True).stdout


def _sample(run: Whole, quiet: int | None) -> list[str]:
    """Every file with findings, and some of the others, the same ones each time."""
    loud = [path for path, one in run.found.items() if one.findings]
    others = [path for path, one in run.found.items() if not one.findings]
    count = len(others) if quiet is None else min(quiet, len(others))
    return sorted([*loud, *random.Random(0).sample(others, count)])


if __name__ == "__main__":
    main()
