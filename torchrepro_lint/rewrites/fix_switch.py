"""TRL201 and TRL202: the other value for a switch, and for nothing else that is given the same one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Assign, Constant, Expression, span
from torchrepro_lint.insertions import insert_below
from torchrepro_lint.text import Edit, Fix, Span

if TYPE_CHECKING:
    from torchrepro_lint.events import Event

_EQUALS = re.compile(r"[ \t]*=[ \t]*")


def fix_switch(text: str, event: Event, given: Expression | None, value: str) -> Fix | None:
    """Write the value that a switch is to have in the place of the literal that an event gives it."""
    if not isinstance(given, Constant):
        return None
    statement = event.statement
    chained = event.kind == "set" and isinstance(statement, Assign) and len(statement.targets) > 1
    edits = _apart(text, event, value) if chained else (Edit(span(given), value),)
    return Fix(f"set it to {value}", edits, safe=False) if edits else None


def _apart(text: str, event: Event, value: str) -> tuple[Edit, ...]:
    """A switch that shares its literal with other targets gets a statement of its own: the others keep what they have."""
    statement, target = event.statement, event.value
    if not isinstance(statement, Assign) or not any(each is target for each in statement.targets) or target is None:
        return ()
    equals = _EQUALS.match(text, target.end)
    if equals is None:
        return ()
    own = f"{text[target.start : target.end]} = {value}"
    return Edit(Span(target.start, equals.end()), ""), insert_below(text, span(statement), own)
