"""The program index: queries about the names, call sites and call targets of a project, and its revisions.

It is the lowest of the layers of a project, each a class that inherits from the one below: ``ProgramIndex`` (names and calls),
``ValueFlow`` and ``TaintFlow`` (values), ``Traces`` (what a run does). A function names the lowest layer that it needs. The names, with
the database of all queries, outlive a change of files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Self, TypeVar, cast

from torchrepro_lint.catalogue.libraries import LibraryVersions
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.call_sites import (
    CallCandidates,
    CallPlace,
    CallSiteIndex,
    FileCalls,
    call_candidates,
    hold_edges,
    identifiers_in,
    may_hold_identifiers,
)
from torchrepro_lint.resolve.imports import MENTION, ImportResolver, torch_modules
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.registries import argument_makers
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.control_flow import Event, Guard
from torchrepro_lint.syntax.nodes import Call, Expression, FrozenRecord, ModuleSummary, Ref, Statement, SyntaxTree
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    class_of,
    in_project,
    is_instance,
    is_module,
    last_word,
    path_of,
    simple_name,
    top_package,
)
from torchrepro_lint.syntax.visitor import last_identifier, value_identifiers


class CallSite(FrozenRecord, frozen=True):
    """A call site: its function (``path:`` for the top level, class bodies included), the names called, its guards and statement."""

    call: Call
    function: str
    names: tuple[str, ...]
    guards: tuple[Guard, ...]
    statement: Statement


class UnresolvedCall(FrozenRecord, frozen=True):
    """A call with its function and event, before its callee is resolved."""

    call: Call
    function: str
    event: Event


def entered_functions(names: Names, name: Value, kind: str) -> Iterator[Symbol]:
    """Call targets: the functions of the project that calling, iterating, indexing or entering a value of the project runs."""
    if kind == "call" and names.functions(name):
        yield from tuple(_wrappers(names, name)) or argument_makers(names, name, "")
        yield name
    elif kind == "call" and names.classes(name):
        for target in _methods(names, name, ("__new__", "__init__", "__post_init__")):
            yield from argument_makers(names, target, name)
            yield target
    elif kind == "call" and is_instance(name):
        yield from names.call_methods(name)
    elif kind == "enter" and is_instance(name):
        yield from _methods(names, class_of(name), ("__enter__", "__aenter__"))
    elif is_instance(name):
        words = ("__iter__", "__next__", "__getitem__", "__getitems__") if kind == "iterate" else ("__getitem__",)
        yield from _methods(names, class_of(name), words)


def _wrappers(names: Names, name: Symbol) -> Iterator[Symbol]:
    """The wrappers that decorators of the project put in a function's place: what ``decorate`` or ``factory(7)`` returns."""
    path = path_of(name)
    for function in names.functions(name):
        for decorator in function.decorators:
            for target in names.names(path, decorator):
                if in_project(target) and names.functions(target) and target != name:
                    yield from (each for each in names.returns(target) if names.functions(each) and each != name)


def _methods(names: Names, owner: Symbol, words: tuple[str, ...]) -> Iterator[Symbol]:
    for word in words:
        yield from (target for target in names.methods(owner, word) if names.functions(target))


@query(durable="calls")
def file_calls(names: Names, path: str) -> FileCalls:
    """The call sites of a file by call target, and unresolved ones by their word."""
    by_target: dict[str, list[CallPlace]] = defaultdict(list)
    by_word: dict[str, list[CallPlace]] = defaultdict(list)
    named: set[str] = set()
    functions: dict[str, str] = {}
    for function, call in sorted(names.call_graph.in_file(path), key=_by_place):
        own = functions.setdefault(function, function[len(path) :])  # one text for all calls of a function
        place = CallPlace(own, call.start, call.end)
        found = names.names(path, call.func)
        for name in found:
            if in_project(name):
                named.add(name)
                for target in entered_functions(names, name, "call"):
                    by_target[target].append(place)
        if not found:
            by_word[last_identifier(call.func)].append(place)
    methods = (simple_name(each.name) for each in names.modules.files[path].functions if each.owner)
    return FileCalls(
        {name: tuple(each) for name, each in by_target.items()},
        {word: tuple(each) for word, each in by_word.items()},
        tuple(methods),
        tuple(sorted(named)),
    )


def _by_place(found: tuple[str, Call]) -> tuple[int, int]:
    _, call = found
    return call.start, -call.end


# The calls of all files take a quarter of the memory of their facts. A run needs most of them once; after an edit they are
# needed again.
_CACHED_FILES = 64


def link(
    files: Mapping[str, SyntaxTree],
    tree: ModuleTree,
    torch: str,
    *,
    incremental: bool = False,
    early_cutoff: bool = False,
) -> Names:
    """Link files into a program: its names, with the database of all queries.

    ``tree`` is that of the whole project, ``torch`` the target release. ``incremental`` records dependencies, which costs time and
    is needed for ``revise`` alone; ``early_cutoff`` recomputes fewer results (see ``query``), which pays where files change
    often.
    """
    return Names(ImportResolver(files, tree, incremental=incremental, early_cutoff=early_cutoff), torch)


