"""Call sites: the calls of a file as nodes of the call graph, each with its function and what it calls.

Call targets, the edges of the call graph: the functions of a project that calling, iterating or indexing a value enters.

The call graph's edges of one file, as its index by callee takes them: no more is left of a file than ``all_calls`` keeps.

The memo tables of the program index: what stays of name resolution when one of a project's files changes.

The program index: queries about names, call sites and the call graph of a linked project.

It is the lowest of the layers of which a project is made, one for each package, each a class that inherits from the one
below: ``ProgramIndex`` (names and calls), ``ValueFlow`` and ``OrderFlow`` (values), ``Traces`` (runs), ``ProgramEffects``,
``LoaderQueries`` and ``Project`` (what torch makes of them). One object is passed around, and who takes it names the lowest
layer that answers what it asks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from torchrepro_lint.query.memo_tables import Answers, Kept, tight
from torchrepro_lint.resolve.call_sites import (
    AllCalls,
    Calls,
    Mentions,
    Place,
    holders,
    mentioned_words,
    mentions,
    words_in,
)
from torchrepro_lint.resolve.imports import Modules, torch_modules
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.events import Event, Guard
from torchrepro_lint.syntax.nodes import Call, Expression, Ref, Small, Statement, path_of
from torchrepro_lint.syntax.visitor import held_words, last_word

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.loaders import Libraries
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.source.text import Position
    from torchrepro_lint.syntax.nodes import Facts, Summary


class Site(Small, frozen=True):
    """A call of a module: its function (``path:`` for the top level, class bodies included), what is called, and what
    surrounds it.
    """

    call: Call
    function: str
    names: tuple[str, ...]
    guards: tuple[Guard, ...]
    statement: Statement


class Called(Small, frozen=True):
    """A call, its function, and the event that it is, before it is asked what is called."""

    call: Call
    function: str
    event: Event


def entered(names: Names, name: str, kind: str) -> Iterator[str]:
    """The functions of the project that calling, iterating or indexing a value of the project runs."""
    if kind == "call" and names.functions(name):
        yield from _wrappers(names, name)
        yield name
    elif kind == "call" and names.classes(name):
        yield from _methods(names, name, ("__new__", "__init__", "__post_init__"))
    elif kind == "call" and name.endswith("()"):
        yield from names.call_methods(name)
    elif kind == "enter" and name.endswith("()"):
        yield from _methods(names, name[:-2], ("__enter__", "__aenter__"))
    elif name.endswith("()"):
        words = ("__iter__", "__next__", "__getitem__", "__getitems__") if kind == "iterate" else ("__getitem__",)
        yield from _methods(names, name[:-2], words)


def _wrappers(names: Names, name: str) -> Iterator[str]:
    """What a decorator of the project puts in a function's place: what ``decorate`` or ``factory(7)`` returns."""
    path = path_of(name)
    for function in names.functions(name):
        for decorator in function.decorators:
            for target in names.names(path, decorator):
                if ":" in target and names.functions(target) and target != name:
                    yield from (each for each in names.returns(target) if names.functions(each) and each != name)


