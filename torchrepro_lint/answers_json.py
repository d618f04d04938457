"""The answers of a link as JSON can hold them, for a cache; each with what it was worked out from, as one number."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from torchrepro_lint.domain.programs import reached
from torchrepro_lint.resolve.call_sites import Calls, Mentions, Place
from torchrepro_lint.syntax.nodes import fields
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.trace import Outcome, Outcomes

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Link


def packed(value: Any) -> bytes:
    """What JSON can hold, records as lists, in few bytes."""
    text = json.dumps(value, separators=(",", ":"), check_circular=False, default=fields)
    return zlib.compress(text.encode("ascii"), 1)


def unpacked(data: bytes) -> Any:
    """What was ``packed``."""
    return json.loads(zlib.decompress(data))


class _Kind(NamedTuple):
    """How answers of a type are written and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if type(value) is list else value


def _calls(value: Any) -> Calls:
    told, untold, methods, named = value
    return Calls(_places(told), _places(untold), methods, named)


def _places(of: dict[str, list[Any]]) -> dict[str, tuple[Place, ...]]:
    return {name: tuple([Place(*each) for each in places]) for name, places in of.items()}


_KINDS: dict[str, _Kind] = {
    "bool": _Kind(bool, bool),
    "frozenset": _Kind(sorted, frozenset),
    "Mentions": _Kind(lambda it: [it.paths, sorted(it.words)], lambda it: Mentions(tuple(it[0]), frozenset(it[1]))),
    "tuple": _Kind(list, _tuples),
}


def written(of: Link) -> tuple[list[Any], list[Any]]:
    """The answers of a link and the programs, as ``packed`` takes them; what each was worked out from is one number."""
    answers = [
        [name, type(answer).__name__, _KINDS[type(answer).__name__].write(answer), f"{seen:x}", sorted(words)]
        for name, answer, seen, words in of.answers.known()
        if type(answer).__name__ in _KINDS
    ]
    programs = [
        [entries, [[sorted(each.functions), each.accelerated] for each in found], f"{seen:x}"]
        for entries, found, seen in sorted(of.reached.known(), key=lambda each: each[0][0].path)
    ]
    return answers, programs


def take_up(into: Link, answers: list[Any], programs: list[Any]) -> None:
    """Let a link of files that say the same know what was ``written``."""
    for name, kind, answer, seen, words in answers:
        into.answers.enter(name, _KINDS[kind].read(answer), int(seen, 16), frozenset(words))
    for entries, found, seen in programs:
        key = tuple(Entry(path, function, tuple(before)) for path, function, before in entries)
        into.reached.enter(key, tuple(reached(functions, accelerated=fast) for functions, fast in found), int(seen, 16))


class _Answers(Protocol):
    """Answers by words, as ``Kept`` has them."""

    def known(self) -> Sequence[tuple[str, Any, int]]: ...

    def enter(self, key: str, answer: Any, seen: int, /) -> None: ...


class _Table(NamedTuple):
    """Answers by words: where a link has them, and what makes one of what JSON gave."""

    of: Callable[[Link], _Answers]
    read: Callable[[Any], Any]


# They are read when the first of them is asked for.
TABLES: dict[str, _Table] = {
    "above": _Table(lambda link: link.names.above, tuple),
    "calls": _Table(lambda link: link.calls, _calls),
    "decorated": _Table(lambda link: link.names.registry.decorated, _tuples),
    "imported": _Table(lambda link: link.names.modules.imports, tuple),
    "outcomes": _Table(
        lambda link: Outcomes(link.runs.outcomes),
        lambda it: Outcome(tuple(it[0]), it[1], it[2], tuple(it[3])),
    ),
    "runs": _Table(lambda link: link.names.calls_of.answers, _tuples),
}


def written_table(of: Link, name: str) -> list[Any]:
    """The answers of one of ``TABLES``, as ``packed`` takes them; few differ in what they were worked out from."""
    rows = sorted(TABLES[name].of(of).known(), key=lambda row: row[0])
    seen = {each: number for number, each in enumerate(sorted({seen for _, _, seen in rows}))}
    return [[f"{each:x}" for each in seen], [[word, answer, seen[of]] for word, answer, of in rows]]


def recall(into: Link, name: str, table: Any) -> int:
    """Let a link know what ``written_table`` gave, but for what has changed since; how many answers that are."""
    kept, read = TABLES[name].of(into), TABLES[name].read
    seen = [int(each, 16) for each in table[0]]
    still = [(word, answer, seen[of]) for word, answer, of in table[1] if not seen[of] & into.changed]
    for word, answer, each in still:
        kept.enter(word, read(answer), each)
    return len(still)
