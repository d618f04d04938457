"""How an entry point reaches something, and where that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.call_path import Step as Waypoint
from torchrepro_lint.source.text import Lines, Span
from torchrepro_lint.syntax.nodes import parted

if TYPE_CHECKING:
    from torchrepro_lint.entrypoints import Entry
    from torchrepro_lint.happenings import Happening, Step
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.syntax.nodes import Statement


def entry_statement(entry: Entry, happening: Happening) -> Statement:
    """The statement of the entry file through which something is reached.

    Calls to functions of the same file are followed down, since they are the program; constructing or calling an
    object of a class is not.
    """
    at = happening.event.statement if happening.path == entry.path else None
    for step in happening.way:
        if step.path != entry.path:
            break
        at = step.event.statement
        if is_method(step.into):
            return at
    else:
        if happening.path == entry.path:
            return happening.event.statement
    assert at is not None  # a run starts in the entry's file
    return at


def is_method(function: str) -> bool:
    """Whether a function's name has a class in it: ``a.py:Net.forward``, not ``a.py:main.<locals>.step``."""
    qualified = parted(function)[2].rpartition("<locals>.")[2]
    return "." in qualified


def steps_to(project: ProgramIndex, happening: Happening, label: str) -> tuple[Waypoint, ...]:
    """The way from the entry point to something that happens, which ``label`` names; empty where it is no way at all."""
    if not happening.way:
        return ()
    found = [_waypoint(project, step.path, step.event, _entering(step)) for step in happening.way]
    return (*found, _waypoint(project, happening.path, happening.event, label))


def _waypoint(project: ProgramIndex, path: str, event: Event, text: str) -> Waypoint:
    at = event.value if event.value is not None else event.statement
    return Waypoint(path, project.position(path, at.start), text)


def _entering(step: Step) -> str:
    """``calls build_model``, ``imports model.py``, ``iterates Rows.__getitem__``."""
    path, _, name = parted(step.into)
    if not name:
        return f"imports {path}"
    verb = {"call": "calls", "iterate": "iterates", "index": "indexes", "enter": "enters", "read": "reads"}
    return f"{verb.get(step.event.kind, step.event.kind)} {name.replace('.<locals>', '')}"


def reached_at(project: ProgramIndex, entry: Entry, happening: Happening) -> str:
    """Where something stands and how it is reached, where that is not the statement itself: `` (model.py:14, via f)``."""
    reported = entry_statement(entry, happening)
    if not happening.way or happening.event.statement is reported:
        return ""
    # What lies before the reported statement is the program that the reader is looking at.
    on_way = [index for index, step in enumerate(happening.way) if step.event.statement is reported]
    steps = happening.way[on_way[0] :] if on_way else happening.way
    via = [parted(step.into)[2].rpartition(".")[2] for step in steps if parted(step.into)[2]]
    place = place_of(project, happening, entry.path)
    named = [word for word in via if not word.startswith("__") and word != "main"]
    return f" ({place}, via {named[0]})" if named else f" ({place})"


def place_of(project: ProgramIndex, happening: Happening, read: str = "") -> str:
    """``model.py:14``; ``cell 3:2`` of the notebook that is ``read``, ``train.ipynb:cell 3:2`` of another."""
    at = project.position(happening.path, happening.event.value.start if happening.event.value else 0)
    if at.cell and happening.path == read:
        return at.line
    return f"{happening.path}:{at.line}" if at.row else happening.path


def first_line(lines: Lines, statement: Statement) -> Span:
    """A compound statement is reported up to the end of its first line."""
    row = lines.position(statement.start).row
    end = lines.offset(row) + len(lines.line(row))
    return Span(statement.start, max(min(statement.end, end), statement.start))
