"""Scopes and bindings of one file: which names a word may stand for, and what import statements and bodies bind.

Every binding of a scope counts, so a word keeps all its candidates: ``try: import cupy as np`` next to ``import numpy as np`` gives
both. ``ParserTree`` is what the binding pass and the lowering ask of a parsed text, whichever parser made it.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from torchrepro_lint.query.memo_tables import interned_names
from torchrepro_lint.syntax.nodes import Arg, Expression, Statement
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


# A node of either parser: opaque to everything but its own tree.
Node: TypeAlias = Any
ToExpression: TypeAlias = "Callable[[Lowering, Scope, Node, int, int], Expression]"
ToStatement: TypeAlias = "Callable[[Lowering, Scope, Node, int, int], Statement | None]"
Convert: TypeAlias = "Callable[[Scope, Node], Expression]"
Binder: TypeAlias = "Callable[[ParserTree, Scope, Node], None]"


class UnreliableTree(Exception):  # noqa: N818  no error: another parser is to be asked
    """The parser's tree cannot be trusted for the text, so the reference parser is asked."""


class Parameter(NamedTuple):
    """A parameter before its annotation and default are converted; ``kind`` as in ``nodes.Param``."""

    name: str
    kind: str
    annotation: Node | None
    default: Node | None


class ComprehensionClause(NamedTuple):
    """``for target in source if tests`` of a comprehension, in the parser's nodes."""

    target: Node
    source: Node
    tests: Sequence[Node]


class Lowering(Protocol):
    """The lowering in progress, as the converters of nodes see it; ``lowering.TreeLowering`` implements it."""

    convert: Convert
    generators: set[str]
    stars: list[str]

    @property
    def tree(self) -> ParserTree:
        """The parser's tree that is lowered."""
        ...

    def body(self, scope: Scope, block: Node | None) -> tuple[Statement, ...]:
        """The statements of a module, suite or clause."""
        ...

    def assign(self, target: Expression, how: str, value: Expression) -> Expression:
        """Record a definition of the plain names of a target; returns the target."""
        ...

    def annotation(self, scope: Scope, node: Node) -> Expression:
        """Lower an annotation; one in quotes is read as the expression that it quotes."""
        ...

    def define_function(self, scope: Scope, node: Node, start: int, end: int) -> tuple[Expression, ...]:
        """Record a function; returns what its ``def`` statement evaluates."""
        ...

    def define_lambda(self, scope: Scope, node: Node, start: int, end: int) -> str:
        """Record a lambda; returns its name."""
        ...

    def define_class(
        self, scope: Scope, node: Node, start: int, end: int
    ) -> tuple[tuple[Expression, ...], tuple[Statement, ...]]:
        """Record a class; returns what its statement evaluates, and its body."""
        ...


