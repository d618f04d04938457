"""TRL205: deterministic algorithms are on, and cuBLAS has no workspace of a fixed size to be deterministic in."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN
from torchrepro_lint.catalogue.rows import NOT_NEEDED_SINCE, VALUES, VARIABLE
from torchrepro_lint.checks.fixes.switches import fix_workspace
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import spoken
from torchrepro_lint.domain.determinism_mode import first_work, set_in
from torchrepro_lint.domain.flag_effects import VARIABLE_TOUCH as A_VARIABLE
from torchrepro_lint.domain.flags import DETERMINISTIC, WARN, is_off
from torchrepro_lint.domain.operations.reached import device_of
from torchrepro_lint.source.files import release
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.contexts import first_line, place_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import Touch
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context

_CODE = "TRL205"
_SETTING = f'os.environ["{VARIABLE}"] = ":4096:8"'
_WARNS_SINCE = (1, 13)
_ALIKE = 0.8


def check(context: Context) -> Iterator[Finding]:
    """What each program on CUDA that enables deterministic algorithms lacks, or does in vain, in this module."""
    if release(context.catalogue.version) >= NOT_NEEDED_SINCE:
        return
    for program in context.project.programs_in(context.path):
        yield from _of_program(context, program)


def _of_program(context: Context, program: Program) -> Iterator[Finding]:
    enabling = next(_enabling(context, program), None)
    if enabling is None or device_of(context, program) != "cuda":
        return
    found = [touch for touch in set_in(context.project, program, VARIABLE) if touch.value is not None]
    good = [touch for touch in found if touch.value is OPEN or touch.value in VALUES]
    work = first_work(context.project, program)
    if good and (work is None or good[0].order < work[0]):
        return
    severity = "warning" if _warns(context, enabling) else ""
    for at, message in _messages(context, program, enabling, found, good):
        if at.happening.path == context.path:
            value = at.happening.event.value
            place = span(value) if at is enabling and value is not None else None
            place = place or first_line(context.lines, at.happening.event.statement)
            late = at.happening.event.statement if good else None
            fix = fix_workspace(context.project, context.path, program, at.given if found and not good else None, late)
            yield Finding(_CODE, place, message, fix, severity=severity)


def _enabling(context: Context, program: Program) -> Iterator[Touch]:
    """The calls that enable them; of libraries' only those that certainly do."""
    for touch in set_in(context.project, program, DETERMINISTIC):
        if not is_off(touch.value) and (touch.value is not OPEN or touch.given is not None):
            yield touch


def _messages(
    context: Context, program: Program, enabling: Touch, found: list[Touch], good: list[Touch]
) -> Iterator[tuple[Touch, str]]:
    if good:
        work = first_work(context.project, program)
        begun = place_of(context.project, work[1], context.path) if work else ""
        yield (
            good[0],
            f"{VARIABLE} is set after work on CUDA has begun ({begun}), and cuBLAS reads it then; set it first",
        )
    elif found:
        for each in found:
            value = f'"{each.value}"' if isinstance(each.value, str) else spoken(each.given)
            told = f"{VARIABLE} = {value} does not make cuBLAS deterministic"
            yield each, f'{told}; torch accepts ":4096:8" and ":16:8"'
    elif misspelt := _misspelt(context, program):
        yield misspelt, f"nothing reads {misspelt.what}; deterministic algorithms need {_SETTING}"
    else:
        missing = f"deterministic algorithms are enabled and {VARIABLE} is set nowhere, so torch"
        yield (
            enabling,
            f"{missing} {context.catalogue.version} {_consequence(context, enabling)}; write {_SETTING} first",
        )


def _consequence(context: Context, enabling: Touch) -> str:
    return "only warns of cuBLAS" if _warns(context, enabling) else "raises at the first product of matrices on CUDA"


def _warns(context: Context, enabling: Touch) -> bool:
    """Before 1.13 torch raised here under ``warn_only``, too."""
    return enabling.value == WARN and release(context.catalogue.version) >= _WARNS_SINCE


def _misspelt(context: Context, program: Program) -> Touch | None:
    for touch in context.project.switching(program):
        if touch.kind == A_VARIABLE and difflib.SequenceMatcher(None, touch.what.upper(), VARIABLE).ratio() > _ALIKE:
            return touch
    return None
