"""TRL112: training is resumed without the state of any generator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.gradients.modes import is_backward
from torchrepro_lint.source.text import Span
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Ref, Subscript, span
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions
from torchrepro_lint.trace.library_models import receiver_of, restores_generators

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.trace.events import TraceEvent

_LOADS = "load_state_dict"
_OPTIMIZER = re.compile(r"(?i)(?!\w*sched)(\w*optim\w*|opt(_?\w{1,2})?|\w*_opt)")
# Methods and functions that restore a generator, whatever they belong to.
_RESTORING = frozenset(
    {"set_rng_state", "set_rng_state_all", "set_rng_states", "load_rng_state", "restore_rng_state", "setstate"}
    | {"set_state"}
)
# What has a generator's state in its own, by name.
_HOLDERS = re.compile(r"(?i)\w*(loader|sampler|data_?set|data_?module|rng|generator|random)\w*")
_READERS = re.compile(r"(?i)_?(load|restore|resume|read)\w*")
_MESSAGE = (
    "restores the optimizer but no generator, so a resumed run draws other numbers than an uninterrupted one; "
    "save torch.get_rng_state() too, and restore it"
)


def check(context: Context) -> Iterator[Finding]:
    """The first such place of each program that resumes, wherever in its files that is."""
    if _LOADS not in context.tree.summary.calls:
        return
    reported: set[Span] = set()
    for program in context.project.programs_in(context.path):
        found = _resuming(context, program) if "torch" in program.effects.seeds else None
        if found is not None and found.path == context.path and found.event.value is not None:
            place = span(found.event.value)
            if place not in reported:
                reported.add(place)
                yield Finding("TRL112", place, _MESSAGE)


def _resuming(context: Context, program: Program) -> TraceEvent | None:
    """The event that restores an optimizer's state from a file, where training follows and no generator is restored."""
    first: tuple[int, TraceEvent] | None = None
    trains = False
    for order, trace_event in enumerate(program.run.trace_events):
        call = trace_event.event.value
        if trace_event.event.kind != "call" or not isinstance(call, Call):
            continue
        word = last_identifier(call.func)
        if _restores_generator(trace_event, call, word):
            return None
        if first is not None:
            trains = trains or is_backward(call, trace_event.names)
        elif word == _LOADS and _is_optimizer(trace_event, call) and _is_from_file(context, trace_event.path, call):
            first = order, trace_event
    if first is None or not trains or any(seed.order > first[0] for seed in program.effects.seeds["torch"]):
        return None
    return first[1]


def _restores_generator(trace_event: TraceEvent, call: Call, word: str) -> bool:
    if word in _RESTORING or restores_generators(trace_event.names):
        return True
    return word == _LOADS and _HOLDERS.fullmatch(_receiver_word(call)) is not None


def _is_optimizer(trace_event: TraceEvent, call: Call) -> bool:
    if any(name.startswith("torch.optim.lr_scheduler.") for name in trace_event.names):
        return False
    return any(name.startswith("torch.optim.") for name in trace_event.names) or bool(
        _OPTIMIZER.fullmatch(_receiver_word(call))
    )


def _receiver_word(call: Call) -> str:
    """The last word of a method's receiver: ``optimizers`` of ``self.optimizers["d"].load_state_dict``."""
    receiver = receiver_of(call.func)
    while isinstance(receiver, Subscript):
        receiver = receiver.value
    return last_identifier(receiver) if receiver is not None else ""


def _is_from_file(context: Context, path: str, call: Call) -> bool:
    """Whether the state is read from a file: an entry that is named after an optimizer, or what a reader returns."""
    given = call.args[0].value if call.args else None
    if given is None or any(_is_own_state(each) for each in subexpressions(given)):
        return False
    if any(isinstance(each, Constant) and "optim" in str(each.value) for each in subexpressions(given)):
        return True
    return any(
        isinstance(each, Call) and _READERS.fullmatch(last_identifier(each.func))
        for _, value in context.project.resolver.values_through_calls(path, _base(given))
        for each in subexpressions(value)
    )


def _is_own_state(value: Expression) -> bool:
    """``other.state_dict()``."""
    return isinstance(value, Call) and last_identifier(value.func) == "state_dict"


def _base(value: Expression) -> Expression:
    """The value that is looked into: ``saved`` of ``saved["a"]["b"]`` and of ``saved.get("a")``."""
    match value:
        case Subscript(value=inner) | Attribute(value=inner):
            return _base(inner)
        case Call(func=Ref(path=(*before, "get" | "pop")) as func):
            return func._replace(path=tuple(before))
    return value
