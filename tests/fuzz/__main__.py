"""``python -m tests.fuzz --minutes 10``: try broken and hostile input, keep what fails, and print how much was tried."""

# ruff: noqa: T201  # it is a program, which says what is wrong

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from hashlib import blake2b
from pathlib import Path

from .corpus import LIBRARY, read_corpus
from .failure import Failure
from .figures import render, store
from .kinds import Input, missing
from .running import alike, run, until
from .shrinking import shrunk
from .state import State, read, write
from .trying import attempt

_TEXTS = (".py", ".ipynb", ".toml", ".json")
FOUND = Path(__file__).parent / "found"


def main() -> None:
    """Try, and print a table; status 1 where anything failed."""
    options = _options()
    corpus = read_corpus((LIBRARY, *options.folder), options.hypothesmith)
    for kind, why in missing(corpus).items():
        print(f"not tried: {kind}, as {why}", flush=True)
    state = (read(options.state, options.seed) if options.state else State(options.seed)).tried_again()
    told = {alike(failure) for _, failure in state.failures}
    started = time.monotonic()
    for tried in run(state.seed, corpus, until(options.minutes, options.count), state.done):
        started, took = time.monotonic(), time.monotonic() - started
        state = state.after(tried, took)
        for given, failure in tried.failures:
            if alike(failure) not in told:
                print(f"{failure.sort}: {failure.told} [{given.kind}]\n    {_kept(given, failure)}", flush=True)
            told.add(alike(failure))
        if options.state:
            write(state, options.state)
    print(render(state))
    if options.table is not None:
        store(state, options.table)
    for line, count in sorted(Counter(alike(failure) for _, failure in state.failures).items()):
        print(f"{count} x {line}")
    sys.exit(1 if state.failures else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("folder", nargs="*", type=Path, help="more directories to make inputs from")
    parser.add_argument("--minutes", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--count", type=int, default=10**9, help="at most so many inputs")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument(
        "--hypothesmith", type=int, default=300, metavar="N", help="so many of its programs, where installed"
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help="go on where a run has ended, whose state is there")
    parser.add_argument("--table", type=Path, metavar="PAGE", help="put the figures into a page: docs/reliability.md")
    return parser.parse_args()


def _kept(given: Input, failure: Failure) -> Path:
    """The smallest input that fails like this one, in a file that a test tries from now on."""

    def fails(data: bytes) -> bool:
        return any(alike(each) == alike(failure) for each in attempt(given.name, data))

    # What has ended a process, or does not end, is not tried here again; what is a number is small.
    again = failure.sort in ("differs", "lost") or "(" in failure.told
    data = shrunk(given.data, fails) if again and Path(given.name).suffix in _TEXTS else given.data
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{failure.sort}-{blake2b(data, digest_size=4).hexdigest()}{Path(given.name).suffix}.txt"
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    main()
