"""Lowering: one walk with scopes from the tree of either parser to our own syntax tree.

The second half holds the rules by node type, for the expressions and statements that both parsers' trees give in the same way.
"""

# ruff: noqa: ARG001  # all functions of a table have the same parameters

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from sys import intern

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.definitions import DefinitionTable, unpack
from torchrepro_lint.syntax.nodes import (
    Assign,
    Class,
    Clause,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Import,
    Lambda,
    Loop,
    Match,
    Operation,
    Param,
    Ref,
    SimpleStatement,
    Statement,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.parser_tree import (
    Lowering,
    Node,
    ParserTree,
    ToExpression,
    ToStatement,
    bind_body,
    bind_globals,
    bind_target,
)
from torchrepro_lint.syntax.qualified_names import comprehension_prefix, is_own, locals_prefix, simple_name, super_value
from torchrepro_lint.syntax.scopes import Scope, import_bindings
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


# Longer strings are prose or data: no rule reads them, and they would fill the memory.
MAX_TEXT_LENGTH = 1000
# A longer chain of operations is nested too deeply for the analyses; libcst gives up at about the same length.
MAX_CHAIN_LENGTH = 450


# Integers of more bits may exceed the limit that Python sets on decimal digits.
_MAX_BITS = 2000


def resolve_super(scope: Scope, func: Expression) -> Expression:
    """The callee of a call, with ``super`` resolved to that of the enclosing class."""
    if type(func) is Ref and func.roots == ("builtins.super",) and (owner := scope.owner()):
        return func._replace(roots=(super_value(owner),))
    return func


def unary_operation(operator: str, value: Expression, start: int, end: int) -> Expression:
    """A unary operation; ``-1`` is a constant."""
    if operator == "-" and type(value) is Constant and isinstance(value.value, (int, float, complex)):
        return Constant(start, end, -value.value)
    return Operation(start, end, operator, (value,))


def number_literal(value: complex | None, start: int, end: int) -> Expression:
    """A number literal; one too long to be printed in digits, or that Python refuses (None), is unknown."""
    if value is None or (type(value) is int and value.bit_length() > _MAX_BITS):
        return Operation(start, end, "?", ())
    return Constant(start, end, value)


def is_documentation(expression: Expression) -> bool:
    """Whether an expression that is a statement is documentation: a literal, or a string longer than ``MAX_TEXT_LENGTH``."""
    match expression:
        case Constant() | Operation(op="f", operands=()):
            return True
    return False


def concatenated_strings(left: Expression, right: Expression, start: int, end: int) -> Expression:
    """The concatenation of adjacent strings."""
    match left, right:
        case Constant(value=str(one)), Constant(value=str(other)):
            return Constant(start, end, one + other)
        case Constant(value=bytes(first)), Constant(value=bytes(second)):
            return Constant(start, end, first + second)
    return Operation(start, end, "f", (left, right))


def _comparison(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    left = lowering.convert(scope, node.left)
    parts: list[tuple[str, Expression, Expression]] = []
    for sign, comparator in lowering.tree.compared(node):
        right = lowering.convert(scope, comparator)
        parts.append((sign, left, right))
        left = right
    if len(parts) == 1:
        sign, *operands = parts[0]
        return Operation(start, end, sign, tuple(operands))
    return Operation(start, end, "and", tuple(Operation(a.start, b.end, sign, (a, b)) for sign, a, b in parts))


def _conditional(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    parts = (node.test, node.body, node.orelse)
    return Operation(start, end, "if", tuple(lowering.convert(scope, part) for part in parts))


def _walrus(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    value = lowering.convert(scope, node.value)
    bind_target(lowering.tree, scope.function(), node.target)
    return Operation(start, end, ":=", (lowering.assign(lowering.convert(scope, node.target), "=", value), value))


def _lambda(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    return Lambda(start, end, lowering.define_lambda(scope, node, start, end))


def comprehension(kind: str, *fields: str) -> ToExpression:
    """The rule for a comprehension whose elements are in these fields of the node."""

    def convert(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
        """The first source is evaluated in the outer scope; everything else sees the targets."""
        inner = Scope("comprehension", comprehension_prefix(scope.name, scope.numbered("<comp>")), scope)
        clauses: list[Clause] = []
        reading = scope
        for target, iterated, conditions in lowering.tree.loops(node):
            source = lowering.convert(reading, iterated)
            bind_target(lowering.tree, inner, target)
            converted = lowering.assign(lowering.convert(inner, target), "[]", source)
            tests = tuple(lowering.convert(inner, condition) for condition in conditions)
            clauses.append(Clause(converted, source, tests))
            reading = inner
        elements = tuple(lowering.convert(inner, getattr(node, field)) for field in fields)
        return Comprehension(start, end, kind, elements, tuple(clauses))

    return convert


# By the names of the node types.
EXPRESSIONS: Mapping[str, ToExpression] = {
    "Compare": _comparison,
    "Comparison": _comparison,
    "IfExp": _conditional,
    "NamedExpr": _walrus,
    "Lambda": _lambda,
    "ListComp": comprehension("list", "elt"),
    "SetComp": comprehension("set", "elt"),
    "DictComp": comprehension("dict", "key", "value"),
    "GeneratorExp": comprehension("generator", "elt"),
}


def _expression_statement(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement | None:
    value = lowering.convert(scope, node.value)
    return None if is_documentation(value) else ExpressionStatement(start, end, value)


def _assign(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    value = lowering.convert(scope, node.value)
    targets = lowering.tree.targets(node)
    if scope.rebound:
        _pass_rebinding(lowering, scope, targets)
    converted = tuple([lowering.assign(lowering.convert(scope, target), "=", value) for target in targets])
    return Assign(start, end, converted, value, "=", None)


def _pass_rebinding(lowering: Lowering, scope: Scope, targets: Sequence[Node]) -> None:
    """From here on a word that an import has bound stands for what is assigned."""
    for target in targets:
        word = lowering.tree.word(target)
        if word is not None:
            scope.rebound.pop(word, None)


def _annotated(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    annotation = lowering.annotation(scope, lowering.tree.annotation(node))
    value = lowering.convert(scope, node.value) if node.value else None
    target = lowering.assign(lowering.convert(scope, node.target), ":", annotation)
    if value is not None:
        lowering.assign(target, "=", value)
    return Assign(start, end, (target,), value, ":", annotation)


def _augmented(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    value = lowering.convert(scope, node.value)
    op = lowering.tree.operator(node)
    target = lowering.assign(lowering.convert(scope, node.target), op, value)
    return Assign(start, end, (target,), value, op, None)


def _import(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    imported = lowering.tree.imported(node)
    if imported.star:
        lowering.stars.extend(imported.modules)
        return Import(start, end, imported.modules, tuple(("*", module) for module in imported.modules))
    return Import(start, end, imported.modules, tuple(import_bindings(imported)))


def _if(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    """A chain of ``elif`` nests in ``orelse``; it is built from its end, without recursion, since it may have thousands of links."""
    tree = lowering.tree
    chain = [node]
    rest = tree.body(node.orelse)
    while len(rest) == 1 and type(rest[0]) is type(node):
        chain.append(rest[0])
        rest = tree.body(rest[0].orelse)
    parts = [(lowering.convert(scope, link.test), lowering.body(scope, link.body)) for link in chain]
    orelse = lowering.body(scope, chain[-1].orelse)
    for link, (test, body) in zip(reversed(chain), reversed(parts), strict=True):
        orelse = (If(*tree.extent(link), test, body, orelse),)
    (whole,) = orelse
    return whole


def _for(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    source = lowering.convert(scope, node.iter)
    target = lowering.assign(lowering.convert(scope, node.target), "[]", source)
    return _loop(lowering, scope, node, target, source, start, end)


def _while(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    return _loop(lowering, scope, node, None, lowering.convert(scope, node.test), start, end)


def _loop(
    lowering: Lowering, scope: Scope, node: Node, target: Expression | None, source: Expression, start: int, end: int
) -> Statement:
    body = lowering.body(scope, node.body)
    return Loop(start, end, target, source, body, lowering.body(scope, node.orelse))


def _with(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    items: list[tuple[Expression, Expression | None]] = []
    for context, name in lowering.tree.entered(node):
        value = lowering.convert(scope, context)
        target = None
        if name is not None:
            target = lowering.assign(lowering.convert(scope, name), "with", value)
        items.append((value, target))
    return With(start, end, tuple(items), lowering.body(scope, node.body))


def _try(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    body = lowering.body(scope, node.body)
    handlers = tuple(
        (lowering.convert(scope, handler.type) if handler.type else None, lowering.body(scope, handler.body))
        for handler in node.handlers
    )
    orelse, final = (lowering.body(scope, block) for block in (node.orelse, node.finalbody))
    return Try(start, end, body, handlers, orelse, final)


def _match(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    subject = lowering.convert(scope, node.subject)
    cases = tuple(
        (lowering.convert(scope, case.guard) if case.guard else None, lowering.body(scope, case.body))
        for case in node.cases
    )
    return Match(start, end, subject, cases)


def _function(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    name = scope.own(lowering.tree.name(node))
    return DefinitionStatement(start, end, name, lowering.define_function(scope, node, start, end), ())


def _class(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    values, body = lowering.define_class(scope, node, start, end)
    return DefinitionStatement(start, end, scope.own(lowering.tree.name(node)), values, body)


def _alias(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    target, value = lowering.convert(scope, node.name), lowering.convert(scope, node.value)
    lowering.assign(target, "=", value)
    return Assign(start, end, (target,), value, "=", None)


def _simple_statement(kind: str, *fields: str) -> ToStatement:
    def convert(lowering: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
        parts = [part for field in fields if (part := getattr(node, field)) is not None]
        values = tuple([lowering.convert(scope, part) for part in parts])
        return SimpleStatement(start, end, kind, values)

    return convert


# By the names of the parsers' node types; where the parsers' names differ, both are listed. ``ast`` has its own rule for ``del``.
STATEMENTS: Mapping[str, Callable[..., Statement | None]] = {
    "Expr": _expression_statement,
    "Assign": _assign,
    "AnnAssign": _annotated,
    "AugAssign": _augmented,
    "Import": _import,
    "ImportFrom": _import,
    "If": _if,
    "For": _for,
    "AsyncFor": _for,
    "While": _while,
    "With": _with,
    "AsyncWith": _with,
    "Try": _try,
    "TryStar": _try,
    "Match": _match,
    "FunctionDef": _function,
    "AsyncFunctionDef": _function,
    "ClassDef": _class,
    "TypeAlias": _alias,
    "Return": _simple_statement("return", "value"),
    "Raise": _simple_statement("raise", "exc"),
    "Assert": _simple_statement("assert", "test", "msg"),
    "Del": _simple_statement("del", "target"),
    "Break": _simple_statement("break"),
    "Continue": _simple_statement("continue"),
}
