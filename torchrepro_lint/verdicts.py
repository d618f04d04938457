"""Which rule speaks of a call that is a case of catalogued operations: one cause, one finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.catalogue.conditions import Truth
from torchrepro_lint.operations import Case, cases

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.context import Context
    from torchrepro_lint.project import Project

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
