"""Records of an overview: everything that its HTML page, Markdown or JSON shows.

Plain values only; the names of their fields are the keys of the JSON. All paths have slashes and are relative to the
project's root, or with several projects to the directory that they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from torchrepro_lint.domain.timeline import Timeline, TimelineDiagnostic
from torchrepro_lint.interfaces.report.excerpt import ExcerptLine
from torchrepro_lint.trace.call_paths import CallPathStep


class Location(NamedTuple):
    """A location in a file; ``cell`` is 0 except in notebooks."""

    path: str
    row: int
    column: int
    cell: int = 0

    @property
    def reading_order(self) -> tuple[str, int, int, int]:
        """The sort key of locations: in a notebook by cell, then by row."""
        return self.path, self.cell, self.row, self.column

    def __str__(self) -> str:
        """``train.py:12``, ``train.ipynb:cell 3:2``."""
        return f"{self.path}:cell {self.cell}:{self.row}" if self.cell else f"{self.path}:{self.row}"


class CallPathRecord(NamedTuple):
    """A step of the call path from an entry point to a cause."""

    place: Location
    text: str


class DiffLine(NamedTuple):
    """A line that a fix removes (``-``) or adds (``+``); ``path`` is empty for the finding's own file."""

    sign: str
    number: int
    text: str
    path: str


class FixRecord(NamedTuple):
    """A fix: its title, whether it is safe (keeps the program's meaning), and its diff."""

    title: str
    safe: bool
    changes: tuple[DiffLine, ...]


class FindingRecord(NamedTuple):
    """A finding. ``id`` stays when code above it changes; ``control`` is empty where the rule is about none.

    ``entries`` are the ids of the entry points whose run reaches it, ``line`` is the text of its line without white space
    around it.
    """

    id: str
    code: str
    name: str
    severity: str
    place: Location
    message: str
    control: str
    entries: tuple[str, ...]
    line: str
    source: tuple[ExcerptLine, ...]
    way: tuple[CallPathRecord, ...]
    fix: FixRecord | None
    url: str


class Cell(NamedTuple):
    """The state of a control in an entry point: ``says`` in a few words, ``because`` with the reason.

    ``state`` is a key of ``STATES``, ``findings`` are the ids of those that are about it.
    """

    control: str
    state: str
    says: str
    because: str
    findings: tuple[str, ...] = ()


class EntryRecord(NamedTuple):
    """An entry point; ``function`` is empty where it is the module itself. ``matters`` says whether its run saves or
    measures anything, ``uses_torch`` whether it reaches a file that imports torch, or a library that runs on it. ``cells`` are in
    the order of ``CONTROLS``.
    """

    id: str
    path: str
    function: str
    torch: str
    device: str
    matters: bool
    cells: tuple[Cell, ...]
    timeline: Timeline
    uses_torch: bool = True

    @property
    def name(self) -> str:
        """``train.py``, ``cli.py, main``."""
        return f"{self.path}, {self.function}" if self.function else self.path


def with_shown_texts(timeline: Timeline, path: Callable[[str], str], text: Callable[[str], str]) -> Timeline:
    """A timeline with each path as ``path`` shows it, and each text as ``text`` does."""

    def steps(way: Iterable[CallPathStep]) -> tuple[CallPathStep, ...]:
        return tuple(step._replace(path=path(step.path), text=text(step.text)) for step in way)

    def trouble(one: TimelineDiagnostic) -> TimelineDiagnostic:
        return one._replace(text=text(one.text))

    moments = (
        each._replace(
            text=text(each.text),
            conditions=tuple(map(text, each.conditions)),
            path=path(each.path),
            way=steps(each.way),
            trouble=each.trouble and trouble(each.trouble),
        )
        for each in timeline.moments
    )
    return timeline._replace(
        path=path(timeline.path),
        moments=tuple(moments),
        missing=tuple(map(trouble, timeline.missing)),
        gaps=tuple(
            each._replace(text=text(each.text), path=path(each.path), way=steps(each.way)) for each in timeline.gaps
        ),
    )


class OperationUse(NamedTuple):
    """Calls of one operation that behave alike in every release: ``status`` is what they do in the target ``torch``
    (a key of ``STATUSES``; empty: nothing is known to be wrong), ``releases`` what they do from release to release.
    """

    operation: str
    torch: str
    status: str
    releases: tuple[tuple[str, str], ...]
    places: tuple[Location, ...]


class ReleaseShift(NamedTuple):
    """What some other ``releases`` would change: how many calls do what instead of what."""

    torch: str
    releases: str
    changes: tuple[tuple[str, str, int], ...]


class Gap(NamedTuple):
    """Something that was not analysed, or only in part: its kind, what it is, and why."""

    kind: str
    what: str
    why: str


class TargetRecord(NamedTuple):
    """The target torch of a project (``root``, empty for the only one), and what decided it."""

    root: str
    torch: str
    decided_by: str


class CellChange(NamedTuple):
    """A control whose state changed since an older overview; ``verdict`` is ``better`` or ``worse``."""

    entry: str
    control: str
    verdict: str
    before: str
    now: str
    said: str


class Comparison(NamedTuple):
    """The difference to an older overview: new entry points and findings by id, those that are gone in words."""

    cells: tuple[CellChange, ...]
    new_entries: tuple[str, ...]
    gone_entries: tuple[str, ...]
    new_findings: tuple[str, ...]
    gone_findings: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


class Overview(NamedTuple):
    """An overview; ``files`` is the number of analysed files."""

    title: str
    version: str
    aims: tuple[TargetRecord, ...]
    files: int
    entries: tuple[EntryRecord, ...]
    findings: tuple[FindingRecord, ...]
    uses: tuple[OperationUse, ...]
    shifts: tuple[ReleaseShift, ...]
    gaps: tuple[Gap, ...]
    comparison: Comparison | None = None
