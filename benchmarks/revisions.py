"""``python -m benchmarks.revisions FOLDER``: what a run over a whole tree costs after one file of it has changed.

Files are drawn at random. Each is changed in a copy of the folder: its body (a function gains a statement), it is removed, it stops
parsing, or a copy of it appears under another name. The run after it starts from the cache of a run over the unchanged tree. Costs
are processor time of all processes, as ratios to that of a run without a cache. ``--verify`` compares what is printed with a run
without a cache, byte for byte.
"""

from __future__ import annotations

import argparse
import ast
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

_KINDS = ("body", "removed", "broken", "added")
_NAME = "drawn_for_this_measurement.py"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=20, help="how many files (default: %(default)s)")
    parser.add_argument("--kinds", nargs="*", choices=_KINDS, default=_KINDS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        _measure(options, Path(place))


def _measure(options: argparse.Namespace, place: Path) -> None:
    tree, cache, used = place / "tree", place / "cache", place / "used"
    shutil.copytree(options.folder, tree)
    cold, _ = _run(tree, options.jobs, "--no-cache")
    stored, _ = _run(tree, options.jobs, "--cache-dir", str(cache))
    unchanged, _ = _run(tree, options.jobs, "--cache-dir", str(cache))
    print(f"without a cache {cold:.2f} s; with an empty one {stored / cold:.2f}; unchanged {unchanged / cold:.3f}")
    files = sorted(path for path in tree.rglob("*.py") if _changed(path.read_bytes()))
    drawn = random.Random(options.seed).sample(files, min(options.files, len(files)))
    for kind in options.kinds:
        ratios = []
        for path in drawn:
            before = path.read_bytes()
            changed = _change(path, kind, before)
            shutil.copytree(cache, used)
            cost, said = _run(tree, options.jobs, "--cache-dir", str(used))
            if options.verify and said != _run(tree, options.jobs, "--no-cache")[1]:
                print(f"DIFFERS: {kind} {path.relative_to(tree)}")
            changed.unlink(missing_ok=True)
            path.write_bytes(before)
            shutil.rmtree(used)
            ratios.append((cost / cold, str(path.relative_to(tree))))
        _say(kind, sorted(ratios))


def _say(kind: str, ratios: Sequence[tuple[float, str]]) -> None:
    values = [ratio for ratio, _ in ratios]
    nine = values[min(len(values) - 1, len(values) * 9 // 10)]
    print(
        f"{kind:8} median {statistics.median(values):.3f}  nine of ten {nine:.3f}  most {values[-1]:.3f} {ratios[-1][1]}"
    )
    print("        ", " ".join(f"{value:.2f}" for value in values), flush=True)


def _change(path: Path, kind: str, before: bytes) -> Path:
    """Change a file; the path of what is to be removed afterwards."""
    if kind == "body":
        path.write_bytes(_changed(before))
    elif kind == "removed":
        path.unlink()
    elif kind == "broken":
        path.write_bytes(before + b"\ndef broken(:\n")
    else:
        path.with_name(_NAME).write_bytes(before)
    return path.with_name(_NAME)


def _changed(text: bytes) -> bytes:
    """A text with one statement more in the last function that has a body of its own; empty if there is none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return b""
    functions = list(_functions(tree))
    if not functions:
        return b""
    last = functions[-1].body[-1]
    lines = text.splitlines(keepends=True)
    lines.insert(last.lineno - 1, b" " * last.col_offset + b"measured = len(str(3))\n")
    changed = b"".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        return b""
    return changed


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef) and each.body[-1].lineno > each.lineno:
            yield each


def _run(tree: Path, jobs: str, *options: str) -> tuple[float, bytes]:
    """The processor time of a run in seconds, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "torchrepro_lint", str(tree), "-j", jobs, *options]
    said = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


if __name__ == "__main__":
    main()