class ParserTree(ABC):
    """A parser's tree of a text. Its nodes are opaque to the lowering, but for fields that both parsers name alike."""

    text: str
    module: Node
    # Whether the text has a `:=` at all: searching every statement costs time.
    walrus: bool
    expressions: Mapping[type, ToExpression]
    statements: Mapping[type, ToStatement]
    binders: Mapping[type, Binder]
    # The fields of compound statements and clauses that hold statements or clauses.
    blocks: Mapping[type, tuple[str, ...]]
    # Converts an expression of unknown type.
    other: ToExpression
    # The span of a node without its own parentheses.
    span: Callable[[Node], tuple[int, int]]

    def converter(self, lowering: Lowering) -> Convert:
        """The function that converts expressions of this tree for a lowering."""
        span, converters, other = self.span, self.expressions, self.other

        def convert(scope: Scope, node: Node) -> Expression:
            start, end = span(node)
            return converters.get(type(node), other)(lowering, scope, node, start, end)

        return convert

    @abstractmethod
    def body(self, block: Node | None) -> Sequence[Node]:
        """The statements of a block, or the clauses of a statement, in order."""

    @abstractmethod
    def extent(self, statement: Node) -> tuple[int, int]:
        """The span of a statement: up to the end of its last small statement, without a semicolon."""

    @abstractmethod
    def walruses(self, node: Node) -> Iterable[Node]:
        """The targets of ``:=`` in the expressions of a statement or clause, without its blocks and the bodies of lambdas."""

    @abstractmethod
    def docstring_end(self) -> int:
        """The end of the statement that documents the module; 0 where there is none."""

    # --- targets ---

    @abstractmethod
    def word(self, target: Node) -> str | None:
        """The identifier of a plain name; None for any other target."""

    @abstractmethod
    def elements(self, target: Node) -> Iterable[tuple[Node, bool]]:
        """The elements of a tuple or list, and whether they are starred; none for any other node."""

    @abstractmethod
    def targets(self, assign: Node) -> Sequence[Node]:
        """The targets of ``a = b = value``."""

    @abstractmethod
    def annotation(self, assign: Node) -> Node:
        """The annotation of ``a: annotation = value``."""

    @abstractmethod
    def operator(self, assign: Node) -> str:
        """``+=`` and the like; ``?=`` for those that no analysis distinguishes."""

    @abstractmethod
    def entered(self, node: Node) -> Iterator[tuple[Node, Node | None]]:
        """The context managers of a ``with``, each with its target."""

    @abstractmethod
    def caught(self, handler: Node) -> str | None:
        """The name of ``except ... as name``."""

    @abstractmethod
    def captured(self, case: Node) -> Iterator[str]:
        """The names that the pattern of a ``case`` binds, at any depth."""

    @abstractmethod
    def declared(self, node: Node) -> Iterator[str]:
        """The names of ``global`` or ``nonlocal``."""

    @abstractmethod
    def imported(self, node: Node) -> Imported:
        """The contents of an import statement."""

    # --- definitions ---

    @abstractmethod
    def name(self, node: Node) -> str:
        """The name that a ``def`` or ``class`` binds."""

    @abstractmethod
    def decorators(self, node: Node) -> Sequence[Node]:
        """The expressions after the ``@``."""

    @abstractmethod
    def params(self, node: Node) -> Iterator[Parameter]:
        """The parameters of a function or lambda, in order."""

    @abstractmethod
    def returns(self, node: Node) -> Node | None:
        """The return annotation of a function."""

    @abstractmethod
    def bases(self, lowering: Lowering, scope: Scope, node: Node) -> Iterable[Arg]:
        """The bases and keywords of a class, in order."""

    @abstractmethod
    def quoted(self, annotation: Node) -> str | None:
        """The text of an annotation that is a string literal; None for any other."""

    # --- expressions ---

    @abstractmethod
    def loops(self, comprehension: Node) -> Iterator[ComprehensionClause]:
        """The ``for`` clauses of a comprehension."""

    @abstractmethod
    def compared(self, comparison: Node) -> Iterator[tuple[str, Node]]:
        """The operators of a comparison, each with its right operand."""


def bind_body(tree: ParserTree, scope: Scope, block: Node) -> None:
    """Bind in ``scope`` all names that the statements of a body bind, including nested blocks, but not nested scopes."""
    body = tree.body(block)
    unconditional = set(body)
    imported: dict[str, str] = {}
    binders, blocks, walrus = tree.binders, tree.blocks, tree.walrus
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        kind = type(node)
        binder = binders.get(kind)
        if binder is not None:
            if binder in _REPLACING and node in unconditional:
                _drop_replaced(tree, scope, imported, node)
            binder(tree, scope, node)
            if imported and binder is _bind_assign and node in unconditional:
                _rebind(tree, scope, imported, node)
        if walrus:
            for target in tree.walruses(node):
                bind_target(tree, scope, target)
        if kind in blocks:
            stack.extend(reversed(list(_inner(tree, node))))


def bind_globals(tree: ParserTree, module: Scope) -> None:
    """Bind in the module's scope the names that functions and classes anywhere in it declare ``global`` and bind."""
    stack = list(tree.body(tree.module))
    while stack:
        node = stack.pop()
        if tree.binders.get(type(node)) is _bind_definition:
            bind_body(tree, Scope("function", module.name, module), node.body)
            stack.extend(tree.body(node.body))
        elif type(node) in tree.blocks:
            stack.extend(_inner(tree, node))


def _inner(tree: ParserTree, node: Node) -> Iterator[Node]:
    """The statements and clauses directly inside a statement, without nested definitions."""
    for field in tree.blocks[type(node)]:
        yield from tree.body(getattr(node, field))


def bind_target(tree: ParserTree, scope: Scope, target: Node) -> None:
    """Bind the names of an assignment target."""
    word = tree.word(target)
    for each in target_names(tree, target) if word is None else (word,):
        scope.bind(each)


