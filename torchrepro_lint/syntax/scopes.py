"""Scopes and bindings of one file: which names a word may stand for, and what import statements and bodies bind.

Every binding of a scope counts, so a word keeps all its candidates: ``try: import cupy as np`` next to ``import numpy as np`` gives
both.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.query.memo_tables import interned_names
from torchrepro_lint.syntax.qualified_names import imported_root, top_package

_BUILTINS = {word: (f"builtins.{word}",) for word in dir(builtins)}


class Scope:
    """A scope: ``kind`` is ``module``, ``class``, ``function`` or ``comprehension``; ``name`` prefixes the names that it binds.

    ``bound`` maps each word to the names that it may stand for, sorted, as an interned tuple. ``rebound`` are the imported words
    that this body rebinds later: what they stand for until the lowering comes there.
    """

    __slots__ = ("bound", "counters", "kind", "name", "parent", "rebound", "redirected")

    def __init__(self, kind: str, name: str, parent: Scope | None) -> None:
        self.kind = kind
        self.name = name
        self.parent = parent
        self.bound: dict[str, tuple[str, ...]] = {}
        self.rebound: dict[str, tuple[str, ...]] = {}
        self.redirected: dict[str, Scope] = {}
        self.counters: dict[str, int] = {}

    def own(self, word: str) -> str:
        """The full name of a variable, function or class that this scope binds."""
        return _interned(f"{self.name}{word}", self.bound.get(word))

    def bind(self, word: str, name: str | None = None) -> None:
        """Bind a word to a name; by default to a variable of this scope."""
        scope = self.redirected.get(word, self) if self.redirected else self
        known, added = scope.bound.get(word), name or f"{scope.name}{word}"
        if not known:
            scope.bound[word] = interned_names((added,))
        elif added not in known:
            scope.bound[word] = interned_names(tuple(sorted((*known, added))))

    def unbind(self, word: str, name: str) -> None:
        """Remove one of the names that a word may stand for."""
        if word in self.bound:
            self.bound[word] = tuple(each for each in self.bound[word] if each != name)

    def variable(self, word: str) -> str:
        """The full name of the variable that an assignment to a word in this scope writes."""
        scope = self.redirected.get(word, self) if self.redirected else self
        return _interned(f"{scope.name}{word}", scope.bound.get(word))

    def redirect(self, word: str, scope: Scope) -> None:
        """``global`` and ``nonlocal``: the word belongs to another scope; ``global`` at the top level has no effect."""
        if scope is not self:
            self.redirected[word] = scope

    def numbered(self, word: str) -> str:
        """A word made unique in this scope: ``<lambda>``, ``<lambda>2`` and so on."""
        count = self.counters[word] = self.counters.get(word, 0) + 1
        return word if count == 1 else f"{word}{count}"

    def resolve(self, word: str) -> tuple[str, ...]:
        """Name resolution: all names that a word may stand for where it is read in this scope, sorted."""
        scope: Scope | None = self
        while scope is not None:
            if scope.redirected and (other := scope.redirected.get(word)) is not None:
                return other.resolve(word)
            if (names := scope.bound.get(word)) and (scope.kind != "class" or scope is self):
                return scope.rebound[word] if word in scope.rebound and self.function() is scope else names
            scope = scope.parent
        return _BUILTINS.get(word) or interned_names((f"?{word}",))

    def function(self) -> Scope:
        """The nearest scope that is no comprehension: the one that a walrus binds in."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self) -> str | None:
        """The nearest enclosing class, whose bases ``super()`` means."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope.name[:-1] if scope else None

    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def _interned(name: str, bound: tuple[str, ...] | None) -> str:
    """A name as the string object that the scope has bound already, if it has."""
    return bound[0] if bound and bound[0] == name else name


class Imported(NamedTuple):
    """An import statement: ``module`` with its dots as written, or None for a plain ``import``; names with the words
    they are bound to, empty where there is no ``as``. ``star`` says that it is ``from module import *``.
    """

    module: str | None
    aliases: tuple[tuple[str, str], ...]
    star: bool = False

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it loads, as written."""
        return tuple(name for name, _ in self.aliases) if self.module is None else (self.module,)


def import_bindings(imported: Imported) -> Iterator[tuple[str, str]]:
    """The bindings of an import: (word, name). ``import a.b`` binds ``a``; a star binds nothing here."""
    for name, word in imported.aliases:
        if imported.module is not None:
            yield word or name, imported_root(imported.module, name)
        elif word:
            yield word, name
        else:
            yield (top_package(name),) * 2
