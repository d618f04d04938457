"""Uses of operations whose behaviour depends on the torch release, and what another release would change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from torchrepro_lint.catalogue.catalogue import Catalogue, load, signatures
from torchrepro_lint.catalogue.release_history import STATUSES, release_ranges
from torchrepro_lint.catalogue.rows import OperationRow
from torchrepro_lint.domain.operations.cases import Case, cases
from torchrepro_lint.domain.project import Context
from torchrepro_lint.interfaces.overview.records import Location, OperationUse, ReleaseShift
from torchrepro_lint.source.files import documented_versions

_SEVERITY = tuple(STATUSES)
# Behaviours that no setting changes; of several cases that may hold, the rules report these first.
_INCURABLE = ("raises", "silent", "warns")


class _Call(NamedTuple):
    """A call: its file, its offset, and its operation."""

    path: str
    start: int
    operation: str


class _RestrictedCatalogue(Catalogue):
    """The catalogue of a release, restricted to some operations."""

    def __init__(self, whole: Catalogue, operations: frozenset[str]) -> None:
        super().__init__(whole.version)
        self._whole = whole
        self._operations = operations

    def operation(self, name: str) -> tuple[OperationRow, ...]:
        rows = self._whole.operation(name)
        return rows if rows and rows[0].operation in self._operations else ()


def operation_uses(contexts: Sequence[Context], prefix: str) -> tuple[OperationUse, ...]:
    """The behaviour of calls by release, grouped; calls that no release treats as nondeterministic are left out.

    ``prefix`` is what paths begin with. Sorted by the behaviour in the target torch, the worst first.
    """
    if not contexts:
        return ()
    told = _behaviours(contexts)
    groups: dict[tuple[str, tuple[str, ...]], list[_Call]] = defaultdict(list)
    for call, behaviours in told.items():
        groups[call.operation, behaviours].append(call)
    target = contexts[0].catalogue.version
    found = (_use(contexts, prefix, target, *key, calls) for key, calls in groups.items())
    return tuple(sorted(found, key=lambda use: (_rank(use.status), use.operation, use.places)))


def release_shifts(found: Iterable[OperationUse], target: str) -> tuple[ReleaseShift, ...]:
    """How these calls behave in other releases than the target; neighbouring releases with equal changes are merged."""
    every = documented_versions()
    changes: dict[str, Counter[tuple[str, str]]] = {version: Counter() for version in every}
    for use in found:
        for version, behaviour in zip(every, use.releases, strict=True):
            if behaviour[1] != use.status:
                changes[version][use.status, behaviour[1]] += len(use.places)
    runs = ((said, list(run)) for said, run in groupby(every, key=lambda each: changes[each]))
    return tuple(
        ReleaseShift(
            target, release_ranges(run), tuple((*pair, number) for pair, number in sorted(said.items(), key=_by_weight))
        )
        for said, run in runs
        if said
    )


def _by_weight(change: tuple[tuple[str, str], int]) -> tuple[int, int]:
    (before, after), _ = change
    return _rank(after), _rank(before)


def _rank(status: str) -> int:
    return _SEVERITY.index(status) if status else len(_SEVERITY)


def _use(
    contexts: Sequence[Context],
    prefix: str,
    target: str,
    operation: str,
    behaviours: tuple[str, ...],
    calls: list[_Call],
) -> OperationUse:
    lines = {context.path: context.lines for context in contexts}
    every = documented_versions()
    found = (Location(prefix + call.path, *lines[call.path].place(call.start)) for call in calls)
    places = sorted(found, key=lambda place: place.reading_order)
    return OperationUse(
        operation, target, behaviours[every.index(target)], tuple(zip(every, behaviours, strict=True)), tuple(places)
    )


def _behaviours(contexts: Sequence[Context]) -> dict[_Call, tuple[str, ...]]:
    """The behaviour of each call in each release, empty where unknown; only calls that are nondeterministic in some.

    Only operations that differ from the release before are evaluated again: most releases change little.
    """
    every = documented_versions()
    found: dict[_Call, dict[str, str]] = defaultdict(dict)
    for before, version in zip((None, *every), every, strict=False):
        changed = _changed(before, version)
        for call, known in found.items():
            if call.operation not in changed and before in known:
                known[version] = known[before]
        catalogue = _RestrictedCatalogue(load(version), changed)
        for context in contexts if changed else ():
            for call, behaviour in _worst(context.path, cases(context._replace(catalogue=catalogue))):
                found[call][version] = behaviour
    told = {call: tuple(known.get(version, "") for version in every) for call, known in found.items()}
    return {call: behaviours for call, behaviours in told.items() if set(behaviours) - {"", "none", "fills"}}


@lru_cache(maxsize=64)
def _changed(before: str | None, version: str) -> frozenset[str]:
    """The operations whose behaviour changed since the release before."""
    return frozenset(name for name in signatures() if _behaviour_rows(before, name) != _behaviour_rows(version, name))


def _behaviour_rows(version: str | None, operation: str) -> list[tuple[object, ...]]:
    return [row[1:5] for row in load(version).operation(operation)] if version else []


def _worst(path: str, found: Iterable[Case]) -> Iterator[tuple[_Call, str]]:
    """The behaviour of each call as the rules choose it: first what no setting changes, then the most certain."""
    for _, group in groupby(found, key=lambda case: (case.site.call.start, case.site.call.end)):
        case = min(
            group,
            key=lambda each: (each.row.behaviour not in _INCURABLE, -each.truth, _rank(each.row.behaviour)),
        )
        yield _Call(path, case.site.call.start, case.row.operation), case.row.behaviour
