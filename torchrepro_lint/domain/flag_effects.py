"""What a run touches that decides whether it can be repeated: generators, flags, variables, devices; in order.

The flags and variables that a module sets, whatever runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from torchrepro_lint.catalogue.conditions import Literal
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.domain.devices import starts_accelerator
from torchrepro_lint.domain.flags import Setting, settings, variables
from torchrepro_lint.domain.gradients.modes import is_backward
from torchrepro_lint.syntax.nodes import Call, Expression, Subscript
from torchrepro_lint.syntax.visitor import last_word
from torchrepro_lint.trace.framework_models import rows_named
from torchrepro_lint.trace.trace import in_parts

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.domain.rng.effects import Effects
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.trace import Happening


DRAW, SEED, FLAG, VARIABLE_TOUCH, ACCELERATOR, BACKWARD = "draw", "seed", "flag", "variable", "accelerator", "backward"


# What a call may touch by what it passes, by the word and by the beginnings of names.
_MOVING = frozenset({"cuda", "to", "backward"})
_TOUCHING = ("torch.", "os.", "builtins.setattr", "accelerate.", "ultralytics.")
# The names of what is called, and the word by which it is.
_Said: TypeAlias = tuple[tuple[str, ...], str]


class Touch(NamedTuple):
    """One touch: of a generator (``draw``, ``seed``), a ``flag``, a ``variable`` of the environment, or the device
    (``accelerator``: something is put there; ``backward``: a backward pass).

    ``what`` names the family, flag or variable. A flag or variable gets ``value`` (``OPEN`` where it is not one constant,
    None where a variable is removed), from the expression ``given``. ``label`` says what draws or seeds. ``order`` counts
    the happenings of the run.
    """

    kind: str
    what: str
    value: Literal
    given: Expression | None
    label: str
    happening: Happening
    order: int


def switching(run: Run, names: Names, catalogue: Catalogue, kept: dict[str, Any]) -> Iterator[Touch]:
    """All touches of a run, in order, but for those of generators; ``kept`` is what its project remembers."""
    find = partial(_switching, names, catalogue, kept.setdefault(__name__, {}))
    for part in in_parts(run, "switching", lambda start, found: tuple(find(start, found)), kept):
        yield from part


def _switching(
    names: Names, catalogue: Catalogue, still: dict[_Said, bool], start: int, happenings: Sequence[Happening]
) -> Iterator[Touch]:
    for order, happening in enumerate(happenings, start):
        kind, value = happening.event.kind, happening.event.value
        if kind not in ("call", "set", "index"):
            continue
        if kind == "call" and isinstance(value, Call):
            said = happening.names, last_word(value.func)
            if said not in still:
                still[said] = _is_still(catalogue, value, *said)
            if still[said]:
                continue
        for each in set_by(names, catalogue, happening.path, happening.event, happening.names):
            what = VARIABLE_TOUCH if each.what.isupper() else FLAG
            yield Touch(what, each.what, each.value, each.given, "", happening, order)
        if kind == "call" and isinstance(value, Call):
            if starts_accelerator(names, happening.path, value, happening.names):
                yield Touch(ACCELERATOR, "", True, None, "", happening, order)
            if is_backward(value, happening.names):
                yield Touch(BACKWARD, "", True, None, "", happening, order)


def _is_still(catalogue: Catalogue, call: Call, found: tuple[str, ...], word: str) -> bool:
    """Whether no call of these names, by this word, touches anything, whatever it passes: nearly all do not."""
    return word not in _MOVING and not any(
        name.startswith(_TOUCHING)
        or rows_named(name)
        or catalogue.settings(plain(name).removesuffix("()"))
        or is_backward(call, (name,))
        for name in found
        if ":" not in name
    )


def set_by(names: Names, catalogue: Catalogue, path: str, event: Event, found: tuple[str, ...]) -> Iterator[Setting]:
    """The flags and variables that an event of a file sets."""
    yield from settings(names, catalogue, path, event, found)
    yield from variables(names, path, event, found)


def drawing(effects: Effects) -> Iterator[Touch]:
    """The touches of generators, family by family."""
    for family, draws in sorted(effects.draws.items()):
        yield from (Touch(DRAW, family, None, None, each.label, each.happening, each.order) for each in draws)
    for family, seeds in sorted(effects.seeds.items()):
        yield from (Touch(SEED, family, None, None, each.label, each.happening, each.order) for each in seeds)


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
