"""The hunks of a fixed file's diff, each with the codes of the rules whose fixes made it, and folders of them to be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.engine.writing import FileChange
from torchrepro_lint.interfaces.report import diff
from torchrepro_lint.source.text import Edit, Lines, map_offset

_FILE = re.compile(r"^--- (?P<name>.*)\n\+\+\+ (?P=name)\n", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\S+ \+(?P<row>\d+)(?:,(?P<rows>\d+))? @@$", re.MULTILINE)
_CELL = re.compile(r":cell (?P<number>\d+)$")

# An edit with the codes of the rules that asked for it.
Caused: TypeAlias = tuple[Edit, frozenset[str]]


class Hunk(NamedTuple):
    """A hunk of a file's diff, without its heading, and the codes of the rules that made it, as far as they are known."""

    file: str
    place: str
    lines: str
    codes: tuple[str, ...]

    def __str__(self) -> str:
        """A patch takes what stands behind the place for the name of a function."""
        return f"{' '.join((self.place, *self.codes))}\n{self.lines}"


class Causes:
    """The codes of the findings whose fixes have an edit, noted while the fixes are made."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, Edit], frozenset[str]] = {}

    def note(self, path: str, _: Lines, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """A filter of findings that lets all of them through."""
        for one in findings:
            if one.fix is None:
                continue
            for file, edits in ((path, one.fix.edits), *one.fix.elsewhere):
                for edit in edits:
                    self._codes[file, edit] = self._codes.get((file, edit), frozenset()) | {one.code}
        return findings

    def of(self, path: str, rounds: Iterable[Mapping[str, tuple[Edit, ...]]]) -> list[list[Caused]]:
        """The edits of a file in each round, with the codes that they were noted for."""
        return [
            [(edit, self._codes.get((path, edit), frozenset())) for edit in edits[path]]
            for edits in rounds
            if path in edits
        ]


def of(change: FileChange, rounds: Sequence[Sequence[Caused]]) -> list[Hunk]:
    """The hunks of a file that some rounds of edits have changed."""
    rows = _rows(change, rounds)
    found = []
    starts = [*_FILE.finditer(rendered := diff.render(change))]
    for start, end in zip(starts, [*(each.start() for each in starts[1:]), len(rendered)], strict=True):
        cell = _CELL.search(start["name"]) if change.after.cells else None
        inside = rows.get(int(cell["number"]) if cell else 0, ())
        places = [*_HUNK.finditer(rendered, start.end(), end)]
        for place, stop in zip(places, [*(each.start() for each in places[1:]), end], strict=True):
            first = int(place["row"])
            last = first + int(place["rows"] or 1)
            codes = {code for row, each in inside if first <= row <= last for code in each}
            lines = rendered[place.end() + 1 : stop]
            found.append(Hunk(start["name"], place[0], lines, tuple(sorted(codes))))
    return found


def write(folder: Path, named: Mapping[str, Sequence[Hunk]]) -> None:
    """The hunks of each directory as a patch of its own, and those of each rule in one file."""
    by_code: dict[str, dict[str, list[Hunk]]] = {}
    for name, own in named.items():
        _write(folder / f"{name}.diff", _patch(own))
        for hunk in own:
            for code in hunk.codes or ("unknown",):
                by_code.setdefault(code, {}).setdefault(name, []).append(hunk)
    for code, found in by_code.items():
        own = [each._replace(file=f"{name}/{each.file}") for name, some in found.items() for each in some]
        _write(folder / "rules" / f"{code}.diff", _patch(own))


def _patch(found: Iterable[Hunk]) -> str:
    parts, last = [], None
    for each in found:
        if each.file != last:
            parts.append(f"--- {each.file}\n+++ {each.file}\n")
        parts.append(str(each))
        last = each.file
    return "".join(parts)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")


def _rows(change: FileChange, rounds: Sequence[Sequence[Caused]]) -> dict[int, list[tuple[int, frozenset[str]]]]:
    """By cell (0: no notebook), the rows of the fixed file that edits have written, with their codes."""
    lines = Lines(change.after.text, change.after.cells)
    found: dict[int, list[tuple[int, frozenset[str]]]] = {}
    for number, edits in enumerate(rounds):
        for edit, codes in edits:
            start = map_offset(edit.span.start, [each for each, _ in edits])[0]
            end = start + len(edit.text)
            for later in rounds[number + 1 :]:
                moves = [each for each, _ in later]
                start, end = map_offset(start, moves)[0], map_offset(end, moves)[1]
            first, last = lines.place(start), lines.place(max(start, end - 1))
            found.setdefault(first.cell, []).extend((row, codes) for row in range(first.row, last.row + 1))
    return found
