"""What one run leaves for the next: answers about a whole project, each with what it was worked out from.

The next run takes them up in a link of the files as they were then, which is told of what has changed since (see ``link``).
So an answer is taken over where an editor's server would have kept it, and worked out again where not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.all_calls import Calls
from torchrepro_lint.checking import link
from torchrepro_lint.entrypoints import Entry
from torchrepro_lint.files import source_roots
from torchrepro_lint.link import Link
from torchrepro_lint.mentions import Mentions
from torchrepro_lint.project import reached
from torchrepro_lint.stamps import tool_stamp
from torchrepro_lint.states import digest

if TYPE_CHECKING:
    from torchrepro_lint.cache import Cache
    from torchrepro_lint.checking import Checker
    from torchrepro_lint.facts import Facts
    from torchrepro_lint.project import Project
    from torchrepro_lint.reading import Reading
    from torchrepro_lint.trees import Readings

_NAME = "answers"
# Who calls what is more than all else together, and few questions need it: it is written by itself, and only when calls of
# more files than that had to be looked at again.
_CALLS = "calls"
_FEW = 40


class Carried:
    """The project of a run's readings, with what the last run worked out about it, and what is left for the next."""

    def __init__(self, checker: Checker, readings: Readings, cache: Cache) -> None:
        self._checker = checker
        self._readings = readings
        self._cache = cache
        self._question = _question(checker)
        self._taken = 0
        # What has changed since calls were written down, and the digest of that.
        self._changed, self._calls = 0, ""
        self._recalled = 0
        self._link = self._taken_up()

    def project(self, files: Mapping[str, Reading]) -> Project:
        """What all ``files``, which are those of the readings, make."""
        return link(self._checker, files, self._link)

    def leave(self) -> None:
        """Write down what is known now, if it is more than what still held of what was there before: otherwise the next run
        begins where this one did. Nothing about texts that are not on disk.
        """
        if self._is_new or _count(self._link) > self._taken:
            self._readings.store()
            self._write()

    def _write(self) -> None:
        digests = self._readings.digests
        if any(given.data is not None for _, given in self._checker.tree.given):
            return
        if digests.keys() != self._link.files.keys():
            return
        calls = self._link.calls.known()
        if len(calls) == len(digests) and len(calls) - self._recalled > _FEW:
            data = _packed(written_calls(calls))
            self._changed, self._calls = 0, digest(data)
            self._cache.write(_CALLS, data)
        answers = [self._question, digests, self._calls, f"{self._changed:x}", *written(self._link)]
        self._cache.write(_NAME, _packed(answers))

    def _taken_up(self) -> Link:
        files = {path: each.facts for path, each in self._readings.files.items() if each.facts is not None}
        self._is_new = True
        data = self._cache.read(_NAME)
        question, digests, *rest = _unpacked(data) if data else ("", {})
        before = _before(files, self._readings, digests) if question == self._question else None
        if before is not None:
            calls, changed, *answers = rest
            found = self._linked(before)
            take_up(found, *answers)
            found.settle(files)
            if found.follow(files):
                self._is_new = False
                self._taken = _count(found)
                self._calls, self._changed = calls, int(changed, 16) | found.changed
                found.changed = self._changed
                found.calls_before = self._calls_before
                return found
        return self._linked(files)

    def _calls_before(self) -> Iterator[tuple[str, Calls, int]]:
        data = self._cache.read(_CALLS) if self._calls else None
        if data is not None and digest(data) == self._calls:
            for path, calls, seen in read_calls(_unpacked(data)):
                self._recalled += not seen & self._changed
                yield path, calls, seen

    def _linked(self, files: Mapping[str, Facts]) -> Link:
        return Link(files, source_roots(self._checker.tree), self._checker.catalogue.version, keeps=True)


def _question(checker: Checker) -> str:
    """What answers about a project depend on beside its files."""
    settings = checker.tree.root.settings
    asked = (tool_stamp(), settings.entry_points, settings.seeders, source_roots(checker.tree), checker.papers)
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
    return len(of.answers.known()) + len(of.reached.known())


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":"), check_circular=False).encode("ascii"), 1)


def _unpacked(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


class _Kind(NamedTuple):
    """How answers of a type are written and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if type(value) is list else value


_KINDS: dict[str, _Kind] = {
    "bool": _Kind(bool, bool),
    "frozenset": _Kind(sorted, frozenset),
    "Mentions": _Kind(lambda it: [it.paths, sorted(it.words)], lambda it: Mentions(tuple(it[0]), frozenset(it[1]))),
    "tuple": _Kind(list, _tuples),
}


def written(of: Link) -> tuple[list[Any], list[Any]]:
    """The answers of a link and the programs, as JSON can hold them; what each was worked out from is one number."""
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


def written_calls(known: Iterable[tuple[str, Calls, int]]) -> list[Any]:
    """The calls of files, as JSON can hold them; few files differ in what theirs were worked out from."""
    seen = {each: number for number, each in enumerate(sorted({seen for _, _, seen in known}))}
    return [[f"{each:x}" for each in seen], [[path, *calls, seen[of]] for path, calls, of in sorted(known)]]


def read_calls(value: Any) -> Iterator[tuple[str, Calls, int]]:
    """What ``written_calls`` wrote."""
    seen = [int(each, 16) for each in value[0]]
    for path, told, untold, methods, of in value[1]:
        yield path, Calls(told, untold, methods), seen[of]
