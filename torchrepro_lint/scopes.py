"""Which names a word of a file may stand for: Python's scopes, with every binding of a scope counted.

A word keeps all its candidates: ``try: import cupy as np`` beside ``import numpy as np`` gives both.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

_BUILTINS = frozenset(dir(builtins))


class Scope:
    """A ``module``, ``class``, ``function`` or ``comprehension``. ``name`` prefixes what is bound in it."""

    __slots__ = ("bound", "counters", "kind", "name", "parent", "redirected")

    def __init__(self, kind: str, name: str, parent: Scope | None) -> None:
        self.kind = kind
        self.name = name
        self.parent = parent
        self.bound: dict[str, set[str]] = {}
        self.redirected: dict[str, Scope] = {}
        self.counters: dict[str, int] = {}

    def own(self, word: str) -> str:
        """The name of a variable, function or class that this scope binds."""
        return f"{self.name}{word}"

    def bind(self, word: str, name: str | None = None) -> None:
        """Bind a word, to a variable of its own unless a name is given."""
        scope = self.redirected.get(word, self)
        scope.bound.setdefault(word, set()).add(name or scope.own(word))

    def variable(self, word: str) -> str:
        """The name of the variable that an assignment to a word in this scope writes."""
        return self.redirected.get(word, self).own(word)

    def redirect(self, word: str, scope: Scope) -> None:
        """``global`` and ``nonlocal``: the word belongs to another scope."""
        self.redirected[word] = scope

    def numbered(self, word: str) -> str:
        """A word made unique in this scope: ``<lambda>``, ``<lambda>2`` and so on."""
        count = self.counters[word] = self.counters.get(word, 0) + 1
        return word if count == 1 else f"{word}{count}"

    def resolve(self, word: str) -> tuple[str, ...]:
        """All names that the word may stand for where it is read in this scope, sorted."""
        scope: Scope | None = self
        while scope is not None:
            if (other := scope.redirected.get(word)) is not None:
                return other.resolve(word)
            if (names := scope.bound.get(word)) and (scope.kind != "class" or scope is self):
                return tuple(sorted(names))
            scope = scope.parent
        return (f"builtins.{word}",) if word in _BUILTINS else (f"?{word}",)

    def function(self) -> Scope:
        """The nearest scope that is no comprehension: the one that a walrus binds in."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self) -> str | None:
        """The prefix of the nearest class around, in whose methods ``super()`` means its bases."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope.name if scope else None

    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def bind_body(scope: Scope, body: cst.BaseSuite | cst.Module, *, walruses: bool) -> None:
    """Bind in ``scope`` every word that the statements of a body bind, nested blocks included, nested scopes not.

    ``walruses`` says whether the file has any ``:=``: looking for them means looking at every expression.
    """
    stack: list[cst.CSTNode] = list(reversed(body.body))
    while stack:
        node = stack.pop()
        binder = _BINDERS.get(type(node))
        if binder is not None:
            binder(scope, node)
        if walruses:
            for target in _walruses(node):
                bind_target(scope, target)
        stack.extend(reversed(list(_blocks(node))))


def bind_globals(module: Scope, tree: cst.Module) -> None:
    """Bind in the module's scope what functions and classes anywhere in it declare ``global`` and bind."""
    stack: list[cst.CSTNode] = list(tree.body)
    while stack:
        node = stack.pop()
        stack.extend(_blocks(node))
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            bind_body(Scope("function", module.name, module), node.body, walruses=True)
            stack.append(node.body)


def _walruses(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The targets of ``:=`` in the expressions of a statement or clause, its blocks and lambdas apart."""
    stack = [child for child in node.children if not isinstance(child, _BLOCKS)]
    while stack:
        each = stack.pop()
        if isinstance(each, cst.NamedExpr):
            yield each.target
        stack.extend(each.params.children if isinstance(each, cst.Lambda) else each.children)


def bind_target(scope: Scope, target: cst.CSTNode) -> None:
    """Bind the words of an assignment target."""
    for word in target_words(target):
        scope.bind(word)


def target_words(target: cst.CSTNode) -> Iterator[str]:
    """The plain names in an assignment target: ``a``, ``b`` and ``c`` in ``a, (b, *c), d.e``."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from target_words(element.value)


def dotted(node: cst.CSTNode | None) -> str:
    """The text of a dotted name; empty for None."""
    match node:
        case cst.Name(value=word):
            return word
        case cst.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr.value}"
        case _:
            return ""


def imported_module(node: cst.ImportFrom) -> str:
    """The module of a ``from`` import as written, with its dots: ``..utils``."""
    return "." * len(node.relative) + dotted(node.module)


def join(module: str, word: str) -> str:
    """A word of a module as written: ``.`` and ``utils`` give ``.utils``."""
    return f"{module}{word}" if module.endswith(".") else f"{module}.{word}"


