"""The expressions of ``facts`` that both kinds of syntax tree give in the same way."""

from __future__ import annotations

from collections.abc import Mapping

from torchrepro_lint.bindings import bind_target
from torchrepro_lint.facts import Clause, Comprehension, Constant, Expression, Lambda, Operation, Ref
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.tree import Lowering, Node, ToExpression

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
