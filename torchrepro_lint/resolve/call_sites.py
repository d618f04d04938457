"""Call sites by callee, and the may-call prefilter: the files that may call a function from outside, and by which words.

The prefilter reads summaries and looks into few files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.query.memo_tables import InvertedIndex
from torchrepro_lint.resolve.imports import MENTION
from torchrepro_lint.syntax.nodes import Assign, Expression, FrozenRecord, Import, ModuleSummary, Ref, SyntaxTree
from torchrepro_lint.syntax.qualified_names import last_word, path_of, simple_name, top_package
from torchrepro_lint.syntax.visitor import bodies, last_identifier, returned_values, statements, value_identifiers

if TYPE_CHECKING:
    from torchrepro_lint.resolve.protocols import NameResolution


class CallPlace(FrozenRecord, frozen=True):
    """The place of a call site: its function (the name in the file) and its offsets."""

    function: str
    start: int
    end: int


class FileCalls(NamedTuple):
    """The call sites of a file: by the functions of the project that they enter, and unresolved ones by their last words; also the
    words of the file's methods, and the names of the project that it calls.
    """

    by_target: Mapping[str, Sequence[CallPlace]]
    by_word: Mapping[str, Sequence[CallPlace]]
    methods: Sequence[str]
    named: Sequence[str]


class CallSiteIndex:
    """The call sites of all files; ``methods`` counts the methods that have a word."""

    def __init__(self) -> None:
        self._named: InvertedIndex[None] = InvertedIndex()
        self.by_target: InvertedIndex[CallPlace] = InvertedIndex()
        self.by_word: InvertedIndex[CallPlace] = InvertedIndex()
        self.methods = Counter[str]()
        self._known: dict[str, FileCalls] = {}

    def update(self, files: Sequence[tuple[str, FileCalls]]) -> None:
        """Replace the call sites of files, the same files each time; an identical object is skipped."""
        for path, calls in files:
            before = self._known.get(path)
            if before is not calls:
                self.methods.subtract(before.methods if before else ())
                self.methods.update(calls.methods)
                self._known[path] = calls
        self.by_target.update((path, each.by_target) for path, each in files)
        self.by_word.update((path, each.by_word) for path, each in files)
        self._named.update((path, dict.fromkeys(each.named, ())) for path, each in files)

    def files_calling(self, name: str) -> Iterator[str]:
        """The files that call a name, sorted."""
        return (path for path, _ in self._named.of(name))


def paths_constructing(names: NameResolution, classes: Iterable[str]) -> tuple[str, ...]:
    """The files, sorted, that may construct one of these classes from outside, or a subclass in the project."""
    subclasses = {each for name in classes for each in names.subclasses(name)}
    words = {*map(simple_name, (*classes, *subclasses))}
    return tuple(sorted({*call_candidates(names, words).paths, *(path_of(name) for name in subclasses)}))


class CallCandidates(NamedTuple):
    """The files, sorted, that may call a function, and the words that may stand for it."""

    paths: tuple[str, ...]
    words: frozenset[str]


def call_candidates(names: NameResolution, wanted: Iterable[str]) -> CallCandidates:
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


def may_hold_identifiers(names: NameResolution, wanted: Iterable[str]) -> frozenset[str]:
    """These words, and those of the variables and functions that may hold or return such a function, across files."""
    summaries = [summary for _, summary in names.modules.summaries()]
    words = _holding(summaries, set(wanted))
    words |= _aliases(names, words)
    _record_mentions(names, words)
    return frozenset(words)


def _record_mentions(names: NameResolution, words: Iterable[str]) -> None:
    """Record that the running query asks which files mention these words."""
    for word in words:
        names.modules.reads.record_word(MENTION, word)


def changed_identifiers(before: ModuleSummary, after: ModuleSummary) -> set[str]:
    """The words whose mentions or aliases differ between two summaries of a file."""
    changed = _parts(before) ^ _parts(after)
    return {word for part in changed for word in part[1:]}


def _parts(summary: ModuleSummary) -> set[tuple[str, ...]]:
    """The words that a file mentions, each with its role."""
    found: set[tuple[str, ...]] = {("call", word) for word in summary.calls}
    found |= {("value", word) for word in summary.values}
    found |= {("import", name, top_package(name), last_word(name)) for name in summary.imports}
    found |= {("export", word, *map(simple_name, names)) for word, names in summary.exports}
    return found | {("hold", word, *inside) for word, inside in summary.holds}


def identifiers_in(
    facts: SyntaxTree, words: frozenset[str], edges: Callable[[SyntaxTree], Sequence[tuple[str, Collection[str]]]]
) -> frozenset[str]:
    """The words by which a file may call such a function, including its variables and attributes that may hold one; ``edges`` is
    ``hold_edges`` or what remembers it.
    """
    summary = facts.summary
    imported = map(last_word, summary.imports)
    if words.isdisjoint(summary.values) and words.isdisjoint(imported) and "getattr" not in summary.calls:
        return words
    return frozenset(_transitive_words(edges(facts), words))


def _transitive_words(given: Sequence[tuple[str, Collection[str]]], words: Iterable[str]) -> set[str]:
    found = set(words)
    while True:
        more = {word for word, inside in given if word not in found and not found.isdisjoint(inside)}
        if not more:
            return found
        found |= more


def hold_edges(facts: SyntaxTree) -> list[tuple[str, frozenset[str]]]:
    """The edges of what may hold what in a file: see ``identifiers_in``."""
    return [(word, inside) for word, inside in _may_hold_edges(facts) if inside]


def _may_hold_edges(facts: SyntaxTree) -> Iterator[tuple[str, frozenset[str]]]:
    """The words of variables, parameters, attributes, functions and imported names, each with the words of its values."""
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


def _calls(names: NameResolution, path: str, summary: ModuleSummary, words: set[str]) -> bool:
    """Whether a file may call such a variable, or an element of one: ``LOADERS["train"](...)``."""
    called = words.intersection(summary.calls)
    if "" in summary.calls:
        called |= words.intersection(summary.values)
    return any(_sees(names, path, word) for word in sorted(called))


def _sees(names: NameResolution, path: str, word: str) -> bool:
    """Whether a top-level variable of that name is visible in a file: its own, or one of a module that it imports."""
    files, summary = names.modules.files, names.modules.files[path].summary
    if summary.stars or any(word == each for each, _ in summary.exports):
        return True
    if word in map(last_word, summary.imports):
        return True
    modules = {names.modules.module(path, name) for name in summary.imports}
    return any(word == each for file in modules if file for each, _ in files[file].exports)


def _aliases(names: NameResolution, words: Iterable[str]) -> set[str]:
    """The words under which modules import a name: ``from torch.utils.data import DataLoader as Batches``."""
    aliases = names.modules.aliases
    return {alias for word in words for alias in aliases.get(word, ())}


def _holding(summaries: Iterable[ModuleSummary], words: set[str]) -> set[str]:
    """The words of the top-level variables and functions that may hold or return a function with one of the words."""
    return _transitive_words([each for summary in summaries for each in summary.holds], words)
