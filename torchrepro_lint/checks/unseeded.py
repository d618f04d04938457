"""TRL101, TRL102, TRL103: a run draws from a generator that nothing seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torchrepro_lint.catalogue.rows import FAMILIES, NUMPY, PYTHON, TORCH, Family
from torchrepro_lint.checks.forward_uses import becomes_seed
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.programs import Program, is_attributed_elsewhere, is_relevant, programs_of
from torchrepro_lint.domain.rng.effects import Draw, Seed
from torchrepro_lint.domain.rng.feasibility import first_feasible_draw
from torchrepro_lint.domain.rng.optional_seeds import draws_without_inherited_seeds, without_seed_draws
from torchrepro_lint.domain.rng.seeding import may_seed_unseen
from torchrepro_lint.source.text import Fix, Message, NoFix
from torchrepro_lint.syntax.control_flow import uncertain_guards
from torchrepro_lint.syntax.nodes import Assign, Call
from torchrepro_lint.syntax.visitor import is_same_reference, subexpressions
from torchrepro_lint.trace.call_paths import (
    call_path,
    ends_before,
    entry_statement,
    first_line,
    fresh_start,
    place_of,
    place_of_call,
    process_starts,
    reached_at,
)
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.traces import Context


def _check_for(code: str, family: Family) -> Callable[[Context], Iterator[Finding]]:
    def check(context: Context) -> Iterator[Finding]:
        for program in programs_of(context.project, context.path):
            yield from _of_program(context, program, code, family)

    return check


torch = _check_for("TRL101", TORCH)
numpy = _check_for("TRL102", NUMPY)
python = _check_for("TRL103", PYTHON)


def _of_program(context: Context, program: Program, code: str, family: Family) -> Iterator[Finding]:
    draw = _unseeded_draw(context, program, family)
    if draw is None:
        return
    from torchrepro_lint.checks.fixes.seeding import fix_program, seed_helper

    effects = program.effects
    statement = entry_statement(program.entry, draw.trace_event)
    source = f"from {family.owner}" if draw.family == family.key else f"in workers, which {family.what} seeds"
    where = reached_at(context.project, program.entry, draw.trace_event)
    start = fresh_start(context.project, draw.trace_event) if family.key in effects.seeds else None
    entropic = next((each for each in effects.entropic.get(family.key, ()) if each.order < draw.order), None)
    missing: str
    if start is not None:
        place = place_of_call(context.project, start)
        missing = Message(
            "the process that draws (started at ",
            place,
            f") has none of its parent's seeds; call {family.seeder} in it",
        )
    elif entropic is not None:
        place = place_of(context.project, entropic.trace_event)
        missing = Message(
            f"{entropic.label} (",
            place,
            f") seeds {family.what} with another number in each run; seed it with a constant",
        )
    elif family.key == "torch" and "torch-cuda" in effects.seeds:
        missing = (
            "torch.cuda.manual_seed seeds CUDA only, so the CPU generator is unseeded; call torch.manual_seed(...)"
        )
    else:
        helper = seed_helper(context.project, program.entry.path, [family.key])
        alternative = f", or pass {draw.seed}=..." if draw.seed else ""
        seeder = f"{helper.word}({'...' if helper.seed else ''})" if helper else family.seeder
        missing = f"nothing in this run seeds {family.what}; call {seeder} first{alternative}"
    message = Message(draw.label, where, f" draws {source}, and ", missing)
    steps = call_path(context.project, draw.trace_event, f"{draw.label} draws {source}")
    families = [
        (each.key, found)
        for each in FAMILIES
        if (found := _unseeded_draw(context, program, each))
        and process_starts(context.project, found.trace_event) == process_starts(context.project, draw.trace_event)
    ]
    fix: Fix | NoFix | None
    if family.key in effects.entropic:
        fix = NoFix(
            f"the fix of the TRL105 finding at the call that seeds {family.what} from entropy settles this, too"
        )
    elif start is not None and any(edge.event != start.event for edge in program.run.call_edges.get(start.into, ())):
        # There the parameter for the rank may be None.
        fix = NoFix("the function that the process runs is also called directly, where its arguments may differ")
    else:
        fix = fix_program(context.project, program, families)
    yield Finding(code, first_line(context.lines, statement), message, fix, steps=steps)


def _unseeded_draw(context: Context, program: Program, family: Family) -> Draw | None:
    """The first draw of a family that a relevant run never seeds, and that belongs to this entry point; else None."""
    effects = program.effects
    draws: Iterable[Draw] = effects.draws.get(family.key, ())
    if family.key in effects.seeds:
        seeds = effects.seeds[family.key]
        inherited = [*draws_without_inherited_seeds(context.project, program.run, draws, seeds)]
        draws = (each for each in draws if each in inherited or _is_after_an_end(context, seeds, each))
    draw = first_own_draw(context, program, family, draws)
    return None if draw is not None and may_seed_unseen(context.project, program.run) else draw


def _is_after_an_end(context: Context, seeds: Iterable[Seed], draw: Draw) -> bool:
    """Whether all seeds stand in branches that end before the draw: ``if args.show: torch.manual_seed(0); show(); exit()``."""
    return all(
        each.order < draw.order and ends_before(context.project, each.trace_event, draw.trace_event) for each in seeds
    )


def first_own_draw(
    context: Context, program: Program, family: Family, among: Iterable[Draw] | None = None
) -> Draw | None:
    """The first draw of a family in a relevant run, if this entry point is the one to report it; else None.

    ``among``: only these draws are considered.
    """
    effects = program.effects
    if not effects.results or not effects.acts or effects.unknown_seeder:
        return None
    draws = without_seed_draws(effects.draws.get(family.key, ()) if among is None else among, effects.optional)
    own = (
        each
        for each in draws
        if not is_attributed_elsewhere(context.project, program.entry, each.trace_event, family.key)
        and not _replaces_missing_seed(context, each.trace_event)
    )
    draw = first_feasible_draw(context.project, program.run, own)
    return draw if draw is not None and is_relevant(context.project, program) else None


def _replaces_missing_seed(context: Context, draw: TraceEvent) -> bool:
    """Whether a draw only makes a seed where the tested one is missing: ``if args.seed is None: args.seed = randint(0, 99)``. TRL107
    says so where it is missing by default.
    """
    statement, call = draw.event.statement, draw.event.value
    if not isinstance(statement, Assign) or not isinstance(call, Call):
        return False
    tested = [each for guard in uncertain_guards(draw.event.guards) for each in subexpressions(guard.value)]
    is_tested = any(is_same_reference(each, target) for each in tested for target in statement.targets)
    return is_tested and becomes_seed(context.project, draw.path, call)