def _methods(names: Names, owner: str, words: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        yield from (target for target in names.methods(owner, word) if names.functions(target))


def calls_of(names: Names, path: str) -> Calls:
    """The calls of a file by what they enter, and by their word where that is not known."""
    told: dict[str, list[Place]] = defaultdict(list)
    untold: dict[str, list[Place]] = defaultdict(list)
    named: set[str] = set()
    functions: dict[str, str] = {}
    for function, call in sorted(names.calls_of.in_file(path), key=_by_place):
        own = functions.setdefault(function, function[len(path) :])  # one text for all calls of a function
        place = Place(own, call.start, call.end)
        found = names.names(path, call.func)
        for name in found:
            if ":" in name:
                named.add(name)
                for target in entered(names, name, "call"):
                    told[target].append(place)
        if not found:
            untold[last_word(call.func)].append(place)
    methods = (each.name.rpartition(".")[2] for each in names.modules.files[path].functions if each.owner)
    return Calls(tight(told), tight(untold), tuple(methods), tuple(sorted(named)))


def _by_place(found: tuple[str, Call]) -> tuple[int, int]:
    _, call = found
    return call.start, -call.end


# The calls of all files take a quarter of the memory of their facts. A run goes by most of them once; after an edit they are
# asked for again.
_MOST_FILES = 64


class Table(Protocol):
    """A memo table that is told of changes."""

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        ...


class IndexTables:
    """The names of a project, and what is worked out with them file by file, each with what it was worked out from.

    ``tree`` is that of the whole project, ``torch`` the target release. With ``keeps``
    answers are kept together with what they were worked out from, which costs time and is needed for ``replace`` alone;
    with ``firm`` fewer are worked out again (see ``memo``), which pays where files change often.

    Layers above add tables of their own: whatever ``_tables`` gives is told of each change.
    """

    def __init__(
        self,
        files: Mapping[str, Facts],
        tree: ModuleTree,
        torch: str,
        *,
        keeps: bool = False,
        firm: bool = False,
    ) -> None:
        self.names = Names(Modules(files, tree, keeps=keeps, firm=firm), torch)
        reads = self.names.modules.reads
        most = None if firm else _MOST_FILES
        self.sites: Kept[str, tuple[Site, ...]] = Kept(reads, most)
        self.called: Kept[str, tuple[Called, ...]] = Kept(reads, most)
        self.calls: Kept[str, Calls] = Kept(reads)
        # What has changed since what is recalled was written down.
        self.changed = 0
        self.all_calls = AllCalls()
        # What is asked of each file, by the name of the question and the file.
        self.of_files: Kept[tuple[str, str], Any] = Kept(reads)
        # What the project asks of all files, by the name of the question.
        self.answers = Answers(reads)

    @property
    def files(self) -> Mapping[str, Facts]:
        """The facts of all files by path."""
        return self.names.modules.files

    def follow(self, files: Mapping[str, Facts]) -> bool:
        """Take over what ``files`` say. Returns false where others are there than before, or a change concerns all of them:
        then nothing of it is of use any more.
        """
        if files.keys() != self.files.keys():
            return False
        known = self.names.modules.peek
        return all(self.replace(path, facts) for path, facts in sorted(files.items()) if known(path) is not facts)

    def settle(self, files: Mapping[str, Facts]) -> None:
        """Work out what ``follow`` compares, for answers that were taken up and that may have been worked out from it."""
        known = self.names.modules
        if any(
            _says_what_there_is(known.summary(path)) != _says_what_there_is(facts.summary)
            for path, facts in files.items()
            if known.peek(path) is not facts
        ):
            self.names.settle()

    def replace(self, path: str, facts: Facts) -> bool:
        """Take over what a changed file says; returns false where that concerns all files: then nothing is of use any more."""
        before = self.names.modules.summary(path)
        changed = self.names.replace(path, facts)
        if changed is None:
            return False
        self.changed |= changed
        for kept in self._tables():
            kept.drop(changed)
        self.answers.drop(changed, mentioned_words(before, facts.summary))
        return True

    def _tables(self) -> Iterator[Table]:
        """The tables whose answers are forgotten where anything has changed that they were worked out from."""
        yield from (self.sites, self.called, self.calls, self.of_files)


def _says_what_there_is(summary: Summary) -> Summary:
    """A summary without what says nothing of classes, decorators and tables."""
    return summary._replace(calls=(), values=(), inner=(), keywords=(), partials=(), through=(), holds=(), acts=False)


_Answer = TypeVar("_Answer")


def _place(called: Called) -> tuple[int, int]:
    return called.call.start, -called.call.end


class ProgramIndex:
    """Names and calls of the modules of a project (by path from its root).

    What an answer costs twice is kept in the ``link``, which outlives a change of the files; ``kept`` is for what is worked
    out anew after each. It promises nothing of values, runs, or torch: those are the layers above.
    """

    def __init__(
        self,
        link: IndexTables,
        position: Callable[[str, int], Position],
        text: Callable[[str], str],
        libraries: Libraries,
    ) -> None:
        self.libraries = libraries
        self.position = position
        self.text = text
        # What others work out once for a project, by their names. A table of theirs with weak keys would keep the
        # project for ever where its values refer to it.
        self.kept: dict[str, Any] = {}
        self.link = link
        self.files = self.link.files
        self.resolver = self.link.names
        self._called_by_place: dict[str, dict[tuple[int, int], Called]] = {}

    def names(self, path: str, expression: Expression) -> tuple[str, ...]:
        """The names that an expression of a file may stand for; see ``names``."""
        return self.resolver.names(path, expression)

    def values(self, path: str, expression: Expression) -> list[tuple[str, Expression]]:
        """The expressions behind a variable, each with its file; anything else stands for itself."""
        return list(self.resolver.values(path, expression))

    # --- call sites --------------------------------------------------------------------------------------------------

    def calls(self, path: str) -> tuple[Site, ...]:
        """All calls of a module in the order of the text, but for those that constant tests rule out."""
        return self.link.sites.of(path, lambda: tuple(self.site(path, each) for each in self._called(path)))

    def calls_by(self, path: str, words: frozenset[str]) -> Iterator[Site]:
        """Those of ``calls`` that may call what has one of these last words."""
        meant = words_in(self.files[path], words)
        for each in self._called(path):
            if not meant.isdisjoint(held_words(each.call.func)):
                yield self.site(path, each)

    def calls_on(self, path: str, words: frozenset[str]) -> Iterator[Called]:
        """The calls of a module by an attribute or method with one of these names."""
        for each in self._called(path):
            match each.call.func:
                case Ref(path=(*_, word)) if word in words:
                    yield each

    def calls_between(self, path: str, start: int, end: int) -> Iterator[Called]:
        """The calls of a module that have these offsets."""
        return (each for each in self._called(path) if (each.call.start, each.call.end) == (start, end))

    def site(self, path: str, called: Called) -> Site:
        """A call of a module with what it calls."""
        names = self.resolver.names(path, called.call.func)
        event = called.event
        return Site(called.call, called.function, names, event.guards, event.statement)

    def _called(self, path: str) -> tuple[Called, ...]:
        return self.link.called.of(path, lambda: tuple(sorted(self._find_called(path), key=_place)))

    def _find_called(self, path: str) -> Iterator[Called]:
        facts = self.files[path]
        bodies = [("", facts.body)]
        bodies += ((each.name, each.body) for each in facts.functions)
        for name, body in bodies:
            yield from self._called_in(f"{path}{name or ':'}", body)

    def _called_in(self, function: str, body: tuple[Statement, ...]) -> Iterator[Called]:
        for event in self.resolver.events.of_body(body):
            if event.kind == "call" and isinstance(event.value, Call):
                yield Called(event.value, function, event)

    def called_at(self, function: str, start: int, end: int) -> Called:
        """A call of a function (``path:`` for the top level) by its offsets."""
        path = path_of(function)
        facts = self.files[path]
        known = self._called_by_place.get(function)
        if known is None:
            own = function[len(path) :]
            bodies = [each.body for each in facts.functions if each.name == own] if own != ":" else [facts.body]
            known = self._called_by_place[function] = {
                (each.call.start, each.call.end): each for body in bodies for each in self._called_in(function, body)
            }
        return known[start, end]

    # --- the call graph ----------------------------------------------------------------------------------------------

    @cached_property
    def all_calls(self) -> AllCalls:
        """All calls of the project by what they enter; whoever has to know them asks last."""
        link = self.link
        link.names.modules.reads.recall("calls")
        files = sorted(self.files)
        link.all_calls.update([(path, link.calls.of(path, partial(calls_of, self.resolver, path))) for path in files])
        return link.all_calls

    def sites_of(self, name: str) -> tuple[tuple[str, Site], ...]:
        """The calls of a function or class of the project, each with its file; a constructor is called by its class."""
        naming = self.all_calls.naming(name)
        return tuple((path, site) for path in naming for site in self.calls(path) if name in site.names)

    def is_called(self, word: str) -> bool:
        """Whether anything in the project calls a function or method of that name."""
        return self.resolver.calls_of.calls(word)

    # --- what is kept across changes ---------------------------------------------------------------------------------

    def of_file(self, name: str, path: str, compute: Callable[[str], _Answer]) -> _Answer:
        """An answer about one file that stays for as long as nothing changes that it was worked out from: only what the link
        tells may be asked for it.
        """
        found: _Answer = self.link.of_files.of((name, path), lambda: compute(path))
        return found

    def of_all(self, name: str, compute: Callable[[], _Answer]) -> _Answer:
        """An answer about the whole project that stays for as long as nothing changes that it was worked out from: only
        what the link tells may be asked for it.
        """
        found: _Answer = self.link.answers.of(name, compute)
        return found

    def mentioning(self, words: frozenset[str]) -> Mentions:
        """What may call something from outside with one of these last words; see ``mentions``."""
        return self.of_all(f"mentioning {' '.join(sorted(words))}", lambda: mentions(self.resolver, words))

    def holding(self, word: str) -> frozenset[str]:
        """A word, and those of what may hold or return what has it; see ``holders``."""
        return self.of_all(f"holding {word}", lambda: holders(self.resolver, (word,)))

    @property
    def torch_modules(self) -> frozenset[str]:
        """The modules that import torch, and those that such a module imports."""
        return self.of_all("torch", lambda: torch_modules(self.resolver.modules))