def revise(names: Names, files: Mapping[str, SyntaxTree]) -> bool:
    """Move to a new revision of the files. Returns false where files were added or removed, or a change affects all of them: then
    the database is of no more use.
    """
    if files.keys() != names.modules.files.keys():
        return False
    known = names.modules.peek
    return all(_replace(names, path, facts) for path, facts in sorted(files.items()) if known(path) is not facts)


def prepare_revision(names: Names, files: Mapping[str, SyntaxTree]) -> None:
    """Compute what ``revise`` compares, for restored results that may depend on it."""
    known = names.modules
    if any(
        _definitions_only(known.summary(path)) != _definitions_only(facts.summary)
        for path, facts in files.items()
        if known.peek(path) is not facts
    ):
        names.prepare_revision()


def _replace(names: Names, path: str, facts: SyntaxTree) -> bool:
    """Replace the tree of a changed file; returns false where that affects all files."""
    before = names.modules.summary(path)
    changed = names.replace(path, facts)
    if changed is None:
        return False
    reads, database = names.modules.reads, names.database
    words = _changed_identifiers(before, facts.summary)
    mentioned = reduce(or_, (reads.word(MENTION, word) for word in words), 0)
    database.invalidate(mentioned)
    database.changed |= changed | mentioned
    return True


def _changed_identifiers(before: ModuleSummary, after: ModuleSummary) -> set[str]:
    """The words whose mentions or aliases differ between two summaries of a file."""
    changed = _mentions(before) ^ _mentions(after)
    return {word for part in changed for word in part[1:]}


def _mentions(summary: ModuleSummary) -> set[tuple[str, ...]]:
    """The words that a file mentions, each with its role."""
    found: set[tuple[str, ...]] = {("call", word) for word in summary.calls}
    found |= {("value", word) for word in summary.values}
    found |= {("import", name, top_package(name), last_word(name)) for name in summary.imports}
    found |= {("export", word, *map(simple_name, names)) for word, names in summary.exports}
    return found | {("hold", word, *inside) for word, inside in summary.holds}


def _definitions_only(summary: ModuleSummary) -> ModuleSummary:
    """A summary with only what determines classes, decorators and registries."""
    return summary._replace(
        calls=(),
        values=(),
        inner=(),
        keywords=(),
        partials=(),
        through=(),
        holds=(),
        calls_at_top_level=False,
    )


def _place(called: UnresolvedCall) -> tuple[int, int]:
    return called.call.start, -called.call.end


_Part = TypeVar("_Part")


