"""Assignment of one rule to each matched operation, so that one cause gives one finding.

Also here: the calls that switch deterministic mode, and whether strict mode would stop a program that turned it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from torchrepro_lint.catalogue.conditions import Truth
from torchrepro_lint.catalogue.rows import OperationRow
from torchrepro_lint.domain.determinism_mode import programs_reaching_or_importing
from torchrepro_lint.domain.flags import DEBUG_MODE
from torchrepro_lint.domain.operations.cases import Case, call_cases, subscript_cases
from torchrepro_lint.domain.operations.subscripts import subscript_rows
from torchrepro_lint.domain.programs import Program
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.nodes import Arg, Constant, Record
from torchrepro_lint.syntax.qualified_names import path_of
from torchrepro_lint.trace.traces import Context, Traces

# TRL401 reports it, for every torch.
_INDEX_SELECT = "torch.index_select"
_PRECEDENCE = ("TRL402", "TRL404", "TRL403", "TRL406")


class Verdict(NamedTuple):
    """The case of a call that is reported, with the code of the rule that reports it."""

    code: str
    case: Case


def verdicts(context: Context, *, ties: bool = False, code: str = "") -> tuple[Verdict, ...]:
    """The verdicts on the calls of the module under check, in the order of the text; at most one for each call. Those on subscripts
    follow; they take longer, and are left out where none of them can be for ``code``.

    TRL406 gets verdicts only with ``ties``; the verdicts of other rules are the same either way.
    """
    found = _known(context, call_cases, ties)
    if not code or any(_reporting_rule(row) == code for row in subscript_rows(context)):
        found += _known(context, subscript_cases, ties)
    return found


def _known(context: Context, part: Callable[..., Iterator[Case]], ties: bool) -> tuple[Verdict, ...]:
    return _verdicts_in(context, context.path, part, ties)


@query()
def _verdicts_in(context: Context, _path: str, part: Callable[..., Iterator[Case]], ties: bool) -> tuple[Verdict, ...]:
    return tuple(_verdicts(part(context, spoken=_has_rule if ties else _has_rule_but_ties)))


def verdicts_of(context: Context, paths: Iterable[str]) -> Iterator[tuple[str, Verdict]]:
    """The verdicts on other modules of the project, each with its path."""
    for path in paths:
        other = context._replace(path=path, tree=context.project.files[path])
        yield from ((path, each) for each in verdicts(other))


def _verdicts(found: Iterable[Case]) -> Iterator[Verdict]:
    for _, group in groupby(found, key=lambda case: (case.site.call.start, case.site.call.end)):
        judged = [Verdict(code, case) for case in group if (code := reporting_rule(case))]
        if judged:
            yield min(judged, key=_rank)


def reporting_rule(case: Case) -> str:
    """The code of the rule that reports a case, ``TRL402``; empty where none does, or where TRL401 does."""
    return _reporting_rule(case.row)


def _reporting_rule(row: OperationRow) -> str:
    match row.behaviour:
        case _ if row.operation == _INDEX_SELECT:
            return ""
        case "raises":
            return "TRL402" if row.listed else "TRL404"
        case "silent" | "warns":
            return "TRL404"
        case "deterministic":
            return "TRL403"
        case "ties":
            return "TRL406"
    return ""


def _has_rule(row: OperationRow) -> bool:
    return _reporting_rule(row) != ""


def _has_rule_but_ties(row: OperationRow) -> bool:
    """Whether a rule other than TRL406 reports a row. TRL406 is off by default and yields to every other rule."""
    return _reporting_rule(row) not in ("", "TRL406")


def _rank(verdict: Verdict) -> tuple[bool, int, int]:
    """What no setting makes deterministic comes first, then what certainly holds."""
    incurable = verdict.code in _PRECEDENCE[:2]
    return not incurable, Truth.HOLDS - verdict.case.truth, 0 if incurable else _PRECEDENCE.index(verdict.code)


USE_DETERMINISTIC = "torch.use_deterministic_algorithms"
SET_DETERMINISTIC = "torch.set_deterministic"


class ModeSwitch(Record, frozen=True):
    """A call that switches deterministic mode: ``mode`` and ``warn_only`` are arguments (None: left out); ``hidden``: a
    star argument may pass them.
    """

    site: CallSite
    name: str
    mode: Arg | None
    warn_only: Arg | None
    hidden: bool


def mode_switches(project: Traces, path: str) -> Iterator[ModeSwitch]:
    """The switches of a module, in the order of the text."""
    for site in project.calls(path):
        name = next((each for each in site.names if each in (USE_DETERMINISTIC, SET_DETERMINISTIC, DEBUG_MODE)), None)
        if name is not None:
            # The parameter was called `d` before torch 1.9.
            words = ("mode", "d", "debug_mode")
            given = passing_argument(site.call, 0, *words), passing_argument(site.call, None, "warn_only")
            mode, warn_only = (None if arg is None or arg.star else arg for arg in given)
            yield ModeSwitch(site, name, mode, warn_only, any(arg is not None and arg.star for arg in given))


def only_warns(switch: ModeSwitch) -> bool:
    """Whether a switch passes ``warn_only=True``, and its mode is not known to be false."""
    return is_constant(switch.warn_only, True) and not is_constant(switch.mode, False)


def is_constant(arg: Arg | None, value: object) -> bool:
    """Whether an argument is this literal, of the same type: 0 is not ``False``."""
    if arg is None or not isinstance(arg.value, Constant):
        return False
    return type(arg.value.value) is type(value) and arg.value.value == value


def strict_mode_would_stop(context: Context, function: str) -> bool:
    """Whether strict mode would raise in the programs of a function; without programs, anywhere in the project."""
    programs = programs_reaching_or_importing(context.project, function)
    if not programs:
        return any(
            each.case.row.behaviour == "raises" for _, each in verdicts_of(context, sorted(context.project.files))
        )
    return any(_reaches_raising_operation(context, program) for program in programs)


def _reaches_raising_operation(context: Context, program: Program) -> bool:
    reached = program.run.functions
    paths = sorted({path_of(function) for function in reached})
    return any(
        each.case.row.behaviour == "raises" and each.case.site.function in reached
        for _, each in verdicts_of(context, paths)
    )


def warn_only_is_reported(context: Context, function: str) -> bool:
    """Whether a ``warn_only=True`` that the programs of a function reach is itself reported."""
    for program in programs_reaching_or_importing(context.project, function):
        for path in sorted(program.run.paths):
            for switch in mode_switches(context.project, path):
                if only_warns(switch) and switch.site.function in program.run.functions:
                    return not strict_mode_would_stop(context, switch.site.function)
    return False
