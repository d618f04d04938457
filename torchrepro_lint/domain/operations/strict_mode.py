"""Strict mode: whether a program could run to its end with deterministic algorithms on, or what is known against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.domain.determinism_mode import programs_reaching
from torchrepro_lint.domain.operations.gaps import first_gap
from torchrepro_lint.domain.operations.reached_operations import operations_needing_mode, operations_raising
from torchrepro_lint.domain.operations.verdicts import strict_mode_would_stop
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.call_paths import place_of
from torchrepro_lint.trace.events import prefix_and_rest

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.trace.events import TraceEvent


def why_not_strict(context: Context, program: Program) -> str:
    """What speaks against turning strict mode on in a program, in one sentence; empty if nothing is known to.

    An operation at which it would stop, or a gap between what is trained and the loss, behind which one may lie.
    """
    if _shares_weights(program):
        return "processes share the weights and update them in no fixed order, which deterministic algorithms do not change"
    stop = next(iter(operations_raising(context, program)), None)
    if stop is not None:
        return Message(
            f"deterministic algorithms would raise an error at {stop.label} (",
            place_of(context.project, stop.trace_event),
            ")",
        )
    for each in operations_needing_mode(context, program):
        if (version := context.catalogue.stops_elsewhere(each.row)) is not None:
            told = f"with torch {version}, which the project allows, deterministic algorithms would raise an error at "
            return Message(told, f"{each.label} (", place_of(context.project, each.trace_event), ")")
    gap = first_gap(context.project, program)
    return Message(gap, ", and deterministic algorithms may raise an error there") if gap else ""


def _shares_weights(program: Program) -> bool:
    """Whether a program trains one copy of its weights in several processes, as Hogwild does."""
    return any(prefix_and_rest(program.run, "shares memory", _contains_sharing))


def _contains_sharing(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(
        isinstance(each.event.value, Call) and last_identifier(each.event.value.func) == "share_memory"
        for each in trace_events
        if each.event.kind == "call"
    )


def why_not_strict_in(context: Context, function: str) -> str:
    """The same for the programs that reach a function; without programs, for all that the project calls."""
    told = (why_not_strict(context, each) for each in programs_reaching(context.project, function))
    found = next(filter(None, told), "")
    if not found and strict_mode_would_stop(context, function):
        return "deterministic algorithms would raise an error at an operation that is called"
    return found
