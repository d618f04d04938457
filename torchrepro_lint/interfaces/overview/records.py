"""The records of an overview: everything that a page, a Markdown text or a JSON file of it says.

Plain values only. All paths have slashes and are relative to the project's root, or where there are several projects to
the directory that they have in common.
"""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.domain.timeline import Timeline


class Place(NamedTuple):
    """A place in a file; ``cell`` is 0 but in notebooks."""

    path: str
    row: int
    column: int
    cell: int = 0

    def __str__(self) -> str:
        """``train.py:12``, ``train.ipynb:cell 3:2``."""
        return f"{self.path}:cell {self.cell}:{self.row}" if self.cell else f"{self.path}:{self.row}"


class Way(NamedTuple):
    """A step of the way from an entry point to a cause."""

    place: Place
    text: str


class Code(NamedTuple):
    """A line of source: its number (0: left out), its text, and what is underlined of it (with ``^``)."""

    number: int
    text: str
    under: str


class Change(NamedTuple):
    """A line that a fix takes away (``-``) or writes (``+``); ``path`` is empty for the finding's own file."""

    sign: str
    number: int
    text: str
    path: str


class Repair(NamedTuple):
    """A fix: what it does in words, whether it keeps the program's meaning, and its lines."""

    title: str
    safe: bool
    changes: tuple[Change, ...]


class Item(NamedTuple):
    """A finding. ``id`` stays when code above it changes; ``control`` is empty where the rule is about none.

    ``entries`` are the ids of the entry points whose run reaches it, ``line`` is the text of its line without white space
    around it.
    """

    id: str
    code: str
    name: str
    severity: str
    place: Place
    message: str
    control: str
    entries: tuple[str, ...]
    line: str
    source: tuple[Code, ...]
    way: tuple[Way, ...]
    fix: Repair | None
    url: str


class Cell(NamedTuple):
    """What is said of an entry point and a control: ``says`` in a few words, ``because`` with the reason.

    ``state`` is a key of ``STATES``, ``findings`` are the ids of those that are about it.
    """

    control: str
    state: str
    says: str
    because: str
    findings: tuple[str, ...] = ()


class Entry(NamedTuple):
    """An entry point; ``function`` is empty where it is the module itself. ``matters`` says whether its run saves or
    measures anything. ``cells`` are in the order of ``CONTROLS``.
    """

    id: str
    path: str
    function: str
    torch: str
    device: str
    matters: bool
    cells: tuple[Cell, ...]
    timeline: Timeline

    @property
    def name(self) -> str:
        """``train.py``, ``cli.py, main``."""
        return f"{self.path}, {self.function}" if self.function else self.path


class Use(NamedTuple):
    """Calls of one operation that behave alike in every release: ``status`` is what they do in the target ``torch``
    (a key of ``STATUSES``; empty: nothing is known to be wrong), ``releases`` what they do from release to release.
    """

    operation: str
    torch: str
    status: str
    releases: tuple[tuple[str, str], ...]
    places: tuple[Place, ...]


class Shift(NamedTuple):
    """What some other ``releases`` would change: how many calls do what instead of what."""

    torch: str
    releases: str
    changes: tuple[tuple[str, str, int], ...]


class Gap(NamedTuple):
    """Something that was not analysed, or only in part: of which ``kind``, what, and why."""

    kind: str
    what: str
    why: str


class Aim(NamedTuple):
    """The torch that a project (``root``, empty for the only one) is analysed for, and what decided that."""

    root: str
    torch: str
    decided_by: str


class CellChange(NamedTuple):
    """How a control of an entry point stands beside an older overview: ``better``, ``worse``."""

    entry: str
    control: str
    verdict: str
    before: str
    now: str
    said: str


class Comparison(NamedTuple):
    """An older overview beside this one: entry points and findings by id where they are here, in words where they are gone."""

    cells: tuple[CellChange, ...]
    new_entries: tuple[str, ...]
    gone_entries: tuple[str, ...]
    new_findings: tuple[str, ...]
    gone_findings: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


class Overview(NamedTuple):
    """All of it. ``files`` is how many files were analysed."""

    title: str
    version: str
    aims: tuple[Aim, ...]
    files: int
    entries: tuple[Entry, ...]
    findings: tuple[Item, ...]
    uses: tuple[Use, ...]
    shifts: tuple[Shift, ...]
    gaps: tuple[Gap, ...]
    comparison: Comparison | None = None
