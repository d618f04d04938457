"""The calls of a project that torch's releases treat differently, and what another release would change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import Catalogue, load, spellings
from torchrepro_lint.catalogue.release_history import STATUSES, ranges
from torchrepro_lint.domain.operations.cases import Case, cases
from torchrepro_lint.interfaces.overview.records import Place, Shift, Use
from torchrepro_lint.source.files import documented_versions

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.domain.project import Context

_SEVERITY = tuple(STATUSES)
# What no setting helps; of several cases that may hold, the rules speak of these first.
_INCURABLE = ("raises", "silent", "warns")


class _Call(NamedTuple):
    """A call: its file, its place in it, and the operation that it is."""

    path: str
    start: int
    operation: str


class _Only(Catalogue):
    """The catalogue of a release, as if it spoke of some operations only."""

    def __init__(self, whole: Catalogue, operations: frozenset[str]) -> None:
        super().__init__(whole.version)
        self._whole = whole
        self._operations = operations

    def operation(self, name: str) -> tuple[Row, ...]:
        rows = self._whole.operation(name)
        return rows if rows and rows[0].operation in self._operations else ()


def uses(contexts: Sequence[Context], prefix: str) -> tuple[Use, ...]:
    """What the calls in some files do, release by release; those that no release says anything of are left out.

    ``prefix`` is what paths begin with. Worst first, in the target torch.
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


def shifts(found: Iterable[Use], target: str) -> tuple[Shift, ...]:
    """What another torch than the target would do to these calls, with neighbouring releases that do the same together."""
    every = documented_versions()
    changes: dict[str, Counter[tuple[str, str]]] = {version: Counter() for version in every}
    for use in found:
        for version, behaviour in zip(every, use.releases, strict=True):
            if behaviour[1] != use.status:
                changes[version][use.status, behaviour[1]] += len(use.places)
    runs = ((said, list(run)) for said, run in groupby(every, key=lambda each: changes[each]))
    return tuple(
        Shift(target, ranges(run), tuple((*pair, number) for pair, number in sorted(said.items(), key=_by_weight)))
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
) -> Use:
    lines = {context.path: context.lines for context in contexts}
    every = documented_versions()
    places = sorted(Place(prefix + call.path, *lines[call.path].place(call.start)) for call in calls)
    return Use(
        operation, target, behaviours[every.index(target)], tuple(zip(every, behaviours, strict=True)), tuple(places)
    )


def _behaviours(contexts: Sequence[Context]) -> dict[_Call, tuple[str, ...]]:
    """For each call what it does in each release, empty where nothing is known; only where there is anything to tell.

    Only what differs from the release before is worked out again: most releases change little.
    """
    every = documented_versions()
    found: dict[_Call, dict[str, str]] = defaultdict(dict)
    for before, version in zip((None, *every), every, strict=False):
        changed = _changed(before, version)
        for call, known in found.items():
            if call.operation not in changed and before in known:
                known[version] = known[before]
        catalogue = _Only(load(version), changed)
        for context in contexts if changed else ():
            for call, behaviour in _worst(context.path, cases(context._replace(catalogue=catalogue))):
                found[call][version] = behaviour
    told = {call: tuple(known.get(version, "") for version in every) for call, known in found.items()}
    return {call: behaviours for call, behaviours in told.items() if set(behaviours) - {"", "none", "fills"}}


@lru_cache(maxsize=64)
def _changed(before: str | None, version: str) -> frozenset[str]:
    """The operations of which a release says something else than the one before it."""
    return frozenset(name for name in spellings() if _said(before, name) != _said(version, name))


def _said(version: str | None, operation: str) -> list[tuple[object, ...]]:
    return [row[1:5] for row in load(version).operation(operation)] if version else []


def _worst(path: str, found: Iterable[Case]) -> Iterator[tuple[_Call, str]]:
    """What each call does, as the rules take it: first what no setting helps, then what holds for sure."""
    for _, group in groupby(found, key=lambda case: (case.site.call.start, case.site.call.end)):
        case = min(
            group,
            key=lambda each: (each.row.behaviour not in _INCURABLE, -each.truth, _rank(each.row.behaviour)),
        )
        yield _Call(path, case.site.call.start, case.row.operation), case.row.behaviour
