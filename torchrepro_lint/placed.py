"""The flags and variables that a module sets, whatever runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.flags import Setting
from torchrepro_lint.syntax.nodes import Call, Expression, Subscript
from torchrepro_lint.touches import set_by

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.events import Event


_UNDOING = re.compile(
    r"(?i)_*(un|re)set|_*(disable|deactivate|undo|restore|release|teardown|turn_off|switch_off|exit)(?![a-z])"
)
# What sets a flag without its name standing there.
_SETTING = frozenset({"setattr", "flags", "set_flags", "compile", "patch"})
# What fills the environment, or any other dictionary.
_FILLING = frozenset({"putenv", "update", "setdefault", "__setitem__"})


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


def may_set(project: ProgramIndex, path: str, words: frozenset[str]) -> bool:
    """Whether a file may set a flag that goes by one of these words, as far as can be told without a look inside: it says
    one, or calls what sets whatever it is told to.
    """
    summary = project.files[path].summary
    if not words.isdisjoint(summary.values) or not words.isdisjoint(summary.keywords):
        return True
    return path in project.mentioning(_SETTING).paths


def may_set_variables(project: ProgramIndex, path: str) -> bool:
    """The same of any variable of the environment. What is called is known by its last word alone, which is ``update`` for
    many a dictionary, so the file must import what may have the environment, too.
    """
    summary, environment = project.files[path].summary, project.holding("environ")
    if not environment.isdisjoint(summary.values):
        return True
    imports = (name.split(".") for name in summary.imports)
    return not _FILLING.isdisjoint(summary.calls) and any(
        words[0] == "os" or words[-1] in environment for words in imports
    )


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
