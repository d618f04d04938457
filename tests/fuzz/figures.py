"""How much was tried, as a table."""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from .kinds import KINDS

_SORTS = ("crash", "hang", "differs", "lost")
_MARKS = ("<!-- figures of tests.fuzz -->", "<!-- end of figures -->")


class Figures(NamedTuple):
    """Inputs by kind, failures by kind and sort, the seconds that it took, and the seed."""

    counts: Counter[str]
    sorts: Counter[str]
    seconds: float
    seed: int


def render(figures: Figures) -> str:
    """A table with a row for each kind, and what it was made with."""
    lines = [
        "| kind of input | inputs | crashes | hangs | results that differ | bytes lost |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [_row(kind, figures.counts[kind], [figures.sorts[f"{kind}: {sort}"] for sort in _SORTS]) for kind in KINDS]
    totals = [sum(figures.sorts[f"{kind}: {sort}"] for kind in KINDS) for sort in _SORTS]
    lines.append(_row("**all**", sum(figures.counts.values()), totals))
    python, libcst = platform.python_version(), _libcst()
    told = f"In {figures.seconds / 60:.1f} minutes, by one process, with Python {python} and libcst {libcst}, seed {figures.seed}."
    return "\n".join([*lines, "", told, ""])


def store(figures: Figures, page: Path) -> None:
    """Replace what stands between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_MARKS[0])
    after = rest.partition(_MARKS[1])[2]
    page.write_text(f"{before}{_MARKS[0]}\n{render(figures)}{_MARKS[1]}{after}", encoding="utf-8")


def _row(name: str, count: int, failures: list[int]) -> str:
    return f"| {name} | {count:,} | {' | '.join(map(str, failures))} |"


def _libcst() -> str:
    from importlib.metadata import version

    return version("libcst")
