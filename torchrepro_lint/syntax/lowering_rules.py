"""The expressions of ``facts`` that both kinds of syntax tree give in the same way.

Statements of a syntax tree → the statements of ``facts``: one function per node type, found by a table.
"""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

from collections.abc import Callable, Mapping

from torchrepro_lint.syntax.nodes import (
    Assign,
    Clause,
    Collection,
    Comprehension,
    Constant,
    Define,
    Do,
    Expression,
    If,
    Import,
    Lambda,
    Leave,
    Loop,
    Match,
    Operation,
    Ref,
    Statement,
    Try,
    With,
)
from torchrepro_lint.syntax.scope_builder import Lowering, Node, ToExpression, ToStatement, bind_target
from torchrepro_lint.syntax.scopes import Scope, import_bindings

# Longer texts are prose or data: no rule reads them, and they would fill the memory.
LONGEST_TEXT = 1000
# A longer chain of operations is nested too deeply for what comes after: about where libcst's tree gives up, too.
LONGEST_CHAIN = 450


# Python writes a number of so many bits in digits, however few it is told to write at most.
_MOST_BITS = 2000


def called(scope: Scope, func: Expression) -> Expression:
    """What a call calls: ``super`` is that of the class around it."""
    if type(func) is Ref and func.roots == ("builtins.super",) and (owner := scope.owner()):
        return func._replace(roots=(f"{owner}<super>",))
    return func


def signed(operator: str, value: Expression, start: int, end: int) -> Expression:
    """A unary operation; ``-1`` is a constant."""
    if operator == "-" and type(value) is Constant and isinstance(value.value, (int, float, complex)):
        return Constant(start, end, -value.value)
    return Operation(start, end, operator, (value,))


def number(value: complex | None, start: int, end: int) -> Expression:
    """A literal number; one that Python would not write down in digits, or does not read (None), is not known."""
    if value is None or (type(value) is int and value.bit_length() > _MOST_BITS):
        return Operation(start, end, "?", ())
    return Constant(start, end, value)


def is_text(expression: Expression) -> bool:
    """Whether an expression is a literal, or a string that is longer than ``LONGEST_TEXT``: as a statement, documentation."""
    match expression:
        case Constant() | Operation(op="f", operands=()):
            return True
    return False


def joined(left: Expression, right: Expression, start: int, end: int) -> Expression:
    """Adjacent strings."""
    match left, right:
        case Constant(value=str(one)), Constant(value=str(other)):
            return Constant(start, end, one + other)
        case Constant(value=bytes(first)), Constant(value=bytes(second)):
            return Constant(start, end, first + second)
    return Operation(start, end, "f", (left, right))


