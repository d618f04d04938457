"""Lookup of torch's determinism errors: a parser of messages, warnings and tracebacks, and what each error name means.

An explanation says which calls end in the error in which torch release, and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from torchrepro_lint.catalogue.catalogue import alternatives_for, error_names, load, signatures
from torchrepro_lint.catalogue.rows import Condition, ErrorName, OperationRow, Signature, compatible
from torchrepro_lint.source.files import documented_versions, release
from torchrepro_lint.source.patterns import lazy_pattern, wildcard_expression
from torchrepro_lint.syntax.nodes import Record

_NOT_DETERMINISTIC = lazy_pattern(r"(?<!\s)\s+does\s+not\s+have\s+a\s+deterministic\s+implementation")
_TYPE = lazy_pattern(r"^.*\b\w*(?:Error|Warning):\s*")
_FRAME = lazy_pattern(r'^[ \t]*File "(?P<file>[^"]+)", line (?P<row>\d+)', re.MULTILINE)

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
ATTENTION = "attention under warn_only"
# Messages without a kernel name, and the names used for them here.
_OTHER_MESSAGES = (
    (lazy_pattern(r"\buses CuBLAS\b|\bCUBLAS_WORKSPACE_CONFIG\b"), CUBLAS),
    (lazy_pattern(r"\battention\s+defaults\s+to\s+a\s+non-?deterministic", re.IGNORECASE), ATTENTION),
)


class Frame(Record, frozen=True):
    """A line of a traceback: the file as it was printed, and the row from 1."""

    file: str
    row: int


class ParsedErrors(NamedTuple):
    """The errors in a text: each name once, in order; ``unknown`` are names that the catalogue lacks."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]
    frames: tuple[Frame, ...]


def parse_errors(text: str) -> ParsedErrors:
    """Parse the determinism errors in a text. A text without torch's wording may be a bare name."""
    found = [*_error_names_in(text)] or [_bare_name(text.strip())]
    known = dict.fromkeys(name for name, is_known in found if is_known)
    unknown = dict.fromkeys(name for name, is_known in found if not is_known)
    frames = (Frame(match["file"], int(match["row"])) for match in _FRAME.finditer(text))
    return ParsedErrors(tuple(known), tuple(unknown), tuple(dict.fromkeys(frames)))


def known_error_name(text: str) -> str | None:
    """The longest error name of the catalogue that ends a text; names that torch composes at run time match by pattern."""
    return next((name for name, pattern in _patterns() if pattern.search(text)), None)


def _error_names_in(text: str) -> Iterator[tuple[str, bool]]:
    for phrase in _NOT_DETERMINISTIC.finditer(text):
        before = text[: phrase.start()]
        name = known_error_name(before)
        yield (_last_words(before), False) if name is None else (name, True)
    for pattern, name in _OTHER_MESSAGES:
        if pattern.search(text):
            yield name, True


def _last_words(before: str) -> str:
    """A substitute for an unknown name: the rest of the line after the error's type."""
    return _TYPE.sub("", before.splitlines()[-1]).strip() if before.strip() else ""


def _bare_name(text: str) -> tuple[str, bool]:
    if text == ATTENTION:
        return text, True
    line = text.splitlines()[-1].strip() if text else ""
    name = known_error_name(line)
    return (name, True) if name is not None and _is_all(name, line) else (line, False)


def _is_all(name: str, line: str) -> bool:
    """Whether a line is the name alone, or after the error's type."""
    return any(
        one == name and re.fullmatch(r"(\w*(Error|Warning):\s*)?" + body, line) for one, body in _name_expressions()
    )


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rf"(?<![\w.]){body}$")) for name, body in _name_expressions())


@lru_cache(maxsize=1)
def _name_expressions() -> tuple[tuple[str, str], ...]:
    """Each name with a regular expression for it; names that are patterns come last."""
    names = sorted(
        {error.name for error in error_names()}, key=lambda name: ("{" in name or "<" in name, -len(name), name)
    )
    return tuple((name, _expression(name)) for name in names)


def _expression(name: str) -> str:
    """A regular expression for a name: ``{}`` is one word; a name in angle brackets says how the name begins."""
    itself = r"\s+".join(map(re.escape, name.split()))
    if "{}" in name:
        return f"(?:{itself}|{re.escape(name).replace(re.escape('{}'), '[a-z0-9]+')})"
    if name.startswith("<"):
        first, second, *_ = name[1:].replace(",", " ").split()
        begun = wildcard_expression(f"{first}*{second}*", r"\w*", count())
        return f"(?:{itself}|{begun})"
    return itself


_PRODUCTS = ("torch.mm", "torch.mv", "torch.bmm")
_ATTENTION = ("torch.nn.functional.scaled_dot_product_attention",)
_DETERMINISTIC = ("deterministic", "none")
_UNNAMED_ERRORS = (
    ErrorName(CUBLAS, "1.7", _PRODUCTS, _PRODUCTS, ("cuda",), "forward", "binaries; torch's own message", "2.9"),
    ErrorName(ATTENTION, "2.1", _ATTENTION, _ATTENTION, ("cuda",), "backward", "torch's source; its message"),
)


