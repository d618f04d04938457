"""TRL104: a run draws from a generator before it seeds it."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.checks.forward_uses import becomes_seed
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.programs import Program, is_attributed_elsewhere, is_relevant, programs_of
from torchrepro_lint.domain.rng.effects import Draw, Seed
from torchrepro_lint.domain.rng.feasibility import first_feasible_draw, is_path_feasible
from torchrepro_lint.domain.rng.optional_seeds import is_set_elsewhere, without_seed_draws
from torchrepro_lint.domain.rng.seeders import is_temporary
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.control_flow import is_main_test, uncertain_guards
from torchrepro_lint.syntax.nodes import Call, Operation
from torchrepro_lint.syntax.visitor import expressions_within, subexpressions
from torchrepro_lint.trace.call_paths import (
    are_exclusive,
    call_path,
    ends_before,
    entry_statement,
    first_line,
    place_of,
    process_starts,
    reached_at,
)
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.traces import Context


def check(context: Context) -> Iterator[Finding]:
    """One finding for each entry point and family."""
    for program in programs_of(context.project, context.path):
        effects = program.effects
        if effects.results and effects.acts and not effects.unknown_seeder:
            late = {family: found for family in FAMILIES if (found := _late_seed(context, program, family))}
            for family, (draw, seed) in late.items():
                from torchrepro_lint.checks.fixes.late_seeding import fix_late

                fix = fix_late(context.project, program, {each.key: found for each, found in late.items()}, draw)
                yield _finding(context, program, family, draw, seed)._replace(remedy=fix)


def _late_seed(context: Context, program: Program, family: Family) -> tuple[Draw, Seed] | None:
    """The first draw of a family and the first seeder that comes after it."""
    every = [
        each
        for each in program.effects.seeds.get(family.key, ())
        if not is_temporary(context.project.resolver, each.trace_event)
    ]
    if not every:
        return None
    draws = without_seed_draws(program.effects.draws.get(family.key, ()), program.effects.optional)
    seeding = every[0].trace_event.event
    # A call that does both, as the construction of an agent with a seed, seeds first.
    early = (
        each
        for each in draws
        if each.order <= every[0].order
        and each.trace_event.event != seeding
        and not _makes_seed(context, each.trace_event)
        and not ends_before(context.project, each.trace_event, every[0].trace_event)
        and is_path_feasible(context.project, program.run, each.trace_event)
    )
    draw = first_feasible_draw(context.project, program.run, early)
    if draw is None:
        return None
    # A seed in the other branch of the same test is neither before nor after the draw, and one in another process is not the draw's.
    is_started = bool(process_starts(context.project, draw.trace_event))
    seeds = [
        each
        for each in every
        if not are_exclusive(context.project, draw.trace_event, each.trace_event)
        and (is_started or not is_set_elsewhere(context.project, program.run, each.trace_event))
    ]
    if (
        not seeds
        or draw.order > seeds[0].order
        or is_attributed_elsewhere(context.project, program.entry, draw.trace_event)
        or not is_relevant(context.project, program)
    ):
        return None
    return draw, seeds[0]


def _makes_seed(context: Context, draw: TraceEvent) -> bool:
    """Whether a draw only makes the seed where none is given, or where one is asked for: ``args.seed or randint(0, 99)``."""
    call = draw.event.value
    tested = any(not is_main_test(guard.value) for guard in uncertain_guards(draw.event.guards))
    if not isinstance(call, Call) or not (tested or _is_alternative(draw, call)):
        return False
    return becomes_seed(context.project, draw.path, call)


def _is_alternative(draw: TraceEvent, call: Call) -> bool:
    """Whether a call is evaluated for one outcome of a test within its statement alone."""
    return any(
        isinstance(each, Operation)
        and each.op in ("or", "if")
        and any(part == call for operand in each.operands[1:] for part in subexpressions(operand))
        for each in expressions_within(draw.event.statement)
    )


def _finding(context: Context, program: Program, family: Family, draw: Draw, seed: Seed) -> Finding:
    call, place = draw.trace_event.event.value, place_of(context.project, seed.trace_event)
    reached = reached_at(context.project, program.entry, draw.trace_event)
    if isinstance(call, Call) and becomes_seed(context.project, draw.trace_event.path, call):
        why = (
            f" makes the seed before {seed.label} (",
            place,
            ") seeds with it, so every run has another seed; use a constant",
        )
    else:
        why = f" draws from {family.owner} before {seed.label} (", place, ") seeds it; seed first"
    statement = entry_statement(program.entry, draw.trace_event)
    steps = call_path(context.project, draw.trace_event, f"{draw.label} draws from {family.owner}")
    return Finding("TRL104", first_line(context.lines, statement), Message(draw.label, reached, *why), steps=steps)
