"""What fixes change, as a unified diff; in a notebook one for each cell."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from torchrepro_lint.writing import Change


def render(change: Change) -> str:
    """The diff of a file."""
    return "".join(_unified(name, before, after) for name, before, after in _texts(change))


def _texts(change: Change) -> Iterator[tuple[str, str, str]]:
    name, before, after = change.given.display, change.before, change.after
    if not before.cells:
        yield name, before.text, after.text
    for one, other in zip(before.cells, after.cells, strict=True):
        yield f"{name}:cell {one.number}", before.text[one.start : one.end], after.text[other.start : other.end]


def _unified(name: str, before: str, after: str) -> str:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = difflib.unified_diff(old, new, name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
