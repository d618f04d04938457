"""The fixes of a file as a unified diff; in a notebook, one diff for each cell."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from torchrepro_lint.engine.writing import FileChange
from torchrepro_lint.interfaces.report.colours import BOLD, CYAN, GREEN, RED, paint
from torchrepro_lint.source.errors import escape_control_characters
from torchrepro_lint.source.patterns import lazy_pattern

# Patches end lines at \n only; a carriage return or a form feed is part of the line.
_LINE = lazy_pattern(r"[^\n]*\n|[^\n]+")
_STYLES = (("--- ", BOLD), ("+++ ", BOLD), ("@@ ", CYAN), ("-", RED), ("+", GREEN))
# The control characters that a terminal may get.
_ALLOWED_CONTROLS = lazy_pattern(r"(\t|\r?\n)")


def render(change: FileChange, visible: bool = False, colour: bool = False) -> str:
    """The diff of a file: a patch, or with ``visible`` for a terminal, without control sequences from the file."""
    patch = "".join(_unified(name, before, after) for name, before, after in _texts(change))
    if visible:
        patch = "".join(
            part if _ALLOWED_CONTROLS.fullmatch(part) else escape_control_characters(part)
            for part in _ALLOWED_CONTROLS.split(patch)
        )
    return "".join(map(_coloured, _LINE.findall(patch))) if colour else patch


def _coloured(line: str) -> str:
    """A line of a patch in the colour that git gives it."""
    style = next((style for start, style in _STYLES if line.startswith(start)), "")
    text = line.rstrip("\r\n")
    return paint(text, style, bool(style)) + line[len(text) :]


def _texts(change: FileChange) -> Iterator[tuple[str, str, str]]:
    name, before, after = change.given.display, change.before, change.after
    if not before.cells:
        yield name, before.text, after.text
    for one, other in zip(before.cells, after.cells, strict=True):
        yield f"{name}:cell {one.number}", before.text[one.start : one.end], after.text[other.start : other.end]


def _unified(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
