"""How much was tried, as a table."""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path

from .kinds import KINDS
from .state import State

_SORTS = ("crash", "hang", "differs", "lost")
_MARKS = ("<!-- figures of tests.fuzz -->", "<!-- end of figures -->")


def render(state: State) -> str:
    """A table with a row for each kind, and what it was made with."""
    lines = [
        "| kind of input | inputs | crashes | hangs | results that differ | bytes lost |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    failed = Counter((given.kind, failure.sort) for given, failure in state.failures)
    lines += [_row(kind, state.counts[kind], [failed[kind, sort] for sort in _SORTS]) for kind in KINDS]
    totals = [sum(failed[kind, sort] for kind in KINDS) for sort in _SORTS]
    lines.append(_row("**all**", state.done, totals))
    python, libcst = platform.python_version(), _libcst()
    told = f"In {state.seconds / 60:.1f} minutes, by one process, with Python {python} and libcst {libcst}, seed {state.seed}."
    if state.mended:
        told += f" {state.mended} inputs failed at first. Their causes were corrected, and the inputs were tried again."
    return "\n".join([*lines, "", told, ""])


def store(state: State, page: Path) -> None:
    """Replace what stands between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_MARKS[0])
    after = rest.partition(_MARKS[1])[2]
    page.write_text(f"{before}{_MARKS[0]}\n{render(state)}{_MARKS[1]}{after}", encoding="utf-8")


def _row(name: str, count: int, failures: list[int]) -> str:
    return f"| {name} | {count:,} | {' | '.join(map(str, failures))} |"


def _libcst() -> str:
    from importlib.metadata import version

    return version("libcst")
