"""TRL108: a reinforcement-learning environment starts from entropy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.rng.seeders import families_of_call
from torchrepro_lint.syntax.nodes import Call, Constant, Ref, span
from torchrepro_lint.trace.library_models import receiver_of, rows_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.trace.events import TraceEvent

_CODE = "TRL108"
# Prefilter: a file with a finding calls one of these, or names it as a value.
_WORDS = frozenset({"reset", "sample"})
_MOST_WRAPPERS = 6
_SPACES = frozenset({"action_space", "single_action_space", "observation_space", "single_observation_space"})


def check(context: Context) -> Iterator[Finding]:
    """The first reset of each environment in a trace, and the first sample of its spaces, without a seed before."""
    mentioned = {*context.tree.summary.calls, *context.tree.summary.values}
    for program in context.project.programs_in(context.path) if not mentioned.isdisjoint(_WORDS) else ():
        for trace_event, message in _unseeded(context, program):
            if trace_event.path == context.path and trace_event.event.value is not None:
                yield Finding(_CODE, span(trace_event.event.value), message)


def _unseeded(context: Context, program: Program) -> Iterator[tuple[TraceEvent, str]]:
    seen: set[object] = set()
    # Vector environments create spaces late, and a copy keeps the seed: one seed anywhere counts.
    spaces_seeded = any(_seeds_space(trace_event) for trace_event in program.run.trace_events)
    for trace_event in program.run.trace_events:
        call = trace_event.event.value
        if trace_event.event.kind != "call" or not isinstance(call, Call):
            continue
        match call.func:
            case Ref(path=(*_, "sample")) as func if _SPACES.intersection(func.path):
                if not spaces_seeded and _is_space(trace_event.names):
                    space = next(each for each in func.path if each in _SPACES)
                    yield (
                        trace_event,
                        f"{space}.sample() draws from its own unseeded generator; call {space}.seed(...) first",
                    )
                    spaces_seeded = True  # told once
            case _ if word := _called_method(trace_event.names):
                key = _environment_key(context, trace_event, call)
                if key not in seen and word == "reset" and not _is_seeded_reset(context, trace_event, call):
                    yield trace_event, _message(trace_event.names)
                seen.add(key)


def _seeds_space(trace_event: TraceEvent) -> bool:
    match trace_event.event.value:
        case Call(func=Ref(path=(*owners, "seed"))) if trace_event.event.kind == "call":
            return not _SPACES.isdisjoint(owners)
    return False


def _message(names: tuple[str, ...]) -> str:
    if any(name.startswith("stable_baselines3.") for name in names):
        return "the environments' first reset() starts from entropy; call seed(...) on them first"
    return "the environment's first reset() has no seed and starts from entropy; pass seed=..."


def _called_method(names: tuple[str, ...]) -> str:
    """``reset`` or ``seed``, called on what may be a library's environment or wrapper."""
    for name in names:
        owner, _, word = name.rpartition(".")
        if word in ("reset", "seed") and ":" not in name and owner.endswith("()") and _makes_environment(owner[:-2]):
            return word
    return ""


def _makes_environment(name: str) -> bool:
    return any(row.makes == "environment" for row in rows_of([name]))


def _is_space(names: tuple[str, ...]) -> bool:
    return any(":" not in name and "()." in name and _makes_environment(name.partition("().")[0]) for name in names)


def _environment_key(context: Context, trace_event: TraceEvent, call: Call) -> object:
    """The environment of a method call, by the calls that may have created it."""
    receiver = receiver_of(call.func)
    made = context.project.resolver.values_through_calls(trace_event.path, receiver) if receiver is not None else ()
    return tuple(sorted(id(value) for _, value in made)) or trace_event.names


def _is_seeded_reset(context: Context, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a reset has a seed, or may have one; or the environment's construction has."""
    for arg in call.args:
        if arg.star or arg.keyword == "seed":
            return not (isinstance(arg.value, Constant) and arg.value.value is None)
    receiver = receiver_of(call.func)
    made = context.project.resolver.values_through_calls(trace_event.path, receiver) if receiver is not None else ()
    return any(_seeded_when_made(context, path, value) for path, value in made if isinstance(value, Call))


def _seeded_when_made(context: Context, path: str, call: Call, depth: int = 0) -> bool:
    """By the catalogue, or by a ``seed`` argument of an unknown callee; through wrappers."""
    if any(arg.keyword and arg.keyword.endswith("seed") for arg in call.args):
        return True
    inside = (
        context.project.resolver.values_through_calls(path, call.args[0].value)
        if call.args and depth < _MOST_WRAPPERS
        else ()
    )
    if any(_seeded_when_made(context, file, each, depth + 1) for file, each in inside if isinstance(each, Call)):
        return True
    for name in context.project.names(path, call.func):
        seeder = context.catalogue.seeder(name) if ":" not in name else None
        if seeder is not None and "environment" in families_of_call(seeder, call):
            return True
    return False
