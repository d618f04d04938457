"""TRL201 and TRL202: the other value for a switch, and for nothing else that is given the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.insertions import insert_below
from torchrepro_lint.source.text import Edit, Fix, Span
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, span

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import Placed

_EQUALS = re.compile(r"[ \t]*=[ \t]*")


def fix_switch(
    text: str, placed: Placed, given: Expression | None, value: str, others: Iterable[Placed] = ()
) -> Fix | None:
    """Write the value that a switch is to have in the place of the literal that it is given; ``others`` are what else the
    file sets.
    """
    statement = placed.event.statement
    if not isinstance(given, Constant):
        return None
    edits: tuple[Edit, ...] = (Edit(span(given), value),)
    if placed.event.kind == "set" and isinstance(statement, Assign) and len(statement.targets) > 1:
        alike = [
            each for each in others if each.event.statement is statement and each.setting.what == placed.setting.what
        ]
        own = [target for target in statement.targets if any(each.event.value is target for each in alike)]
        if len(own) < len(statement.targets):
            edits = _apart(text, statement, own, value)
    return Fix(f"set it to {value}", edits, safe=False) if edits else None


def _apart(text: str, statement: Assign, own: list[Expression], value: str) -> tuple[Edit, ...]:
    """The targets that are the switch get a statement of their own: the others keep what they have."""
    signs = [_EQUALS.match(text, target.end) for target in own]
    cuts = [Edit(Span(target.start, sign.end()), "") for target, sign in zip(own, signs, strict=True) if sign]
    if not own or len(cuts) < len(own):
        return ()
    targets = " = ".join(text[target.start : target.end] for target in own)
    return (*cuts, insert_below(text, span(statement), f"{targets} = {value}"))
