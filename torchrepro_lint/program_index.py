"""The program index: queries about names, call sites and the call graph of a linked project.

It is the lowest of the layers of which a project is made, one for each package, each a class that inherits from the one
below: ``ProgramIndex`` (names and calls), ``ValueFlow`` and ``OrderFlow`` (values), ``Traces`` (runs), ``ProgramEffects``,
``LoaderQueries`` and ``Project`` (what torch makes of them). One object is passed around, and who takes it names the lowest
layer that answers what it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from torchrepro_lint.found_calls import calls_of
from torchrepro_lint.mentions import Mentions, holders, mentions, words_in
from torchrepro_lint.sites import Called, Site
from torchrepro_lint.syntax.nodes import Call, Expression, Ref, Statement, path_of
from torchrepro_lint.syntax.visitor import held_words
from torchrepro_lint.torch_scope import torch_modules

if TYPE_CHECKING:
    from torchrepro_lint.all_calls import AllCalls
    from torchrepro_lint.catalogue.loaders import Libraries
    from torchrepro_lint.index_tables import IndexTables
    from torchrepro_lint.source.text import Position

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
