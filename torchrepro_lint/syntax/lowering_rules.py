"""Lowering rules by node type, for the expressions and statements that both parsers' trees give in the same way."""

# ruff: noqa: ARG001  # all functions of a table have the same parameters

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TypeVar

from torchrepro_lint.syntax.nodes import (
    Assign,
    Clause,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    If,
    Import,
    Lambda,
    Loop,
    Match,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Try,
    With,
)
from torchrepro_lint.syntax.parser_tree import Lowering, Node, ToExpression, ToStatement, bind_target
from torchrepro_lint.syntax.qualified_names import comprehension_prefix, super_value
from torchrepro_lint.syntax.scopes import Scope, import_bindings

# Longer strings are prose or data: no rule reads them, and they would fill the memory.
MAX_TEXT_LENGTH = 1000
# A longer chain of operations is nested too deeply for the analyses; libcst gives up at about the same length.
MAX_CHAIN_LENGTH = 450


# Integers of more bits may exceed the limit that Python sets on decimal digits.
_MAX_BITS = 2000


def resolve_builtin(scope: Scope, func: Expression, *, bare: bool) -> Expression:
    """The callee of a call, with ``super`` resolved to that of the enclosing class, and ``locals`` at the top level to ``globals``, as
    ``vars`` if the call is ``bare``, that is, has no arguments.
    """
    if type(func) is Ref and func.roots == ("builtins.super",) and (owner := scope.owner()):
        return func._replace(roots=(super_value(owner),))
    if (
        type(func) is Ref
        and scope.kind == "module"
        and (func.roots == ("builtins.locals",) or (bare and func.roots == ("builtins.vars",)))
    ):
        return func._replace(roots=("builtins.globals",))
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


_T = TypeVar("_T")


def by_node_type(library: ModuleType, table: Mapping[str, _T]) -> dict[type, _T]:
    """A table by node type, from one by type name; both parsers mostly use the names of Python's grammar."""
    return {getattr(library, name): value for name, value in table.items() if hasattr(library, name)}
