"""Targets and results: ratios of rows that were measured in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.running import Figures

_COLD, _ALONE = "ours, cold, all cores", "ours, cold, one process"
_LIBCST = "libcst.parse_module, one process"


class Target(NamedTuple):
    """A figure of the rows named, which is to be ``most`` at the most."""

    what: str
    most: float
    rows: tuple[str, ...]
    figure: Callable[..., float]


def _targets(part: str) -> Sequence[Target]:
    """The targets; ``part`` is what the slow tools were given."""
    return (
        Target("CPU time, cold, one process / bare libcst parse", 1.6, (_ALONE, _LIBCST), _seconds),
        Target("CPU time, cold, all cores / bare libcst parse", 1.6, (_COLD, _LIBCST), _seconds),
        Target("wall time, cold, all cores / bare libcst parse in one process", 0.75, (_COLD, _LIBCST), _walls),
        Target(f"wall time, cold, all cores / TorchFix on {part}", 0.08, _on(part), _walls),
        Target(
            "wall time, nothing changed / ruff check warm",
            2.5,
            ("ours, nothing changed", "ruff check --select F,NPY, warm"),
            _walls,
        ),
        Target("seconds, one changed file", 0.6, ("ours, one file changed, that file",), _wall),
        Target("seconds, one file on standard input", 0.6, ("ours, one file on standard input",), _wall),
        Target("seconds, --help", 0.1, ("ours, --help",), _wall),
        Target("seconds, rule TRL101", 0.1, ("ours, rule TRL101",), _wall),
        Target("MiB, peak of the largest process, cold, all cores", 300, (_COLD,), lambda cold: cold.memory),
    )


def reached(figures: Sequence[Figures], part: str) -> str:
    """Each target beside what was reached, in Markdown; those whose rows were not measured are left out."""
    known = {each.row.name: each for each in figures}
    lines = ["| what | at most | reached |", "|---|---:|---:|"]
    lines += (_line(each, known) for each in _targets(part) if all(row in known for row in each.rows))
    return "\n".join(lines)


def _line(target: Target, known: Mapping[str, Figures]) -> str:
    figure = target.figure(*(known[row] for row in target.rows))
    return f"| {target.what} | {target.most:g} | {figure:.{3 if target.most < 0.1 else 2}f} |"


def _on(part: str) -> tuple[str, str]:
    return f"{_COLD}, on {part}", f"TorchFix, on {part}"


def _seconds(ours: Figures, other: Figures) -> float:
    return ours.seconds / other.seconds


def _walls(ours: Figures, other: Figures) -> float:
    return ours.wall / other.wall


def _wall(ours: Figures) -> float:
    return ours.wall
