"""What becomes of each operation from release to release: the catalogue turned on its side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from torchrepro_lint.alternatives import instead
from torchrepro_lint.catalogue import load
from torchrepro_lint.entries import Condition, Row, Spelling
from torchrepro_lint.source.files import documented_versions
from torchrepro_lint.tables import spellings
from torchrepro_lint.wording import STATUSES

_SEVERITY = tuple(STATUSES)
_FINE = ("deterministic", "fills", "none")
_DASH = "\u2013"


class Case(NamedTuple):
    """What one case of an operation does, in all ``releases`` of a period in which it does that.

    ``errors`` are the names that torch's error may carry and the releases that know them, ``documented`` the releases
    whose documentation says the same, ``instead`` what to write, as of the last of the releases.
    """

    behaviour: str
    devices: tuple[str, ...]
    phase: str
    when: tuple[Condition, ...]
    releases: tuple[str, ...]
    documented: tuple[str, ...]
    errors: tuple[tuple[str, tuple[str, ...]], ...]
    evidence: tuple[str, ...]
    instead: tuple[str, ...]


class Period(NamedTuple):
    """Neighbouring releases in which an operation's cases behave alike; no cases: the catalogue says nothing.

    ``shown`` are the behaviours with the devices that they are of, worst first.
    """

    releases: tuple[str, ...]
    shown: tuple[tuple[str, tuple[str, ...]], ...]
    cases: tuple[Case, ...]


class History(NamedTuple):
    """An operation from the oldest release to the newest."""

    operation: str
    spellings: tuple[Spelling, ...]
    periods: tuple[Period, ...]

    def at(self, release: str) -> Period:
        """The period of a release."""
        return next(period for period in self.periods if release in period.releases)


@lru_cache(maxsize=1)
def histories() -> tuple[History, ...]:
    """The history of every operation of the catalogue, by name without regard to case."""
    return tuple(history(operation) for operation in sorted(spellings(), key=lambda name: (name.lower(), name)))


@lru_cache(maxsize=128)
def history(operation: str) -> History:
    """The history of one operation; ``operation`` is the name of its entry in the catalogue."""
    rows = {version: load(version).operation(operation) for version in documented_versions()}
    runs = groupby(rows, key=lambda version: _shown(rows[version]))
    periods = [(shown, tuple(versions)) for shown, versions in runs]
    return History(
        operation,
        spellings()[operation],
        tuple(Period(versions, shown, _cases({each: rows[each] for each in versions})) for shown, versions in periods),
    )


def _shown(rows: Sequence[Row]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    devices: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        devices[row.behaviour].update(row.devices)
    return tuple((behaviour, tuple(sorted(devices[behaviour]))) for behaviour in _SEVERITY if behaviour in devices)


def _cases(rows: dict[str, tuple[Row, ...]]) -> tuple[Case, ...]:
    """The cases of a period, worst first, else in the order in which they are tried."""
    found: dict[tuple[str, tuple[str, ...], str, tuple[Condition, ...]], list[tuple[str, Row]]] = defaultdict(list)
    for version in reversed(rows):
        for row in rows[version]:
            found[row.behaviour, row.devices, row.phase, row.when].append((version, row))
    cases = [
        Case(
            *key,
            _ordered(rows, (version for version, _ in each)),
            _ordered(rows, (version for version, row in each if row.listed)),
            _errors(rows, each),
            tuple(dict.fromkeys(row.evidence for _, row in each if row.evidence)),
            instead(each[0][1], each[0][0]) if key[0] not in _FINE else (),
        )
        for key, each in found.items()
    ]
    return tuple(sorted(cases, key=lambda case: _SEVERITY.index(case.behaviour)))


def _errors(order: Iterable[str], rows: Iterable[tuple[str, Row]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    known: dict[str, list[str]] = defaultdict(list)
    for version, row in rows:
        if row.behaviour == "raises":
            for name in load(version).errors(row):
                known[name].append(version)
    return tuple((name, _ordered(order, known[name])) for name in sorted(known))


def _ordered(order: Iterable[str], versions: Iterable[str]) -> tuple[str, ...]:
    wanted = set(versions)
    return tuple(version for version in order if version in wanted)


def ranges(versions: Iterable[str]) -> str:
    """Releases as ranges with en dashes: ``1.7-2.0, 2.5``."""
    every = documented_versions()
    places = sorted(every.index(version) for version in versions)
    runs = (list(run) for _, run in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]))
    ends = ((every[run[0][1]], every[run[-1][1]]) for run in runs)
    return ", ".join(first if first == last else f"{first}{_DASH}{last}" for first, last in ends)