def import_bindings(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str]]:
    """What an import binds: (word, name). ``import a.b`` binds ``a``; a star binds nothing here."""
    if isinstance(node, cst.ImportFrom):
        module = imported_module(node)
        aliases: Sequence[cst.ImportAlias] = () if isinstance(node.names, cst.ImportStar) else node.names
        for alias in aliases:
            word = dotted(alias.name)
            yield (dotted(alias.asname.name) if alias.asname else word), join(module, word)
    else:
        for alias in node.names:
            name = dotted(alias.name)
            if alias.asname:
                yield dotted(alias.asname.name), name
            else:
                yield (name.partition(".")[0],) * 2


def _bind_import(scope: Scope, node: cst.Import | cst.ImportFrom) -> None:
    for word, name in import_bindings(node):
        scope.bind(word, name)


def _bind_definition(scope: Scope, node: cst.FunctionDef | cst.ClassDef) -> None:
    scope.bind(node.name.value)


def _bind_assign(scope: Scope, node: cst.Assign) -> None:
    for target in node.targets:
        bind_target(scope, target.target)


def _bind_one(scope: Scope, node: cst.AnnAssign | cst.AugAssign | cst.For) -> None:
    bind_target(scope, node.target)


def _bind_with(scope: Scope, node: cst.With) -> None:
    for item in node.items:
        if item.asname:
            bind_target(scope, item.asname.name)


def _bind_handler(scope: Scope, node: cst.ExceptHandler | cst.ExceptStarHandler) -> None:
    if node.name:
        bind_target(scope, node.name.name)


def _bind_global(scope: Scope, node: cst.Global) -> None:
    for item in node.names:
        scope.redirect(item.name.value, scope.module())


def _bind_nonlocal(scope: Scope, node: cst.Nonlocal) -> None:
    for item in node.names:
        word, owner = item.name.value, scope.parent
        while owner is not None and (owner.kind == "class" or word not in owner.bound):
            owner = owner.parent
        if owner is not None:
            scope.redirect(word, owner)


def _bind_case(scope: Scope, node: cst.MatchCase) -> None:
    """Captures are the names of ``as``, star and mapping-rest patterns, however deep."""
    stack: list[cst.CSTNode] = [node.pattern]
    while stack:
        pattern = stack.pop()
        name = getattr(pattern, "name", None) if isinstance(pattern, (cst.MatchAs, cst.MatchStar)) else None
        rest = pattern.rest if isinstance(pattern, cst.MatchMapping) else None
        for word in (name, rest):
            if word is not None:
                scope.bind(word.value)
        stack.extend(pattern.children)


def _bind_alias(scope: Scope, node: cst.TypeAlias) -> None:
    scope.bind(node.name.value)


_BINDERS: dict[type, Callable[[Scope, Any], None]] = {
    cst.Import: _bind_import,
    cst.ImportFrom: _bind_import,
    cst.FunctionDef: _bind_definition,
    cst.ClassDef: _bind_definition,
    cst.Assign: _bind_assign,
    cst.AnnAssign: _bind_one,
    cst.AugAssign: _bind_one,
    cst.For: _bind_one,
    cst.With: _bind_with,
    cst.ExceptHandler: _bind_handler,
    cst.ExceptStarHandler: _bind_handler,
    cst.Global: _bind_global,
    cst.Nonlocal: _bind_nonlocal,
    cst.MatchCase: _bind_case,
    cst.TypeAlias: _bind_alias,
}


def _blocks(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements and clauses directly inside a statement, nested definitions left out."""
    kind = type(node)
    if kind is cst.SimpleStatementLine or kind is cst.SimpleStatementSuite or kind is cst.IndentedBlock:
        yield from node.body  # type: ignore[attr-defined]  # narrowed by exact type, for speed
    elif kind in _BLOCK_FIELDS:
        for field in _BLOCK_FIELDS[kind]:
            value = getattr(node, field)
            if isinstance(value, (list, tuple)):
                yield from value
            elif value is not None:
                yield value


_BLOCK_FIELDS: dict[type, tuple[str, ...]] = {
    cst.If: ("body", "orelse"),
    cst.Else: ("body",),
    cst.For: ("body", "orelse"),
    cst.While: ("body", "orelse"),
    cst.With: ("body",),
    cst.Try: ("body", "handlers", "orelse", "finalbody"),
    cst.TryStar: ("body", "handlers", "orelse", "finalbody"),
    cst.ExceptHandler: ("body",),
    cst.ExceptStarHandler: ("body",),
    cst.Finally: ("body",),
    cst.Match: ("cases",),
    cst.MatchCase: ("body",),
}

# What holds statements: they are looked at on their own.
_BLOCKS = (
    cst.BaseSuite,
    cst.BaseStatement,
    cst.Else,
    cst.Finally,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.MatchCase,
)
