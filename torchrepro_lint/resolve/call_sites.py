"""Call sites by number, word and callee, and the may-call prefilter: the files that may call a function from outside, and by which words.

The prefilter reads summaries and looks into few files.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.definitions import EventCache
from torchrepro_lint.resolve.imports import MENTION, ImportResolver
from torchrepro_lint.resolve.symbols import ClassHierarchy
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Expression,
    FrozenRecord,
    Import,
    ModuleSummary,
    Record,
    Ref,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    MODULE_ROOT,
    last_word,
    path_of,
    simple_name,
    super_call,
)
from torchrepro_lint.syntax.visitor import (
    bodies,
    callee_identifier,
    last_identifier,
    numbered_bodies,
    other_identifiers,
    returned_values,
    statements,
    value_identifiers,
)

# A call's number has three parts: file, word, and place among the calls by that word, so that other calls leave it unchanged.
_PER_WORD = 10_000_000
_PER_FILE = 10_000_000 * _PER_WORD
# A call's place in its file is the number of its body and its place in that body.
_PER_BODY = 1_000_000


class _NumberedCall(FrozenRecord, frozen=True):
    """A call, and its place among those of its file."""

    place: int
    call: Call


class _BodyCalls(NamedTuple):
    """Calls in order, each with the word that it calls; ``others`` are further words with their calls, ``counts`` the calls by body."""

    calls: tuple[Call, ...]
    words: tuple[str, ...]
    others: tuple[tuple[str, int], ...]
    counts: tuple[int, ...]


class NumberedCalls:
    """The calls of a project by number and by word; a file is looked into when one of its words is asked for."""

    def __init__(self, modules: ImportResolver, events: EventCache) -> None:
        self._modules = modules
        self._events = events
        self.database = modules.database
        self._paths = sorted(modules.files)
        self._files_of: dict[str, list[int]] = {}
        for number, path in enumerate(self._paths):
            for word in modules.summary(path).calls:
                self._files_of.setdefault(word, []).append(number)
        self._walked: dict[int, dict[str, list[int]]] = {}
        # By the numbers of files and bodies; under no number the calls of a whole file.
        self._bodies: dict[int, dict[int | None, _BodyCalls]] = {}
        self._calls: dict[int, _NumberedCall] = {}
        self._numbers_of: dict[str, int] = {}
        self._numbered: list[str] = []

    def replace(self, path: str, old: ModuleSummary, new: ModuleSummary) -> None:
        """A file has changed."""
        before, after = old.calls, new.calls
        number = bisect_left(self._paths, path)
        self._bodies.pop(number, None)
        for each in (call for calls in self._walked.pop(number, {}).values() for call in calls):
            del self._calls[each]
        for word in set(before) - set(after):
            self._files_of[word].remove(number)
        for word in set(after) - set(before):
            insort(self._files_of.setdefault(word, []), number)

    def calls(self, word: str) -> bool:
        """Whether any call in the project calls something by this word."""
        return bool(self._files_with(word) or self._files_with(super_call(word)))

    def paths(self, words: Iterable[str]) -> set[str]:
        """The files that call something by one of these words."""
        return {self._paths[number] for word in words for number in self._files_with(word)}

    def _files_with(self, word: str) -> Sequence[int]:
        """The numbers of the files that call something by a word."""
        self._modules.reads.record_word("calls", word)
        return self._files_of.get(word, ())

    def _in(self, number: int, word: str) -> Sequence[int]:
        """The calls of a file by a word."""
        self._modules.reads.record_read(self._paths[number])
        known = self._walked.setdefault(number, {})
        if word not in known:
            first = self.first(number, word)
            found = list(self._look_for(number, word))
            known[word] = list(range(first, first + len(found)))
            self._calls.update(zip(known[word], found, strict=True))
        return known[word]

    def first(self, number: int, word: str) -> int:
        """The number of the first call of a file by a word."""
        if word not in self._numbers_of:
            self._numbers_of[word] = len(self._numbered)
            self._numbered.append(word)
        return number * _PER_FILE + self._numbers_of[word] * _PER_WORD

    def path(self, number: int) -> str:
        """The file of a number."""
        return self._paths[number]

    def number(self, path: str) -> int:
        """The number of a file."""
        return bisect_left(self._paths, path)

    def _by_word(self, word: str) -> Iterator[int]:
        """The numbers of all calls by a word (see ``callee_identifier``), in the order of files and text."""
        for number in self._files_with(word):
            yield from self._in(number, word)

    def _look_for(self, number: int, word: str) -> Iterator[_NumberedCall]:
        """The calls of a file by a word, of the bodies that may hold any."""
        facts = self._modules.files[self._paths[number]]
        bodies = self._bodies.setdefault(number, {})
        for each in facts.bodies_calling(word):
            if each not in bodies:
                bodies[each] = self._walk(self._paths[number], each)
            calls, words, others, _ = bodies[each]
            found = [at for at, called in enumerate(words) if called == word] if word in words else []
            found += [at for other, at in others if other == word]
            yield from (_NumberedCall((each or 0) * _PER_BODY + at, calls[at]) for at in sorted(found))

    def _walk(self, path: str, number: int | None) -> _BodyCalls:
        facts = self._modules.files[path]
        found = [list(self._called(path, body)) for body in numbered_bodies(facts, number)]
        calls = tuple(chain.from_iterable(found))
        others = tuple([(word, at) for at, each in enumerate(calls) for word in other_identifiers(each.func)])
        words = tuple([callee_identifier(each.func) for each in calls])
        return _BodyCalls(calls, words, others, tuple(map(len, found)))

    def in_file(self, path: str) -> Iterator[tuple[str, Call]]:
        """All calls of a file, each with its function: ``path:`` for the top level."""
        facts = self._modules.files[path]
        bodies = self._bodies.setdefault(self.number(path), {})
        if None not in bodies:
            bodies[None] = self._walk(path, None)
        left = iter(bodies[None].calls)
        for function, count in zip(
            (MODULE_ROOT, *(each.name for each in facts.functions)), bodies[None].counts, strict=True
        ):
            name = f"{path}{function}"
            yield from ((name, call) for call in islice(left, count))

    def numbered_calls(self, number: int, word: str) -> Iterator[tuple[int, Call]]:
        """The calls of a file by a word, with their numbers."""
        return ((each, self._at(each).call) for each in self._in(number, word))

    def _at(self, number: int) -> _NumberedCall:
        """A call by its number; its file is looked into."""
        if self._modules.reads.early_cutoff:
            return self._by_number(number)
        return self._look_up(number)

    @query(cutoff=True)
    def _by_number(self, number: int) -> _NumberedCall:
        return self._look_up(number)

    def _look_up(self, number: int) -> _NumberedCall:
        if number in self._calls:
            self._modules.reads.record_read(self._paths[number // _PER_FILE])
        else:
            self._in(number // _PER_FILE, self._numbered[number % _PER_FILE // _PER_WORD])
        return self._calls[number]

    def _call(self, number: int) -> tuple[str, Call]:
        return self._paths[number // _PER_FILE], self._at(number).call

    def _in_order(self, numbers: Iterable[int]) -> list[int]:
        """By file and text."""
        found = list(numbers)
        if len(found) > 1:
            found.sort(key=lambda number: (number // _PER_FILE, self._at(number).place))
        return found

    def _called(self, path: str, body: tuple[Statement, ...]) -> Iterator[Call]:
        for event in self._events.of_body(path, body):
            if event.kind == "call":
                yield event.value  # type: ignore[misc]  # a call happens to a Call


class CallPlace(FrozenRecord, frozen=True):
    """The place of a call site: its function (the name in the file) and its offsets."""

    function: str
    start: int
    end: int


class FileCalls(Record, frozen=True):
    """The call sites of a file: by the functions of the project that they enter, and unresolved ones by their last words; also the
    words of the file's methods, and the names of the project that it calls.
    """

    by_target: Mapping[str, Sequence[CallPlace]]
    by_word: Mapping[str, Sequence[CallPlace]]
    methods: Sequence[str]
    named: Sequence[str]


class CallSiteIndex:
    """The call sites of all files: inverted indices, kept up to date file by file. ``methods`` counts the methods that have a word."""

    def __init__(self) -> None:
        self.methods = Counter[str]()
        self._known: dict[str, FileCalls] = {}
        # The files by what each part of their call sites is about.
        self._paths: dict[str, dict[str, list[str]]] = {"by_target": {}, "by_word": {}, "named": {}}

    def update(self, files: Iterable[tuple[str, FileCalls]]) -> None:
        """Replace the call sites of files, the same files each time; an identical object is skipped."""
        for path, calls in files:
            before = self._known.get(path)
            if before is calls:
                continue
            self.methods.subtract(before.methods if before else ())
            self.methods.update(calls.methods)
            for part, paths in self._paths.items():
                for name in getattr(before, part, ()):
                    paths[name].remove(path)
                    if not paths[name]:
                        del paths[name]
                for name in getattr(calls, part):
                    paths.setdefault(name, []).append(path)
            self._known[path] = calls

    def places(self, part: str, name: str) -> Iterator[tuple[str, Sequence[CallPlace]]]:
        """The calls that enter a function of the project (``by_target``), or the unresolved ones by a word (``by_word``), by file."""
        return ((path, getattr(self._known[path], part)[name]) for path in sorted(self._paths[part].get(name, ())))

    def words(self) -> list[str]:
        """The words of unresolved calls, sorted."""
        return sorted(self._paths["by_word"])

    def files_calling(self, name: str) -> list[str]:
        """The files that call a name, sorted."""
        return sorted(self._paths["named"].get(name, ()))


def paths_constructing(names: ClassHierarchy, classes: Iterable[str]) -> tuple[str, ...]:
    """The files, sorted, that may construct one of these classes from outside, or a subclass in the project."""
    subclasses = {each for name in classes for each in names.subclasses(name)}
    words = {*map(simple_name, (*classes, *subclasses))}
    return tuple(sorted({*call_candidates(names, words).paths, *(path_of(name) for name in subclasses)}))


class CallCandidates(Record, frozen=True):
    """The files, sorted, that may call a function, and the words that may stand for it."""

    paths: tuple[str, ...]
    words: frozenset[str]


def call_candidates(names: ClassHierarchy, wanted: Iterable[str]) -> CallCandidates:
    """The files that may call a function from outside with one of these last words.

    They mention such a word, or call a variable or function that may hold or return such a function.
    """
    summaries = dict(names.modules.summaries())
    words = set(wanted)
    words |= _aliases(names, words)
    found = {path for path, summary in summaries.items() if _mentions(summary, words)}
    while True:
        held = _holding(summaries.values(), words) - words
        held |= _aliases(names, held) - words
        more = {path for path, each in summaries.items() if path not in found and _calls(names, path, each, held)}
        if not more:
            _record_mentions(names, ("", *words, *held))
            return CallCandidates(tuple(sorted(found)), frozenset(words))
        found |= more
        words |= held


def may_hold_identifiers(names: ClassHierarchy, wanted: Iterable[str]) -> frozenset[str]:
    """These words, and those of the variables and functions that may hold or return such a function, across files."""
    summaries = [summary for _, summary in names.modules.summaries()]
    words = _holding(summaries, set(wanted))
    words |= _aliases(names, words)
    _record_mentions(names, words)
    return frozenset(words)


def _record_mentions(names: ClassHierarchy, words: Iterable[str]) -> None:
    """Record that the running query asks which files mention these words."""
    for word in words:
        names.modules.reads.record_word(MENTION, word)


def identifiers_in(
    facts: SyntaxTree, words: frozenset[str], edges: Callable[[], Sequence[tuple[str, Collection[str]]]]
) -> frozenset[str]:
    """The words by which a file may call such a function, including its variables and attributes that may hold one; ``edges`` gives
    the ``hold_edges``.
    """
    summary = facts.summary
    imported = map(last_word, summary.imports)
    if words.isdisjoint(summary.values) and words.isdisjoint(imported) and "getattr" not in summary.calls:
        return words
    return frozenset(_transitive_words(edges(), words))


def _transitive_words(given: Sequence[tuple[str, Collection[str]]], words: Iterable[str]) -> set[str]:
    found = set(words)
    while True:
        more = {word for word, inside in given if word not in found and not found.isdisjoint(inside)}
        if not more:
            return found
        found |= more


def hold_edges(facts: SyntaxTree) -> Iterator[tuple[str, frozenset[str]]]:
    """The edges of what may hold what in a file: the words of its variables, parameters, attributes, functions and imported names,
    each with the words of its values.
    """
    for name, values in facts.assigned.items():
        yield simple_name(name), _value_words(value for _, value in values)
    for function in facts.functions:
        yield simple_name(function.name), _value_words(returned_values(function.body))
        yield from ((one.name, _value_words((one.default,))) for one in function.params if one.default is not None)
    for body in bodies(facts):
        for statement in statements(body):
            if isinstance(statement, Import):
                yield from ((local, frozenset({last_word(name)})) for local, name in statement.names)
            elif isinstance(statement, Assign) and statement.value is not None:
                for target in statement.targets:
                    if not isinstance(target, Ref) or target.path:
                        yield last_identifier(target), _value_words((statement.value,))


def _value_words(values: Iterable[Expression]) -> frozenset[str]:
    return frozenset(word for value in values for word in value_identifiers(value))


def _mentions(summary: ModuleSummary, words: set[str]) -> bool:
    return not words.isdisjoint(summary.calls) or not words.isdisjoint(summary.values)


def _calls(names: ClassHierarchy, path: str, summary: ModuleSummary, words: set[str]) -> bool:
    """Whether a file may call such a variable, or an element of one: ``LOADERS["train"](...)``."""
    called = words.intersection(summary.calls)
    if "" in summary.calls:
        called |= words.intersection(summary.values)
    return any(_sees(names, path, word) for word in sorted(called))


def _sees(names: ClassHierarchy, path: str, word: str) -> bool:
    """Whether a top-level variable of that name is visible in a file: its own, or one of a module that it imports."""
    files, summary = names.modules.files, names.modules.files[path].summary
    if summary.stars or any(word == each for each, _ in summary.exports):
        return True
    if word in map(last_word, summary.imports):
        return True
    modules = {names.modules.module(path, name) for name in summary.imports}
    return any(word == each for file in modules if file for each, _ in files[file].exports)


def _aliases(names: ClassHierarchy, words: Iterable[str]) -> set[str]:
    """The words under which modules import a name: ``from torch.utils.data import DataLoader as Batches``."""
    aliases = names.modules.aliases
    return {alias for word in words for alias in aliases.get(word, ())}


def _holding(summaries: Iterable[ModuleSummary], words: set[str]) -> set[str]:
    """The words of the top-level variables and functions that may hold or return a function with one of the words."""
    return _transitive_words([each for summary in summaries for each in summary.holds], words)
