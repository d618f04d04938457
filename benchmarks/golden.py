"""``python -m benchmarks.golden``: a digest of all output of the tool, to prove that a change keeps behaviour.

Each part is a tree (the example, the reproducibility programs, pinned packages) under one kind of command: every format
with all rules, all fixes as a diff, the report, the trace of each entry file. Every part runs under two hash seeds, which
must agree. ``--save FILE`` keeps the digests, ``--compare FILE`` tells which parts differ from those; ``--checkout DIR``
runs the code of another checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.packages import TIMM, sources, unpacked

_ROOT = Path(__file__).parent.parent
_FORMATS = ("flake8", "full", "json", "json-lines", "sarif", "github", "gitlab", "junit", "markdown")
_SEEDS = ("1", "2")
_HERE = {
    "example": Path("examples"),
    "programs": Path("tests/reproducibility/programs"),
    "steady": Path("tests/reproducibility/steady"),
    "on_card": Path("tests/reproducibility/on_card"),
}
PACKAGES = (TIMM, "torch_geometric==2.8.1", "lightning==2.6.6", "open_clip_torch==3.3.0")
# So many entry files of a package are traced; of the trees of this repository all.
_MOST_TRACED = 8


class Part(NamedTuple):
    """A digest of the table: its name, and the command lines whose output it is of, run one after the other."""

    name: str
    tree: Path
    commands: tuple[tuple[str, ...], ...]


def main() -> None:
    """Print a line for each part; status 1 where the hash seed or the compared digests differ."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        trees = _trees(Path(scratch), options.packages, options.tree)
        parts = [
            *_own_parts(Path(scratch, "empty")),
            *(part for name, tree in trees.items() for part in _parts(name, tree)),
        ]
        digests = _digests(parts, options.checkout.resolve(), Path(scratch, "caches"), options.jobs)
    wrong = [f"{name}: depends on the hash seed" for name, each in digests.items() if len(set(each)) > 1]
    found = {name: each[0] for name, each in digests.items()}
    for name, digest in found.items():
        print(digest, name)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.compare:
        wrong += _differences(json.loads(options.compare.read_text(encoding="utf-8")), found)
    print("\n".join(wrong) or f"no differences in {len(found)} parts", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.golden", description=__doc__)
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the digests as JSON")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with digests that were saved")
    parser.add_argument("--checkout", type=Path, default=_ROOT, metavar="DIR", help="run the code of this checkout")
    parser.add_argument(
        "--no-packages", dest="packages", action="store_false", help="the trees of this repository only"
    )
    parser.add_argument("--tree", action="append", metavar="NAME", help="these trees only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parts at a time (default: %(default)s)")
    return parser.parse_args()


def _trees(scratch: Path, packages: bool, chosen: Sequence[str] | None) -> dict[str, Path]:
    """Copies, each a project of its own, so that what is said of them does not depend on where they lie."""
    places = {name: _ROOT / place for name, place in _HERE.items()}
    names = (*places, *PACKAGES) if packages else tuple(places)
    found = {}
    for name in chosen or names:
        source = places.get(name) or unpacked(name)
        copy = scratch / "trees" / name.partition("==")[0]
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        marker = copy / "pyproject.toml"
        if not marker.exists():
            marker.write_text('[project]\nname = "golden"\nversion = "0"\n', encoding="utf-8")
        found[name] = copy
    return found


def _own_parts(place: Path) -> Iterator[Part]:
    """What the tool says of itself, in a folder without files."""
    place.mkdir()
    codes = sorted(path.name[:6] for path in (_ROOT / "rules").glob("TRL*.md"))
    yield Part("rule", place, (("rule",), *(("rule", code) for code in codes)))
    helps = (
        ("--help",),
        *((name, "--help") for name in ("rule", "explain", "clean", "ops", "report", "trace", "server")),
    )
    yield Part("help", place, helps)
    yield Part("ops", place, (("ops",), ("ops", "cumsum"), ("ops", "index_add", "--output-format", "json")))
    message = "cumsum_cuda_kernel does not have a deterministic implementation"
    yield Part("explain", place, (("explain", message), ("explain", "unknown_kernel")))


def _parts(name: str, tree: Path) -> Iterator[Part]:
    everything = (".", "--select", "ALL", "--exit-zero", "--jobs", "1")
    for each in _FORMATS:
        yield Part(f"{name} {each}", tree, ((*everything, "--output-format", each, "--verbose"),))
    yield Part(f"{name} statistics", tree, ((*everything, "--statistics"),))
    yield Part(f"{name} default", tree, ((".", "--jobs", "2"),))
    yield Part(f"{name} diff", tree, ((*everything, "--fix", "--unsafe-fixes", "--diff"),))
    for each in ("html", "json", "markdown"):
        yield Part(f"{name} report {each}", tree, (("report", *everything, "--output-format", each),))
    entries = list(_entries(tree))
    for each in ("text", "json"):
        yield Part(f"{name} trace {each}", tree, tuple(("trace", entry, "--output-format", each) for entry in entries))


def _entries(tree: Path) -> Iterator[str]:
    """Files that look like scripts, by their paths; of many some at equal distances."""
    found = [path for path in sources(tree) if b"__main__" in path.read_bytes()]
    step = max(1, len(found) // _MOST_TRACED) if len(found) > 10 * _MOST_TRACED else 1
    yield from (path.relative_to(tree).as_posix() for path in found[::step])


def _digests(parts: Sequence[Part], checkout: Path, caches: Path, jobs: int) -> dict[str, list[str]]:
    """The digests of each part, one for each hash seed."""
    tasks = [(part, seed) for seed in _SEEDS for part in parts]
    with ThreadPoolExecutor(jobs) as pool:
        digests = list(pool.map(lambda task: _digest(task[0], task[1], checkout, caches), tasks))
    return {part.name: digests[number :: len(parts)] for number, part in enumerate(parts)}


def _digest(part: Part, seed: str, checkout: Path, caches: Path) -> str:
    """Of what the commands print, and of their exit statuses. What was read is kept for the part's next commands alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCHREPRO")}
    environment = {**kept, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": seed, "COLUMNS": "100", "NO_COLOR": "1"}
    environment["XDG_CACHE_HOME"] = str(caches / f"{seed}-{part.tree.name}")
    digest = hashlib.sha256()
    for command in part.commands:
        digest.update(_output(command, part.tree, environment))
    return digest.hexdigest()[:16]


def _output(command: Sequence[str], tree: Path, environment: Mapping[str, str]) -> bytes:
    line = [sys.executable, "-m", "torchrepro_lint", *command]
    run = subprocess.run(line, cwd=tree, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    text = run.stdout + b"\0" + run.stderr + b"\0%d" % run.returncode
    return text.replace(str(tree).encode(), b"TREE")


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """What was not saved is no difference; a part that was saved and did not run is told only where nothing was chosen."""
    yield from (f"{name}: differs" for name, digest in now.items() if before.get(name, digest) != digest)


if __name__ == "__main__":
    main()
