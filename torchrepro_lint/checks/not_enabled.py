"""TRL203: a run reaches operations that are nondeterministic by default, and does not enable deterministic algorithms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.checks.uninitialised import unfilled_memory_of_torch
from torchrepro_lint.checks.uninitialised_data import FILLS_SINCE, keeps_memory
from torchrepro_lint.domain.determinism_mode import flag_writes_in, sets_flag
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC, DETERMINISTIC
from torchrepro_lint.domain.operations.gaps import first_gap
from torchrepro_lint.domain.operations.reached_operations import (
    ReachedOperation,
    first_of_each,
    is_convolution,
    operations_needing_mode,
    operations_raising,
    reachable,
    why_not_strict,
)
from torchrepro_lint.domain.programs import Program, is_attributed_elsewhere, is_relevant, programs_of
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Message, NoFix, Reference
from torchrepro_lint.syntax.nodes import Constant
from torchrepro_lint.syntax.qualified_names import module_symbol
from torchrepro_lint.syntax.scopes import function_at
from torchrepro_lint.trace.call_paths import call_path, entry_statement, first_line, place_of, reached_at
from torchrepro_lint.trace.traces import Context, Traces

_CODE = "TRL203"
_FLAG = "torch.use_deterministic_algorithms(True)"


def check(context: Context) -> Iterator[Finding]:
    """One finding for each entry point, where it reaches the first such operation."""
    for program in programs_of(context.project, context.path):
        effects = program.effects
        if effects.results and effects.acts and not effects.may_set_flags:
            yield from _of_program(context, program)


def _of_program(context: Context, program: Program) -> Iterator[Finding]:
    project = context.project
    if sets_flag(project, program):
        return
    cudnn = sets_flag(project, program, CUDNN_DETERMINISTIC)
    needing = (each for each in operations_needing_mode(context, program) if not (cudnn and is_convolution(each.row)))
    found = first_of_each(context, program, needing)
    only_convolutions = all(is_convolution(each.row) for each in found)
    events = [each.trace_event for each in found]
    own = (
        each for each in found if not is_attributed_elsewhere(project, program.entry, each.trace_event, among=events)
    )
    first = next(own, None)
    if first is not None and is_relevant(project, program):
        from torchrepro_lint.checks.fixes.switches import fix_enabling

        where = reached_at(project, program.entry, first.trace_event)
        message = Message(*_cause(first, where, found), "; ", _cure(context, program, only_convolutions))
        statement = entry_statement(program.entry, first.trace_event)
        steps = call_path(project, first.trace_event, f"{_nondeterministic_part(first)} is nondeterministic")
        why_not = why_not_strict(context, program) or _why_off(project, program) or _why_empty(context, program)
        remedy = NoFix(why_not) if why_not else fix_enabling(project, program, first.trace_event, context.catalogue)
        yield Finding(_CODE, first_line(context.lines, statement), message, remedy, steps=steps)


def _why_off(project: Traces, program: Program) -> str:
    """The call that turns the mode off by what it is passed, ``use_deterministic_algorithms(strict)``: it would overrule one above it."""
    writes = flag_writes_in(project, program, DETERMINISTIC)
    off = next((each for each in writes if not isinstance(each.expression, Constant | None)), None)
    place = "" if off is None else place_of(project, off.trace_event)
    return (
        Message("a call (", place, ") turns deterministic algorithms off by what it is passed; pass True there")
        if off
        else ""
    )


def _why_empty(context: Context, program: Program) -> str:
    """What a program reads of memory that nothing fills: deterministic algorithms fill it with NaN."""
    project, run = context.project, program.run
    fills = release(context.catalogue.version) >= FILLS_SINCE and not keeps_memory(project, program)
    for path in sorted(run.paths) if fills else ():
        tree = project.files[path]
        for finding in unfilled_memory_of_torch(context._replace(path=path, tree=tree)):
            function = function_at(tree, finding.span.start)
            if (path + function.name if function is not None else module_symbol(path)) in run.functions:
                place = Reference(path, project.position(path, finding.span.start).line)
                return Message(
                    "memory that nothing fills is used (", place, "), and deterministic algorithms fill it with NaN"
                )
    return ""


def _cause(first: ReachedOperation, where: str, found: Sequence[ReachedOperation]) -> tuple[str, ...]:
    """``the backward of nn.Embedding (model.py:3) is nondeterministic …``, or the number of operations and the first."""
    count, part = len(found), _nondeterministic_part(first)
    if count == 1:
        return part, where, " is nondeterministic by default"
    return f"{count} operations of this run are nondeterministic by default, first {part}", where


def _nondeterministic_part(operation: ReachedOperation) -> str:
    """The part of an operation that is nondeterministic: ``the backward of nn.Embedding``."""
    return f"the {'backward' if operation.row.phase == 'backward' else 'result'} of {operation.label}"


def _cure(context: Context, program: Program, only_convolutions: bool) -> str:
    stop = next(reachable(context, program, operations_raising(context, program)), None)
    if stop is not None:
        place = place_of(context.project, stop.trace_event)
        return Message(f"{_FLAG} would raise an error at {stop.label} (", place, "), so replace that first")
    gap = first_gap(context.project, program)
    if gap:
        return Message(gap, f", so check it before you call {_FLAG}")
    from torchrepro_lint.checks.fixes.switches import trainer_switch

    trainer = trainer_switch(program)
    call = f"pass {trainer[1]}=True to the trainer" if trainer else f"call {_FLAG}"
    return f"{call} or set torch.backends.cudnn.deterministic = True" if only_convolutions else call
