"""Lowering: one walk with scopes from the tree of either parser to our own syntax tree; ``lowering_rules`` has the rules by node type."""

from __future__ import annotations

import re
from sys import intern

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.definitions import DefinitionTable, unpack
from torchrepro_lint.syntax.nodes import (
    Class,
    DefinitionStatement,
    Expression,
    Function,
    If,
    Import,
    Operation,
    Param,
    Ref,
    SimpleStatement,
    Statement,
    SyntaxTree,
    Try,
)
from torchrepro_lint.syntax.parser_tree import (
    Node,
    ParserTree,
    bind_body,
    bind_globals,
)
from torchrepro_lint.syntax.qualified_names import is_own, locals_prefix, simple_name
from torchrepro_lint.syntax.scopes import Scope
from torchrepro_lint.syntax.summary import summarise

_GLOBAL = lazy_pattern(r"(?:^|[;:])[ \t]*global[ \t]", re.MULTILINE)
_DOTTED = lazy_pattern(r"[\w.]+")


class TreeLowering:
    """Lowers one parser's tree in one walk. A function's body is walked where the function is defined."""

    def __init__(self, tree: ParserTree) -> None:
        self.tree = tree
        # Converts an expression, with its names resolved in a scope.
        self.convert = tree.converter(self)
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.assigned: dict[str, list[tuple[str, Expression]]] = {}
        self.generators: set[str] = set()
        self.stars: list[str] = []

    def lower(self) -> SyntaxTree:
        """The syntax tree of the whole text; to be called once."""
        try:
            return self._lower()
        finally:
            del self.convert  # a reference cycle: it would keep this object until garbage is collected

    def _lower(self) -> SyntaxTree:
        tree, scope = self.tree, Scope("module", ":", None)
        bind_body(tree, scope, tree.module)
        if "global" in tree.text and _GLOBAL.search(tree.text):
            bind_globals(tree, scope)
        body = self.body(scope, tree.module)
        functions, classes = tuple(sorted(self.functions)), tuple(sorted(self.classes))
        exports = tuple(sorted(scope.bound.items()))
        return SyntaxTree(
            body=body,
            functions=functions,
            classes=classes,
            assigned=DefinitionTable(self.assigned),
            imports_end=_imports_end(tree.docstring_end(), body),
            summary=summarise(body, functions, classes, self.assigned, exports, tuple(self.stars)),
        )

    def body(self, scope: Scope, block: Node | None) -> tuple[Statement, ...]:
        """The statements of a module, suite or clause, without docstrings and ``pass``."""
        tree = self.tree
        converters = tree.statements
        found: list[Statement] = []
        for node in tree.body(block):
            converter = converters.get(type(node))
            if converter is not None:
                statement = converter(self, scope, node, *tree.extent(node))
                if statement is not None:
                    found.append(statement)
        return tuple(found)

    def assign(self, target: Expression, how: str, value: Expression) -> Expression:
        """Record a definition of the plain names of a target; a destructured name gets its part of the value, or elements of it."""
        for place, part, steps in unpack(target, value, whole=how != "="):
            if type(place) is Ref and not place.path:
                for root in filter(is_own, place.roots):
                    self.assigned.setdefault(root, []).append(("[]" if steps else how, part))
        return target

    def define_function(self, scope: Scope, node: Node, start: int, end: int) -> tuple[Expression, ...]:
        """Record a function; returns what its ``def`` statement evaluates: decorators and defaults."""
        tree = self.tree
        name = scope.own(tree.name(node))
        decorators = tuple([self.convert(scope, decorator) for decorator in tree.decorators(node)])
        params = self._params(scope, node)
        annotation = tree.returns(node)
        returns = None if annotation is None else self.annotation(scope, annotation)
        inner = _function_scope(scope, name, params)
        bind_body(tree, inner, node.body)
        body = self.body(inner, node.body)
        owner = scope.name[:-1] if scope.kind == "class" else None
        generator = inner.name in self.generators
        self.functions.append(Function(start, end, name, params, decorators, body, owner, generator, returns))
        return (*decorators, *[param.default for param in params if param.default is not None])

    def define_lambda(self, scope: Scope, node: Node, start: int, end: int) -> str:
        """Record a lambda; returns its name."""
        name = scope.own(scope.numbered("<lambda>"))
        params = self._params(scope, node)
        value = self.convert(_function_scope(scope, name, params), node.body)
        body: tuple[Statement, ...] = (SimpleStatement(value.start, value.end, "return", (value,)),)
        self.functions.append(Function(start, end, name, params, (), body, None, False, None))
        return name

    def define_class(
        self, scope: Scope, node: Node, start: int, end: int
    ) -> tuple[tuple[Expression, ...], tuple[Statement, ...]]:
        """Record a class; returns what its statement evaluates, decorators and bases, and its body."""
        tree = self.tree
        name = scope.own(tree.name(node))
        decorators = tuple(self.convert(scope, decorator) for decorator in tree.decorators(node))
        bases = tuple(tree.bases(self, scope, node))
        inner = Scope("class", f"{name}.", scope)
        bind_body(tree, inner, node.body)
        body = self.body(inner, node.body)
        methods = {intern(simple_name(f.name)): f.name for f in self.functions if f.owner == name}
        self.classes.append(Class(start, end, name, bases, decorators, body, tuple(sorted(methods.items()))))
        return (*decorators, *(base.value for base in bases)), body

    def annotation(self, scope: Scope, node: Node) -> Expression:
        """Lower an annotation; one in quotes is read as the expression that it quotes, all with the span of the string."""
        quoted = self.tree.quoted(node)
        if quoted is None or not _DOTTED.fullmatch(quoted):
            return self.convert(scope, node)
        start, end = self.tree.span(node)
        word, *path = quoted.split(".")
        if not word:
            return Operation(start, end, "annotation", ())
        return Ref(start, end, scope.resolve(word), tuple(path), end)

    def _params(self, scope: Scope, node: Node) -> tuple[Param, ...]:
        found = []
        for name, kind, hint, value in self.tree.params(node):
            annotation = None if hint is None else self.annotation(scope, hint)
            default = None if value is None else self.convert(scope, value)
            found.append(Param(name, kind, annotation, default))
        return tuple(found)


def _function_scope(scope: Scope, name: str, params: tuple[Param, ...]) -> Scope:
    inner = Scope("function", locals_prefix(name), scope)
    for param in params:
        inner.bind(param.name)
    return inner


def _imports_end(docstring_end: int, body: tuple[Statement, ...]) -> int:
    """The end of the last import before the first definition; else of the docstring; else where the code starts."""
    end = docstring_end
    for statement in body:
        if isinstance(statement, DefinitionStatement):
            break
        if isinstance(statement, Import) or _only_imports(statement):
            end = statement.end
    return end


def _only_imports(statement: Statement) -> bool:
    match statement:
        case If(body=body, orelse=orelse) | Try(body=body, orelse=orelse):
            return any(isinstance(inner, Import) for inner in (*body, *orelse))
    return False
