"""What a name in torch's run-time errors means: which calls end there, in which torch, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from torchrepro_lint.alternatives import instead
from torchrepro_lint.catalogue import load
from torchrepro_lint.entries import Condition, ErrorName, Row, Spelling, compatible
from torchrepro_lint.messages import ATTENTION, CUBLAS
from torchrepro_lint.source.files import documented_versions, release
from torchrepro_lint.tables import error_names, spellings

_PRODUCTS = ("torch.mm", "torch.mv", "torch.bmm")
_SETTLED = ("deterministic", "none")
_SPECIAL = (
    ErrorName(CUBLAS, "1.7", "2.9", _PRODUCTS, _PRODUCTS, ("cuda",), "forward", (), "binaries; torch's own message"),
    ErrorName(
        ATTENTION,
        "2.1",
        None,
        ("torch.nn.functional.scaled_dot_product_attention",),
        ("torch.nn.functional.scaled_dot_product_attention",),
        ("cuda",),
        "backward",
        (),
        "torch's source; its message",
    ),
)


class Explanation(NamedTuple):
    """What is known of an error name.

    ``releases`` have it; ``read_as`` is the target, or the nearest release in which public calls end there, and all that
    follows is of that release: the ``rows`` that end there, the public ``calls``, and what to write ``instead`` of an
    operation. Where no call is known to end there with the flag on, ``reached`` is false and the rows are those of its
    operations. ``settled`` are operations and the later release that has them deterministic.
    """

    name: str
    meant: tuple[ErrorName, ...]
    releases: tuple[str, ...]
    read_as: str
    reached: bool
    rows: tuple[Row, ...]
    calls: tuple[str, ...]
    instead: tuple[tuple[str, str], ...]
    settled: tuple[tuple[str, str], ...]


def explain(name: str, target: str) -> Explanation:
    """Explain a name of the catalogue for a torch release of the catalogue."""
    meant = tuple(one for one in (*error_names(), *_SPECIAL) if one.name == name)
    releases = tuple(one for one in documented_versions() if _lives(meant, one))
    raising = [one for one in releases if _ending(meant, one)]
    read_as = min(raising or releases, key=lambda one: _away(one, target))
    rows = _ending(meant, read_as) or _touched(meant, read_as)
    newest = max(target, read_as, key=release)
    advice = [(row.operation, write) for row in rows for write in instead(row, newest)]
    settled = [
        (row.operation, since) for row in rows if row.behaviour not in _SETTLED and (since := _settled(row, read_as))
    ]
    return Explanation(
        name,
        meant,
        releases,
        read_as,
        bool(raising),
        rows,
        _calls(meant, rows),
        tuple(dict.fromkeys(advice)),
        tuple(dict.fromkeys(settled)),
    )


def orphans(meant: Iterable[ErrorName]) -> tuple[str, ...]:
    """The public calls of an error that are no operation of the catalogue."""
    known = {one.name for ones in spellings().values() for one in ones}
    return tuple(sorted({call for one in meant for call in one.calls} - known))


def _ending(meant: Iterable[ErrorName], version: str) -> tuple[Row, ...]:
    """The rows of operations that end in the error in a release, each under its operation's own name."""
    rows = (
        (one.name, row) for one in meant for operation in one.operations for row in load(version).operation(operation)
    )
    return tuple(dict.fromkeys(row for name, row in rows if _ends(row, name, version)))


def _ends(row: Row, name: str, version: str) -> bool:
    if name == CUBLAS:
        return row.behaviour == "raises" and any(one.of == f"program.{CUBLAS}" for one in row.when)
    if name == ATTENTION:
        return row.behaviour == "warns"
    return row.behaviour == "raises" and name in load(version).errors(row)


def _touched(meant: Iterable[ErrorName], version: str) -> tuple[Row, ...]:
    """The rows of the operations whose kernel has the name, whatever they do."""
    rows = ((one, row) for one in meant for operation in one.operations for row in load(version).operation(operation))
    return tuple(dict.fromkeys(row for one, row in rows if row.phase == one.phase and compatible(one.when, row.when)))


def _lives(meant: Iterable[ErrorName], version: str) -> bool:
    at = release(version)
    return any(release(one.since) <= at and (one.until is None or at <= release(one.until)) for one in meant)


def _away(version: str, target: str) -> tuple[int, bool]:
    """How many releases lie between; of two, the older one counts as nearer."""
    every = documented_versions()
    distance = every.index(version) - every.index(target)
    return abs(distance), distance > 0


def _calls(meant: tuple[ErrorName, ...], rows: tuple[Row, ...]) -> tuple[str, ...]:
    found = {one.name for row in rows for one in spellings()[row.operation] if _may_be(one, row.when)}
    return tuple(sorted({*found, *orphans(meant)}))


def _may_be(one: Spelling, when: Iterable[Condition]) -> bool:
    """Whether a spelling can be a case at all: ``F.conv2d`` never pads by reflection."""
    fixed = {of: value for of, value in one.defaults if of not in (*one.parameters, *one.keywords)}
    said = tuple(Condition(of, "one_of", (value,)) for of, value in fixed.items())
    return compatible((*said, *one.when), when)


def _settled(row: Row, version: str) -> str | None:
    """The first later release in which all cases that this row may be are deterministic, if that stays so."""
    since = None
    for later in documented_versions()[documented_versions().index(version) + 1 :]:
        same = [one for one in load(later).operation(row.operation) if _same(one, row)]
        fine = bool(same) and all(one.behaviour in _SETTLED for one in same)
        since = (since or later) if fine else None
    return since


def _same(one: Row, row: Row) -> bool:
    meet = bool(set(one.devices) & set(row.devices)) or "any" in (*one.devices, *row.devices)
    return meet and one.phase == row.phase and compatible(one.when, row.when)
