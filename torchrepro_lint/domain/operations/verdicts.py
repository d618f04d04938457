"""Which rule speaks of a call that is a case of catalogued operations: one cause, one finding.

The calls that switch torch's deterministic algorithms, and whether strict mode could be on in a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.catalogue.conditions import Truth
from torchrepro_lint.domain.determinism_mode import programs_of
from torchrepro_lint.domain.operations.cases import Case, cases
from torchrepro_lint.syntax.nodes import Arg, Constant, path_of

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context, Project
    from torchrepro_lint.resolve.program_index import Site


# TRL401 speaks of it, in every torch.
_INDEX_SELECT = "torch.index_select"
_ORDER = ("TRL402", "TRL404", "TRL403", "TRL406")


class Verdict(NamedTuple):
    """A case of a call, the likeliest that some rule reports, and the code of that rule."""

    code: str
    case: Case


def verdicts(context: Context, *, ties: bool = False) -> tuple[Verdict, ...]:
    """The verdicts on the calls of the module under check, in the order of the text; at most one for each call. Those of
    TRL406 are told with ``ties`` alone, and others then too.
    """
    known = _KNOWN.setdefault(context.project, {})
    if (context.path, ties) not in known:
        found = cases(context, spoken=_is_any if ties else _is_other)
        known[context.path, ties] = tuple(_verdicts(found))
    return known[context.path, ties]


_KNOWN: WeakKeyDictionary[Project, dict[tuple[str, bool], tuple[Verdict, ...]]] = WeakKeyDictionary()


def verdicts_of(context: Context, paths: Iterable[str]) -> Iterator[tuple[str, Verdict]]:
    """The verdicts on other modules of the project, each with its path."""
    for path in paths:
        other = context._replace(path=path, facts=context.project.files[path])
        yield from ((path, each) for each in verdicts(other))


def _verdicts(found: Iterable[Case]) -> Iterator[Verdict]:
    for _, group in groupby(found, key=lambda case: (case.site.call.start, case.site.call.end)):
        judged = [Verdict(code, case) for case in group if (code := code_of(case))]
        if judged:
            yield min(judged, key=_rank)


def code_of(case: Case) -> str:
    """The rule that speaks of a case, ``TRL402``; empty where none does, or where it is TRL401's own business."""
    return _code(case.row)


def _code(row: Row) -> str:
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


def _is_any(row: Row) -> bool:
    return _code(row) != ""


def _is_other(row: Row) -> bool:
    """Whether a rule speaks of a row, other than TRL406, which is off by default and says nothing where another does."""
    return _code(row) not in ("", "TRL406")


def _rank(verdict: Verdict) -> tuple[bool, int, int]:
    """What no setting helps comes first, then what holds for sure."""
    incurable = verdict.code in _ORDER[:2]
    return not incurable, Truth.HOLDS - verdict.case.truth, 0 if incurable else _ORDER.index(verdict.code)


MODERN = "torch.use_deterministic_algorithms"
OLD = "torch.set_deterministic"
DEBUG_MODE = "torch.set_deterministic_debug_mode"


class Switch(NamedTuple):
    """A call of ``name``: its arguments ``mode`` and ``warn_only`` (None: left out), and whether a star may give them."""

    site: Site
    name: str
    mode: Arg | None
    warn_only: Arg | None
    hidden: bool


def switches(project: Project, path: str) -> Iterator[Switch]:
    """The switches of a module, in the order of the text."""
    for site in project.calls(path):
        name = next((each for each in site.names if each in (MODERN, OLD, DEBUG_MODE)), None)
        if name is not None:
            args = site.call.args
            positional = next((arg for arg in args[:1] if arg.keyword is None and not arg.star), None)
            given = {arg.keyword: arg for arg in args if arg.keyword}
            # The parameter was called `d` before torch 1.9.
            mode = positional or given.get("mode") or given.get("d") or given.get("debug_mode")
            yield Switch(site, name, mode, given.get("warn_only"), any(arg.star for arg in args))


def only_warns(switch: Switch) -> bool:
    """Whether a switch says ``warn_only=True``, and its mode is not known to be false."""
    return is_constant(switch.warn_only, True) and not is_constant(switch.mode, False)


def is_constant(arg: Arg | None, value: object) -> bool:
    """Whether an argument is one literal: 0 is no ``False`` here, nor 1 ``True``."""
    if arg is None or not isinstance(arg.value, Constant):
        return False
    return type(arg.value.value) is type(value) and arg.value.value == value


def stops_strict_mode(context: Context, function: str) -> bool:
    """Whether the programs of a function reach what strict mode would stop; without programs, the project counts."""
    programs = programs_of(context.project, function)
    if not programs:
        return any(
            each.case.row.behaviour == "raises" for _, each in verdicts_of(context, sorted(context.project.files))
        )
    return any(_reaches_operation(context, program) for program in programs)


def _reaches_operation(context: Context, program: Program) -> bool:
    reached = program.run.functions
    paths = sorted({path_of(function) for function in reached})
    return any(
        each.case.row.behaviour == "raises" and each.case.site.function in reached
        for _, each in verdicts_of(context, paths)
    )


def reported_warning(context: Context, function: str) -> bool:
    """Whether a ``warn_only=True`` that the programs of a function reach is reported where it stands."""
    for program in programs_of(context.project, function):
        for path in sorted(program.run.paths):
            for switch in switches(context.project, path):
                if only_warns(switch) and switch.site.function in program.run.functions:
                    return not stops_strict_mode(context, switch.site.function)
    return False
