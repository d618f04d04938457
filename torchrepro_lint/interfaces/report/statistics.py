"""The output of ``--statistics``: how often each rule fired, most often first, in the shape of Ruff's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.json import dumps


class Count(NamedTuple):
    """The number of findings of one rule, and of those that ``--fix`` would fix."""

    code: str
    name: str
    found: int
    fixable: int


def count(diagnostics: Iterable[Diagnostic], unsafe: bool) -> list[Count]:
    """Counts by rule; unsafe fixes count where they would be applied."""
    counts: dict[str, Count] = {}
    for one in diagnostics:
        last = counts.get(one.code, Count(one.code, one.name, 0, 0))
        fixable = one.fix is not None and (one.fix.safe or unsafe)
        counts[one.code] = last._replace(found=last.found + 1, fixable=last.fixable + fixable)
    return sorted(counts.values(), key=lambda one: (-one.found, one.code))


def render(counts: list[Count]) -> str:
    """A line for each rule; ``[*]`` marks rules whose findings all have a fix, ``[-]`` those where some have."""
    width = max((len(str(one.found)) for one in counts), default=0)
    marked = any(one.fixable for one in counts)
    return "".join(f"{one.found:>{width}}\t{one.code}\t{_mark(one) if marked else ''}{one.name}\n" for one in counts)


def render_json(counts: list[Count]) -> str:
    """The same as a list of objects."""
    return dumps(
        [
            {
                "code": one.code,
                "name": one.name,
                "count": one.found,
                "fixable": one.fixable > 0,
                "fixable_count": one.fixable,
            }
            for one in counts
        ]
    )


def _mark(one: Count) -> str:
    return "[*] " if one.fixable == one.found else "[-] " if one.fixable else "[ ] "