class Explanation(Record, frozen=True):
    """The explanation of an error name.

    ``releases`` have it. ``read_as`` is the target, or the nearest release in which public calls raise it, and the rest is of
    that release: the ``rows`` that raise it, the public ``calls``, and what to write ``instead`` of an operation. If no call
    is known to raise it with the flag on, ``reached`` is false and the rows are those of its operations. ``settled`` are
    operations and the later release in which they are deterministic.
    """

    name: str
    meant: tuple[ErrorName, ...]
    releases: tuple[str, ...]
    read_as: str
    reached: bool
    rows: tuple[OperationRow, ...]
    calls: tuple[str, ...]
    instead: tuple[tuple[str, str], ...]
    settled: tuple[tuple[str, str], ...]


def explain(name: str, target: str) -> Explanation:
    """Explain an error name for a torch release; both must be in the catalogue."""
    meant = tuple(one for one in (*error_names(), *_UNNAMED_ERRORS) if one.name == name)
    releases = tuple(one for one in documented_versions() if _exists_in(meant, one))
    raising = [one for one in releases if _raising_rows(meant, one)]
    read_as = min(raising or releases, key=lambda one: _release_distance(one, target))
    rows = _raising_rows(meant, read_as) or _kernel_rows(meant, read_as)
    newest = max(target, read_as, key=release)
    advice = [(row.operation, write) for row in rows for write in alternatives_for(row, newest)]
    settled = [
        (row.operation, since)
        for row in rows
        if row.behaviour not in _DETERMINISTIC and (since := deterministic_since(row, read_as))
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


def uncatalogued_calls(meant: Iterable[ErrorName]) -> tuple[str, ...]:
    """The public calls of an error that are no operations of the catalogue, sorted."""
    known = {one.name for ones in signatures().values() for one in ones}
    return tuple(sorted({call for one in meant for call in one.calls} - known))


def _raising_rows(meant: Iterable[ErrorName], version: str) -> tuple[OperationRow, ...]:
    """The rows of operations that raise the error in a release, each under its operation's own name."""
    rows = (
        (one.name, row) for one in meant for operation in one.operations for row in load(version).operation(operation)
    )
    return tuple(dict.fromkeys(row for name, row in rows if _raises(row, name, version)))


def _raises(row: OperationRow, name: str, version: str) -> bool:
    if name == CUBLAS:
        return row.behaviour == "raises" and any(one.of == f"program.{CUBLAS}" for one in row.when)
    if name == ATTENTION:
        return row.behaviour == "warns"
    return row.behaviour == "raises" and name in load(version).errors(row)


def _kernel_rows(meant: Iterable[ErrorName], version: str) -> tuple[OperationRow, ...]:
    """The rows of the operations whose kernel has the name, whether they raise or not."""
    rows = ((one, row) for one in meant for operation in one.operations for row in load(version).operation(operation))
    return tuple(dict.fromkeys(row for one, row in rows if row.phase == one.phase and compatible(one.when, row.when)))


def _exists_in(meant: Iterable[ErrorName], version: str) -> bool:
    at = release(version)
    return any(release(one.since) <= at and (one.until is None or at <= release(one.until)) for one in meant)


def _release_distance(version: str, target: str) -> tuple[int, bool]:
    """The distance of two releases, as a sort key; of two equal ones the older release is nearer."""
    every = documented_versions()
    distance = every.index(version) - every.index(target)
    return abs(distance), distance > 0


def _calls(meant: tuple[ErrorName, ...], rows: tuple[OperationRow, ...]) -> tuple[str, ...]:
    found = {one.name for row in rows for one in signatures()[row.operation] if _may_be_case(one, row.when)}
    return tuple(sorted({*found, *uncatalogued_calls(meant)}))


def _may_be_case(one: Signature, when: Iterable[Condition]) -> bool:
    """Whether a call with this signature can meet a row's conditions: ``F.conv2d`` never pads by reflection."""
    fixed = {of: value for of, value in one.defaults if of not in (*one.parameters, *one.keywords)}
    said = tuple(Condition(of, "one_of", (value,)) for of, value in fixed.items())
    return compatible((*said, *one.when), when)


@lru_cache(maxsize=64)
def deterministic_since(row: OperationRow, version: str) -> str | None:
    """The first release after ``version`` from which on all rows for this case are deterministic."""
    since = None
    for later in documented_versions()[documented_versions().index(version) + 1 :]:
        same = [one for one in load(later).operation(row.operation) if _is_same_case(one, row)]
        fine = bool(same) and all(one.behaviour in _DETERMINISTIC for one in same)
        since = (since or later) if fine else None
    return since


def _is_same_case(one: OperationRow, row: OperationRow) -> bool:
    meet = bool(set(one.devices) & set(row.devices)) or "any" in (*one.devices, *row.devices)
    return meet and one.phase == row.phase and compatible(one.when, row.when)
