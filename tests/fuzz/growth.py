"""How the work that a program makes grows with its length: ``python -m tests.fuzz.growth``.

Work is counted in calls of functions, not in seconds, so that it is the same on every machine.
"""

# ruff: noqa: T201  # it is a program, which says what is wrong

from __future__ import annotations

import sys
from cProfile import Profile

from torchrepro_lint.call_stack import on_deep_stack
from torchrepro_lint.engine.fixer import fix_tree
from torchrepro_lint.engine.parsed_file import parse_bytes
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.run import gc_disabled, report_on

from .repeats import REPEATS
from .trying import checker_of


def main(size: int = 250) -> None:
    """A line for each sort of program: how often the work doubles where its length does so twice."""
    for name, write in REPEATS.items():
        one, two, four = (work(write(size * times)) for times in (1, 2, 4))
        print(f"{two / one:4.1f} {four / two:4.1f}  {four:>11,}  {name}", flush=True)


def work(text: str, fixes: bool = False) -> int:
    """How many calls it takes to read, link and check a program of one file; and to fix it.

    A profile counts the calls of one thread, so the work is done on the large stack from the start.
    """
    with gc_disabled():
        return on_deep_stack(lambda: _calls(text, fixes))


def _calls(text: str, fixes: bool) -> int:
    checker = checker_of("x.py", "2.13")
    profile = Profile()
    profile.enable()
    try:
        files = {"x.py": parse_bytes(text.encode())}
        report_on(checker, Partition(checker, files))
        if fixes:
            fix_tree(checker, files, unsafe=True)
    finally:
        profile.disable()
    return sum(each.callcount for each in profile.getstats())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