def target_names(tree: ParserTree, target: Node) -> Iterator[str]:
    """The plain names in an assignment target: ``a``, ``b`` and ``c`` in ``a, (b, *c), d.e``."""
    word = tree.word(target)
    if word is not None:
        yield word
    else:
        for element, _ in tree.elements(target):
            yield from target_names(tree, element)


def _drop_replaced(tree: ParserTree, scope: Scope, imported: dict[str, str], node: Node) -> None:
    """Drop the bindings of an earlier unconditional import that a later one, or a definition, replaces."""
    defines = tree.binders[type(node)] is _bind_definition
    for word, name in [(tree.name(node), "")] if defines else import_bindings(tree.imported(node)):
        earlier = imported.get(word)
        if earlier and earlier != name:
            scope.unbind(word, earlier)
        imported[word] = name


def _rebind(tree: ParserTree, scope: Scope, imported: dict[str, str], node: Node) -> None:
    """An assignment replaces an unconditional import from there on: ``random = random.Random(0)``."""
    for word in map(tree.word, tree.targets(node)):
        earlier = imported.pop(word, "") if word is not None else ""
        if word is not None and earlier and scope.bound[word] == tuple(sorted((earlier, scope.variable(word)))):
            scope.unbind(word, earlier)
            scope.rebound[word] = interned_names((earlier,))


def _bind_import(tree: ParserTree, scope: Scope, node: Node) -> None:
    for word, name in import_bindings(tree.imported(node)):
        scope.bind(word, name)


def _bind_definition(tree: ParserTree, scope: Scope, node: Node) -> None:
    scope.bind(tree.name(node))


def _bind_assign(tree: ParserTree, scope: Scope, node: Node) -> None:
    for target in tree.targets(node):
        bind_target(tree, scope, target)


def _bind_one(tree: ParserTree, scope: Scope, node: Node) -> None:
    bind_target(tree, scope, node.target)


def _bind_alias(tree: ParserTree, scope: Scope, node: Node) -> None:
    bind_target(tree, scope, node.name)


def _bind_with(tree: ParserTree, scope: Scope, node: Node) -> None:
    for _, target in tree.entered(node):
        if target is not None:
            bind_target(tree, scope, target)


def _bind_handler(tree: ParserTree, scope: Scope, node: Node) -> None:
    word = tree.caught(node)
    if word is not None:
        scope.bind(word)


def _bind_case(tree: ParserTree, scope: Scope, node: Node) -> None:
    for word in tree.captured(node):
        scope.bind(word)


def _bind_global(tree: ParserTree, scope: Scope, node: Node) -> None:
    for word in tree.declared(node):
        scope.redirect(word, scope.module())


def _bind_nonlocal(tree: ParserTree, scope: Scope, node: Node) -> None:
    for word in tree.declared(node):
        owner = scope.parent
        while owner is not None and (owner.kind == "class" or word not in owner.bound):
            owner = owner.parent
        if owner is not None:
            scope.redirect(word, owner)


_REPLACING = frozenset({_bind_import, _bind_definition})

# By the names of the node types; where the parsers' names differ, both are listed.
BINDERS: Mapping[str, Binder] = {
    "Import": _bind_import,
    "ImportFrom": _bind_import,
    "FunctionDef": _bind_definition,
    "AsyncFunctionDef": _bind_definition,
    "ClassDef": _bind_definition,
    "Assign": _bind_assign,
    "AnnAssign": _bind_one,
    "AugAssign": _bind_one,
    "For": _bind_one,
    "AsyncFor": _bind_one,
    "With": _bind_with,
    "AsyncWith": _bind_with,
    "ExceptHandler": _bind_handler,
    "ExceptStarHandler": _bind_handler,
    "Global": _bind_global,
    "Nonlocal": _bind_nonlocal,
    "MatchCase": _bind_case,
    "match_case": _bind_case,
    "TypeAlias": _bind_alias,
}

BLOCKS: Mapping[str, tuple[str, ...]] = {
    "If": ("body", "orelse"),
    "For": ("body", "orelse"),
    "AsyncFor": ("body", "orelse"),
    "While": ("body", "orelse"),
    "With": ("body",),
    "AsyncWith": ("body",),
    "Try": ("body", "handlers", "orelse", "finalbody"),
    "TryStar": ("body", "handlers", "orelse", "finalbody"),
    "ExceptHandler": ("body",),
    "ExceptStarHandler": ("body",),
    "Match": ("cases",),
    "MatchCase": ("body",),
    "match_case": ("body",),
}
