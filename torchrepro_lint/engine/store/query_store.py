"""The answers of a link as JSON can hold them, for a cache; each with what it was worked out from, as one number.

What one run leaves for the next: answers about each part of a project, with what they were worked out from.

The next run takes them up in a link of the files as they were then, which is told of what has changed since (see ``link``).
So an answer is taken over where an editor's server would have kept it, and worked out again where not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from torchrepro_lint.domain.programs import Link, reached
from torchrepro_lint.engine.store.cache import tool_stamp
from torchrepro_lint.resolve.call_sites import Calls, Mentions, Place
from torchrepro_lint.source.files import digest
from torchrepro_lint.syntax.nodes import fields
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.trace import Outcome, Outcomes

if TYPE_CHECKING:
    from torchrepro_lint.engine.checker import Checker
    from torchrepro_lint.engine.read_project import Readings
    from torchrepro_lint.engine.store.cache import Cache
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.syntax.nodes import Facts


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


_NAME = "answers"
# Tables that are large, or seldom asked for, are written by themselves, and anew when so many answers had to be worked out
# again.
_MOST = 40
# Answers that are found by words take less time to work out than to write down.
_BY_WORDS = ("torch", "mentioning ", "holding ")


class Carried:
    """What the last run worked out about the parts of a project, and what is left for the next."""

    def __init__(self, checker: Checker, readings: Readings, cache: Cache) -> None:
        self._checker = checker
        self._readings = readings
        self._cache = cache
        self._parts: dict[Sequence[str], _Part] = {}

    def link(self, facts: Mapping[str, Facts], tree: ModuleTree) -> Link:
        """The link of a part, ``tree`` being that of the whole project."""
        paths = tuple(facts)
        own = self._readings._replace(digests={path: self._readings.digests[path] for path in paths})
        part = self._parts[paths] = _Part(self._checker, own, self._cache, tree, _key(paths), facts)
        return part.link

    def leave(self, paths: Sequence[str]) -> None:
        """Write down what is known of a part, if it was linked."""
        if (part := self._parts.pop(paths, None)) is not None:
            part.leave()

    def forget_others(self, parts: Collection[Sequence[str]]) -> None:
        """Remove what was written down of parts that are none any more."""
        known = {_key(paths) for paths in parts}
        for path in self._cache.place.glob("*-*"):
            name, _, key = path.name.rpartition("-")
            if name in (_NAME, *TABLES) and key not in known:
                with suppress(OSError):
                    path.unlink()


class _Part:
    """The link of a part, with what the last run worked out about it; ``key`` tells its files in the cache from those of others."""

    def __init__(
        self,
        checker: Checker,
        readings: Readings,
        cache: Cache,
        tree: ModuleTree,
        key: str,
        files: Mapping[str, Facts],
    ) -> None:
        self._checker = checker
        self._readings = readings
        self._cache = cache
        self._tree = tree
        self._key = key
        self._question = _question(checker, tree)
        self._taken = 0
        # The digests of the tables that were written down, and how many answers were recalled from each.
        self._tables: dict[str, str] = {}
        self._recalled: dict[str, int] = {}
        self.link = self._taken_up(files)

    def leave(self) -> None:
        """Write down what is known now, if it is more than what still held of what was there before: otherwise the next run
        begins where this one did. Nothing about texts that are not on disk.
        """
        if self._is_new or self._readings.stored or _count(self.link) > self._taken:
            self._readings.store()
            self._write()

    def _write(self) -> None:
        digests = self._readings.digests
        if any(given.data is not None for _, given in self._checker.tree.given):
            return
        if digests.keys() != self.link.files.keys():
            return
        self._write_tables()
        told = [self._tables, f"{self.link.changed:x}"]
        answers = [self._question, digests, *told, *written(self.link)]
        self._cache.write(self._file(_NAME), packed(answers))

    def _write_tables(self) -> None:
        if all(len(each.of(self.link).known()) - self._recalled.get(name, 0) <= _MOST for name, each in TABLES.items()):
            return
        for name in TABLES:
            self._recall(self.link, name)
        self.link.changed = 0
        for name in TABLES:
            data = packed(written_table(self.link, name))
            self._tables[name] = digest(data)
            self._cache.write(self._file(name), data)

    def _recall(self, into: Link, name: str) -> None:
        """Let a link know a table, once."""
        if name in self._recalled or name not in self._tables:
            return
        data = self._cache.read(self._file(name))
        known = data is not None and digest(data) == self._tables[name]
        self._recalled[name] = recall(into, name, unpacked(data)) if data is not None and known else 0

    def _taken_up(self, files: Mapping[str, Facts]) -> Link:
        data = self._cache.read(self._file(_NAME))
        question, digests, *rest = unpacked(data) if data else ("", {})
        before = _before(files, self._readings, digests) if question == self._question else None
        if before is not None:
            found = self._linked(before)
            self._tables, changed, *answers = rest
            found.changed = int(changed, 16)
            found.names.modules.reads.recall = partial(self._recall, found)
            take_up(found, *answers)
            found.settle(files)
            if found.follow(files):
                self._is_new = False
                self._taken = _count(found)
                return found
        self._is_new, self._tables, self._recalled = True, {}, {}
        return self._linked(files)

    def _linked(self, files: Mapping[str, Facts]) -> Link:
        return Link(files, self._tree, self._checker.catalogue.version, keeps=True)

    def _file(self, name: str) -> str:
        return f"{name}-{self._key}"


def _key(paths: Sequence[str]) -> str:
    return blake2b("\0".join(paths).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def _question(checker: Checker, tree: ModuleTree) -> str:
    """What answers about a part depend on beside its files."""
    settings = checker.tree.root.settings
    asked = (tool_stamp(), settings.parser, settings.entry_points, settings.seeders, tree.key, checker.papers)
    return blake2b(repr((*asked, checker.catalogue.version)).encode(), digest_size=16).hexdigest()


def _before(files: Mapping[str, Facts], readings: Readings, digests: Mapping[str, str]) -> dict[str, Facts] | None:
    """The facts of all files as they were when they had these digests; None where other files were there, or not all facts
    are to be had.
    """
    if files.keys() != digests.keys():
        return None
    found = dict(files)
    for path, was in digests.items():
        if readings.digests.get(path) != was:
            known = readings.before.get(path)
            if known is None or known[0] != was:
                return None
            found[path] = known[1]
    return found


def _count(of: Link) -> int:
    return sum(not name.startswith(_BY_WORDS) for name, *_ in of.answers.known()) + len(of.reached.known())