def _comparison(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    left = collector.convert(scope, node.left)
    parts: list[tuple[str, Expression, Expression]] = []
    for sign, comparator in collector.tree.compared(node):
        right = collector.convert(scope, comparator)
        parts.append((sign, left, right))
        left = right
    if len(parts) == 1:
        sign, *operands = parts[0]
        return Operation(start, end, sign, tuple(operands))
    return Operation(start, end, "and", tuple(Operation(a.start, b.end, sign, (a, b)) for sign, a, b in parts))


def _conditional(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    parts = (node.test, node.body, node.orelse)
    return Operation(start, end, "if", tuple(collector.convert(scope, part) for part in parts))


def _walrus(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    value = collector.convert(scope, node.value)
    owner = scope.function()
    bind_target(collector.tree, owner, node.target)
    collector.assign(owner, node.target, "=", value)
    return Operation(start, end, ":=", (collector.convert(scope, node.target), value))


def _lambda(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
    return Lambda(start, end, collector.define_lambda(scope, node, start, end))


def comprehension(kind: str, *fields: str) -> ToExpression:
    """A comprehension with these elements."""

    def convert(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Expression:
        """The first source is evaluated outside; everything else sees the targets."""
        prefix = scope.name if scope.name.endswith("<locals>.") else f"{scope.name}<locals>."
        inner = Scope("comprehension", f"{prefix}{scope.numbered('<comp>')}.", scope)
        clauses: list[Clause] = []
        reading = scope
        for target, iterated, conditions in collector.tree.loops(node):
            source = collector.convert(reading, iterated)
            bind_target(collector.tree, inner, target)
            collector.assign(inner, target, "[]", source)
            tests = tuple(collector.convert(inner, condition) for condition in conditions)
            clauses.append(Clause(collector.convert(inner, target), source, tests))
            reading = inner
        elements = tuple(collector.convert(inner, getattr(node, field)) for field in fields)
        return Comprehension(start, end, kind, elements, tuple(clauses))

    return convert


# By the names of the parsers' node types.
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


def _do(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement | None:
    value = collector.convert(scope, node.value)
    return None if is_text(value) else Do(start, end, value)


def _assign(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    value = collector.convert(scope, node.value)
    targets = collector.tree.targets(node)
    for target in targets:
        _pair(collector, scope, target, value)
    converted = tuple([collector.convert(scope, target) for target in targets])
    return Assign(start, end, converted, value, "=", None)


def _pair(collector: Lowering, scope: Scope, target: Node, value: Expression) -> None:
    """Note assignments; ``a, b = f(), g()`` gives each name its own value."""
    if type(value) is Collection and value.kind in ("tuple", "list"):
        elements = list(collector.tree.elements(target))
        if elements and len(elements) == len(value.items) and not any(starred for _, starred in elements):
            for (element, _), item in zip(elements, value.items, strict=True):
                assert item is not None
                _pair(collector, scope, element, item)
            return
    collector.assign(scope, target, "=", value)


def _annotated(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    annotation = collector.annotation(scope, collector.tree.annotation(node))
    collector.assign(scope, node.target, ":", annotation)
    value = collector.convert(scope, node.value) if node.value else None
    if value is not None:
        collector.assign(scope, node.target, "=", value)
    return Assign(start, end, (collector.convert(scope, node.target),), value, ":", annotation)


def _augmented(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    value = collector.convert(scope, node.value)
    op = collector.tree.operator(node)
    collector.assign(scope, node.target, op, value)
    return Assign(start, end, (collector.convert(scope, node.target),), value, op, None)


def _import(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    imported = collector.tree.imported(node)
    if imported.star:
        collector.stars.extend(imported.modules)
        return Import(start, end, imported.modules, tuple(("*", module) for module in imported.modules))
    return Import(start, end, imported.modules, tuple(import_bindings(imported)))


def _if(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    """A chain of ``elif`` nests in the other branch, built from its end: 3,000 of them are no recursion."""
    tree = collector.tree
    chain = [node]
    rest = tree.body(node.orelse)
    while len(rest) == 1 and type(rest[0]) is type(node):
        chain.append(rest[0])
        rest = tree.body(rest[0].orelse)
    parts = [(collector.convert(scope, link.test), collector.body(scope, link.body)) for link in chain]
    orelse = collector.body(scope, chain[-1].orelse)
    for link, (test, body) in zip(reversed(chain), reversed(parts), strict=True):
        orelse = (If(*tree.extent(link), test, body, orelse),)
    (whole,) = orelse
    return whole


def _for(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    source = collector.convert(scope, node.iter)
    collector.assign(scope, node.target, "[]", source)
    target = collector.convert(scope, node.target)
    return _loop(collector, scope, node, target, source, start, end)


def _while(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    return _loop(collector, scope, node, None, collector.convert(scope, node.test), start, end)


def _loop(
    collector: Lowering, scope: Scope, node: Node, target: Expression | None, source: Expression, start: int, end: int
) -> Statement:
    body = collector.body(scope, node.body)
    return Loop(start, end, target, source, body, collector.body(scope, node.orelse))


def _with(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    items: list[tuple[Expression, Expression | None]] = []
    for context, name in collector.tree.entered(node):
        value = collector.convert(scope, context)
        target = None
        if name is not None:
            collector.assign(scope, name, "with", value)
            target = collector.convert(scope, name)
        items.append((value, target))
    return With(start, end, tuple(items), collector.body(scope, node.body))


def _try(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    body = collector.body(scope, node.body)
    handlers = tuple(
        (collector.convert(scope, handler.type) if handler.type else None, collector.body(scope, handler.body))
        for handler in node.handlers
    )
    orelse, final = (collector.body(scope, block) for block in (node.orelse, node.finalbody))
    return Try(start, end, body, handlers, orelse, final)


def _match(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    subject = collector.convert(scope, node.subject)
    cases = tuple(
        (collector.convert(scope, case.guard) if case.guard else None, collector.body(scope, case.body))
        for case in node.cases
    )
    return Match(start, end, subject, cases)


def _function(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    name = scope.own(collector.tree.name(node))
    return Define(start, end, name, collector.define_function(scope, node, start, end), ())


def _class(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    values, body = collector.define_class(scope, node, start, end)
    return Define(start, end, scope.own(collector.tree.name(node)), values, body)


def _alias(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
    target, value = collector.convert(scope, node.name), collector.convert(scope, node.value)
    collector.assign(scope, node.name, "=", value)
    return Assign(start, end, (target,), value, "=", None)


def _leave(kind: str, *fields: str) -> ToStatement:
    def convert(collector: Lowering, scope: Scope, node: Node, start: int, end: int) -> Statement:
        parts = [part for field in fields if (part := getattr(node, field)) is not None]
        values = tuple([collector.convert(scope, part) for part in parts])
        return Leave(start, end, kind, values)

    return convert


# By the names of the parsers' node types; where they differ, both stand here. ``del`` is each tree's own affair.
STATEMENTS: Mapping[str, Callable[..., Statement | None]] = {
    "Expr": _do,
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
    "Return": _leave("return", "value"),
    "Raise": _leave("raise", "exc"),
    "Assert": _leave("assert", "test", "msg"),
    "Del": _leave("del", "target"),
    "Break": _leave("break"),
    "Continue": _leave("continue"),
}
