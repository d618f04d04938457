"""A parser's tree, as the binding pass and the lowering see it whichever parser made it, and the binding pass: what its bodies bind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from torchrepro_lint.syntax.nodes import Arg, Expression, Statement
from torchrepro_lint.syntax.qualified_names import interned_names
from torchrepro_lint.syntax.scopes import Imported, Scope, import_bindings

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
