"""TRL205: deterministic algorithms are on, but cuBLAS has no fixed workspace, which it needs to be deterministic."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.catalogue.rows import CUBLAS_NOT_NEEDED_SINCE, CUBLAS_VALUES, CUBLAS_VARIABLE
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.domain.determinism_mode import first_accelerator_computation, flag_writes_in
from torchrepro_lint.domain.flag_effects import VARIABLE_EFFECT as A_VARIABLE
from torchrepro_lint.domain.flag_effects import StateEffect
from torchrepro_lint.domain.flags import DETERMINISTIC, WARN, is_off
from torchrepro_lint.domain.operations.gaps import first_gap
from torchrepro_lint.domain.operations.reached_operations import device_of
from torchrepro_lint.domain.programs import Program, programs_in, state_effects
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Message, NoFix
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.call_paths import first_line, place_of
from torchrepro_lint.trace.traces import Context

_CODE = "TRL205"
_SETTING = f'os.environ["{CUBLAS_VARIABLE}"] = ":4096:8"'
_WARNS_SINCE = (1, 13)
_SIMILARITY = 0.8


def check(context: Context) -> Iterator[Finding]:
    """What is missing or too late, in this module, for each program on CUDA that turns deterministic mode on."""
    if release(context.catalogue.version) >= CUBLAS_NOT_NEEDED_SINCE:
        return
    for program in programs_in(context.project, context.path):
        yield from _of_program(context, program)


def _of_program(context: Context, program: Program) -> Iterator[Finding]:
    enabling = next(_enabling_effects(context, program), None)
    if enabling is None or device_of(context, program) != "cuda":
        return
    found = [effect for effect in flag_writes_in(context.project, program, CUBLAS_VARIABLE) if effect.value is not None]
    good = [effect for effect in found if effect.value is UNKNOWN_VALUE or effect.value in CUBLAS_VALUES]
    work = first_accelerator_computation(context.project, program)
    if good and (work is None or good[0].order <= work[0]):  # a trainer sets it before its own work
        return
    from torchrepro_lint.checks.fixes.switches import fix_workspace

    severity = "warning" if _warns(context, enabling) else ""
    for at, message in _messages(context, program, enabling, found, good):
        if at.trace_event.path == context.path:
            value = at.trace_event.event.value
            place = span(value) if at == enabling and value is not None else None
            place = place or first_line(context.lines, at.trace_event.event.statement)
            late = at.trace_event.event.statement if good else None
            gap = first_gap(context.project, program)
            remedy = (
                NoFix(Message(gap, ", so deterministic algorithms may raise an error there"))
                if gap
                else fix_workspace(
                    context.project, context.path, program, at.expression if found and not good else None, late
                )
            )
            yield Finding(_CODE, place, message, remedy, severity=severity)


def _enabling_effects(context: Context, program: Program) -> Iterator[StateEffect]:
    """The calls that turn deterministic mode on; of libraries only those that certainly do."""
    for effect in flag_writes_in(context.project, program, DETERMINISTIC):
        if not is_off(effect.value) and (effect.value is not UNKNOWN_VALUE or effect.expression is not None):
            yield effect


def _messages(
    context: Context, program: Program, enabling: StateEffect, found: list[StateEffect], good: list[StateEffect]
) -> Iterator[tuple[StateEffect, str]]:
    if good:
        work = first_accelerator_computation(context.project, program)
        begun = (" (", place_of(context.project, work[1]), ")") if work else ()
        yield (
            good[0],
            Message(
                f"{CUBLAS_VARIABLE} is set after CUDA work has begun", *begun, ", so cuBLAS misses it; set it first"
            ),
        )
    elif found:
        for each in found:
            value = f'"{each.value}"' if isinstance(each.value, str) else describe(each.expression)
            told = f"{CUBLAS_VARIABLE} = {value} does not make cuBLAS deterministic"
            yield each, f'{told}; set it to ":4096:8" or ":16:8"'
    elif misspelt := _misspelt(context, program):
        yield (
            misspelt,
            f"nothing reads {misspelt.what}, and deterministic algorithms need {CUBLAS_VARIABLE}; write {_SETTING}",
        )
    else:
        missing = f"deterministic algorithms are on and {CUBLAS_VARIABLE} is not set, so torch"
        yield (
            enabling,
            f"{missing} {context.catalogue.version} {_consequence(context, enabling)}; write {_SETTING} first",
        )


def _consequence(context: Context, enabling: StateEffect) -> str:
    return (
        "only warns about cuBLAS"
        if _warns(context, enabling)
        else "raises an error at the first matrix product on CUDA"
    )


def _warns(context: Context, enabling: StateEffect) -> bool:
    """Before torch 1.13, ``warn_only`` raised here, too."""
    return enabling.value == WARN and release(context.catalogue.version) >= _WARNS_SINCE


def _misspelt(context: Context, program: Program) -> StateEffect | None:
    for effect in state_effects(context.project, program):
        if (
            effect.kind == A_VARIABLE
            and difflib.SequenceMatcher(None, effect.what.upper(), CUBLAS_VARIABLE).ratio() > _SIMILARITY
        ):
            return effect
    return None