class ProgramIndex:
    """The names and call sites of the modules of a project (by path from its root).

    Costly results are queries, whose ``database`` survives a change of the files. The layers above handle values, traces and torch.
    """

    def __init__(
        self,
        names: Names,
        position: Callable[[str, int], Position],
        text: Callable[[str], str],
        libraries: LibraryVersions,
    ) -> None:
        self.libraries = libraries
        self.position = position
        self.text = text
        self._parts: dict[Callable[[Self], Any], Any] = {}
        self._tables_by_kind: dict[str, MemoTable[Hashable, Any]] = {}
        self.resolver = names
        self.database = names.database
        if self.database.reads.early_cutoff:
            self.database.asker = self
        self.files = names.modules.files

    def part(self, kind: Callable[[Self], _Part]) -> _Part:
        """The one object of a kind that lives as long as this project. What it remembers of files, it must record as read each time."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast("_Part", self._parts[kind])

    def remembered(self, kind: str, key: Hashable, compute: Callable[[], _Part]) -> _Part:
        """The answer for a key of a kind, remembered with what it reads as long as this project. It is no query where the key is not all
        that the answer is about: the first statement stands for a block.
        """
        if kind not in self._tables_by_kind:
            self._tables_by_kind[kind] = MemoTable(self.database.reads)
        return cast("_Part", self._tables_by_kind[kind].of(key, compute))

    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression of a file may stand for; see ``Names``."""
        return self.resolver.names(path, expression)

    def values(self, path: str, expression: Expression) -> list[tuple[str, Expression]]:
        """The expressions behind a variable, each with its file; anything else stands for itself."""
        return list(self.resolver.values(path, expression))

    def bodies(self, function: str) -> list[tuple[Statement, ...]]:
        """The bodies of a function, which may be defined several times, or of a module's top level (``path:``)."""
        if is_module(function):
            return [self.files[path_of(function)].body]
        return [each.body for each in self.resolver.functions(function)]

    # --- call sites --------------------------------------------------------------------------------------------------

    @query(lru=_CACHED_FILES, bounded_when_watched=False, cutoff=True)
    def calls(self, path: str) -> tuple[CallSite, ...]:
        """All call sites of a module in the order of the text, without those that constant tests rule out."""
        return tuple(self.site(path, each) for each in self._called(path))

    @query(lru=1)
    def _hold_edges(self, path: str) -> list[tuple[str, frozenset[str]]]:
        return [each for each in hold_edges(self.files[path]) if each[1]]

    def calls_by(self, path: str, words: frozenset[str]) -> Iterator[CallSite]:
        """The ``calls`` that may call a function with one of these last words."""
        meant = identifiers_in(self.files[path], words, lambda: self._hold_edges(path))
        for each in self._called(path):
            if not meant.isdisjoint(value_identifiers(each.call.func)):
                yield self.site(path, each)

    def calls_on(self, path: str, words: frozenset[str]) -> Iterator[UnresolvedCall]:
        """The calls of a module by an attribute or method with one of these names."""
        for each in self._called(path):
            match each.call.func:
                case Ref(path=(*_, word)) if word in words:
                    yield each

    def calls_between(self, path: str, start: int, end: int) -> Iterator[UnresolvedCall]:
        """The calls of a module that have these offsets."""
        return (each for each in self._called(path) if (each.call.start, each.call.end) == (start, end))

    def site(self, path: str, called: UnresolvedCall) -> CallSite:
        """The call site of a call: with the names that it calls."""
        names = self.resolver.names(path, called.call.func)
        event = called.event
        return CallSite(called.call, called.function, names, event.guards, event.statement)

    @query(lru=_CACHED_FILES, bounded_when_watched=False)
    def _called(self, path: str) -> tuple[UnresolvedCall, ...]:
        return tuple(sorted(self._find_called(path), key=_place))

    def _find_called(self, path: str) -> Iterator[UnresolvedCall]:
        facts = self.files[path]
        bodies = [("", facts.body)]
        bodies += ((each.name, each.body) for each in facts.functions)
        for name, body in bodies:
            yield from self._called_in(f"{path}{name or ':'}", body)

    def _called_in(self, function: str, body: tuple[Statement, ...]) -> Iterator[UnresolvedCall]:
        for event in self.resolver.events.of_body(path_of(function), body):
            if event.kind == "call" and isinstance(event.value, Call):
                yield UnresolvedCall(event.value, function, event)

    def called_at(self, function: str, start: int, end: int) -> UnresolvedCall:
        """A call of a function (``path:`` for the top level) by its offsets."""
        return self._called_by_place(function)[start, end]

    @query()
    def _called_by_place(self, function: str) -> dict[tuple[int, int], UnresolvedCall]:
        facts = self.files[path_of(function)]
        own = function[len(path_of(function)) :]
        bodies = [each.body for each in facts.functions if each.name == own] if not is_module(own) else [facts.body]
        return {(each.call.start, each.call.end): each for body in bodies for each in self._called_in(function, body)}

    # --- the call graph ----------------------------------------------------------------------------------------------

    @query()
    def all_calls(self) -> CallSiteIndex:
        """All call sites of the project by call target; this resolves every call of the project."""
        found = self.resolver.call_sites
        found.update([(path, file_calls(self.resolver, path)) for path in sorted(self.files)])
        return found

    @query(cutoff=True)
    def calls_of(self, target: Symbol) -> tuple[tuple[str, Sequence[CallPlace]], ...]:
        """The places of the calls that enter a function of the project, by file."""
        return tuple(self.all_calls().places("by_target", target))

    @query(cutoff=True)
    def unresolved_calls(self, word: str) -> tuple[tuple[str, Sequence[CallPlace]], ...]:
        """The places of the calls by a word of which nothing is known, by file."""
        return tuple(self.all_calls().places("by_word", word))

    @query(cutoff=True)
    def unresolved_words(self) -> tuple[str, ...]:
        """The words of the calls of which nothing is known, sorted."""
        return tuple(self.all_calls().words())

    @query(cutoff=True)
    def methods_named(self, word: str) -> int:
        """How many methods of the project have a name."""
        return self.all_calls().methods[word]

    @query(cutoff=True)
    def _files_calling(self, name: Symbol) -> tuple[str, ...]:
        return tuple(self.all_calls().files_calling(name))

    def sites_of(self, name: Symbol) -> tuple[tuple[str, CallSite], ...]:
        """The calls of a function or class of the project, each with its file; a constructor is called by its class."""
        return tuple(
            (path, site) for path in self._files_calling(name) for site in self.calls(path) if name in site.names
        )

    def is_called(self, word: str) -> bool:
        """Whether anything in the project calls a function or method of that name."""
        return self.resolver.call_graph.calls(word)

    # --- by words ----------------------------------------------------------------------------------------------------

    @query()
    def mentioning(self, words: frozenset[str]) -> CallCandidates:
        """The files that may call a function from outside with one of these last words; see ``call_candidates``."""
        return call_candidates(self.resolver, words)

    @query()
    def holding(self, word: str) -> frozenset[str]:
        """A word, and those of the variables and functions that may hold or return such a function; see ``may_hold_identifiers``."""
        return may_hold_identifiers(self.resolver, (word,))

    @property
    def torch_modules(self) -> frozenset[str]:
        """The modules that import torch, and those that such a module imports; of a package also what it imports itself."""
        modules = self.resolver.modules
        return self.resolver.torch_modules() if modules.reads.early_cutoff else torch_modules(modules)
