"""What is passed for parameters by calls that do not name the function: of a loss, and of what a table gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from torchrepro_lint.infer.what import UNKNOWN, What
from torchrepro_lint.syntax.nodes import Call, Collection, Expression, Function, Ref, path_of
from torchrepro_lint.syntax.summary import has_word

if TYPE_CHECKING:
    from torchrepro_lint.resolve.call_sites import Place
    from torchrepro_lint.value_flow import ValueFlow

# Operations of which the dimensions, or whether a gradient is kept, decide what is said. Files without them are not asked.
_DECIDING = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "cross_entropy", "nll_loss", "nll_loss2d", "index_select")
# What losses are called that are passed on to the function that calls them.
_LOSS = re.compile(r"(?i)(?=\w*\Z)(?:\w*(criteri|loss|nll|crossentropy|cross_entropy|objective)\w*|ce)")
# What is called from more places is called with all sorts of things.
_MOST_CALLS = 20


def unnamed_calls(project: ValueFlow, name: str, function: Function) -> list[tuple[str, Call]]:
    """The calls, each with its file, that run a module's ``forward``, or a function that tables alone name; none where
    there may be others that are not found, and where nothing depends on what they pass.
    """
    calls = project.files[path_of(name)].summary.calls
    if not any(has_word(calls, word) for word in _DECIDING):
        return []
    if not function.owner:
        found = _told(project, name) if _is_in_tables_alone(project, name, function) else iter(())
    elif function.name.endswith(".forward"):
        found = _of_object(project, name)
    else:
        return []
    return [(path, call) for path, call in islice(found, _MOST_CALLS + 1)]


def known_of(function: Function, passed: What) -> What:
    """What is taken for granted of what such calls pass: of an object that may be called elsewhere, too, no more than how many
    dimensions it gets.
    """
    if passed.kind not in ("", "tensor", "parameter"):
        return UNKNOWN
    whole = "" if function.owner else passed.kind
    return What(whole, low=passed.low, high=passed.high, grad=passed.grad if whole else None)


def _told(project: ValueFlow, name: str) -> Iterator[tuple[str, Call]]:
    for path, places in project.all_calls.told.of(name):
        yield from ((path, _call(project, path, each)) for each in places)


def _of_object(project: ValueFlow, name: str) -> Iterator[tuple[str, Call]]:
    """Those by what is known to be an object of the class, and by a loss that is passed on."""
    yield from _told(project, name)
    made = f"{project.resolver.owner(name)}()"
    untold = project.all_calls.untold
    for word in filter(_LOSS.fullmatch, untold.names()):
        for path, places in untold.of(word):
            for each in places:
                call = _call(project, path, each)
                if isinstance(call.func, Ref) and made in project.resolver.through_calls(path, call.func):
                    yield path, call


def _call(project: ValueFlow, path: str, place: Place) -> Call:
    return project.called_at(path + place.function, place.start, place.end).call


def _is_in_tables_alone(project: ValueFlow, name: str, function: Function) -> bool:
    """Whether a function is named where it is called, and otherwise as an item of displays alone."""
    uses = project.uses
    if function.decorators or not project.resolver.calls_of.hands_on(name):
        return False
    for path, read, words in uses.of_definition(path_of(name), function.name):
        spot = uses.spots(path).of(read)
        parent = spot.parent if spot is not None else None
        if words or not (_is_called(parent, read) or isinstance(parent, Collection)):
            return False
    return True


def _is_called(parent: Expression | None, read: Expression) -> bool:
    return isinstance(parent, Call) and parent.func is read
