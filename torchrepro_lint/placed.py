"""The flags and variables that a module sets, whatever runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.facts import Call, Expression, Subscript
from torchrepro_lint.flags import Setting
from torchrepro_lint.touches import set_by

if TYPE_CHECKING:
    from torchrepro_lint.catalogue import Catalogue
    from torchrepro_lint.events import Event
    from torchrepro_lint.names import Names


_UNDOING = re.compile(
    r"(?i)_*(un|re)set|_*(disable|deactivate|undo|restore|release|teardown|turn_off|switch_off|exit)(?![a-z])"
)


class Placed(NamedTuple):
    """A flag or variable, what it is set to, and by which event of which function (``path:`` for the top level)."""

    setting: Setting
    event: Event
    function: str
    names: tuple[str, ...]


def placed(names: Names, catalogue: Catalogue, path: str) -> Iterator[Placed]:
    """What a module sets, function by function; what constant tests rule out is not there."""
    facts = names.modules.files[path]
    for name, body in (("", facts.body), *((each.name, each.body) for each in facts.functions)):
        for event in names.events.of_body(body):
            if event.value is not None and event.kind in ("call", "set", "index"):
                found = names.names(path, _named(event))
                for each in set_by(names, catalogue, path, event, found):
                    yield Placed(each, event, f"{path}{name or ':'}", found)


def other_branches(one: Placed, others: Iterable[Placed]) -> Iterator[Placed]:
    """What sets the same in the other branch of an ``if`` around: then it is the user who decides."""
    other = {"if": "else", "else": "if"}
    wanted = {(other[guard.kind], id(guard.value)) for guard in one.event.guards if guard.kind in other}
    for each in others:
        if each.setting.what == one.setting.what and wanted.intersection(
            (guard.kind, id(guard.value)) for guard in each.event.guards
        ):
            yield each


def undoes(function: str) -> bool:
    """Whether a function's name says that it switches something off or puts it back: what it does is meant."""
    return bool(_UNDOING.match(function.rpartition(":")[2].rpartition(".")[2]))


def _named(event: Event) -> Expression:
    """What an event happens to, as far as it has a name: what is called, or what an item is of."""
    assert event.value is not None
    match event.value:
        case Call(func=func) if event.kind == "call":
            return func
        case Subscript(value=value) if event.kind == "set":
            return value
    return event.value
