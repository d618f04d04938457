"""What a run touches that decides whether it can be repeated: generators, flags, variables, devices; in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from torchrepro_lint.accelerator import starts_accelerator
from torchrepro_lint.backward import is_backward
from torchrepro_lint.catalogue.conditions import Literal
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.environment import variables
from torchrepro_lint.flags import Setting, settings
from torchrepro_lint.syntax.nodes import Call, Expression
from torchrepro_lint.syntax.visitor import last_word
from torchrepro_lint.trace.framework_models import rows_named
from torchrepro_lint.trace.trace import in_parts

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.effects import Effects
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.trace import Happening

DRAW, SEED, FLAG, VARIABLE, ACCELERATOR, BACKWARD = "draw", "seed", "flag", "variable", "accelerator", "backward"


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
            what = VARIABLE if each.what.isupper() else FLAG
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
