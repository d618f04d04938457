"""libcst expressions → the expressions of ``facts``: one function per node type, found by a table."""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchrepro_lint.bindings import bind_target
from torchrepro_lint.facts import (
    Arg,
    Attribute,
    Call,
    Clause,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.scopes import Scope

if TYPE_CHECKING:
    from torchrepro_lint.collect import Collector

# Longer texts are prose or data: no rule reads them, and they would fill the memory.
_LONGEST_TEXT = 1000

_Convert = Callable[["Collector", Scope, Any, int, int], Expression]


def convert(collector: Collector, scope: Scope, node: cst.CSTNode) -> Expression:
    """The record of an expression; names are resolved in ``scope``."""
    start, end = collector.offsets.inner(node)
    converter = _CONVERTERS.get(type(node), _other)
    return converter(collector, scope, node, start, end)


def _name(collector: Collector, scope: Scope, node: cst.Name, start: int, end: int) -> Expression:
    constant = _NAMED_CONSTANTS.get(node.value, ...)
    if constant is not ...:
        return Constant(start, end, constant)
    return Ref(start, end, scope.resolve(node.value), (), end)


def _attribute(collector: Collector, scope: Scope, node: cst.Attribute, start: int, end: int) -> Expression:
    path: list[str] = []
    base: cst.BaseExpression = node
    while type(base) is cst.Attribute:
        path.append(base.attr.value)
        base = base.value
    base_end = collector.offsets.outer(node.value)[1]
    if type(base) is cst.Name and base.value not in _NAMED_CONSTANTS:
        return Ref(start, end, scope.resolve(base.value), tuple(reversed(path)), base_end)
    return Attribute(start, end, convert(collector, scope, node.value), node.attr.value, base_end)


def _call(collector: Collector, scope: Scope, node: cst.Call, start: int, end: int) -> Expression:
    func = convert(collector, scope, node.func)
    if type(func) is Ref and func.roots == ("builtins.super",) and (owner := scope.owner()):
        func = func._replace(roots=(f"{owner}<super>",))
    gap = node.whitespace_after_func
    width = len(gap.value) if type(gap) is cst.SimpleWhitespace else len(collector.tree.code_for_node(gap))
    opening = collector.offsets.outer(node.func)[1] + width + 1
    return Call(start, end, func, tuple(arguments(collector, scope, node.args)), opening)


def arguments(collector: Collector, scope: Scope, args: Any) -> Iterator[Arg]:
    """The records of the arguments of a call or of a class's bases."""
    for arg in args:
        start, end = collector.offsets.outer(arg.value)
        keyword = arg.keyword.value if arg.keyword else None
        yield Arg(start, end, keyword, arg.star, convert(collector, scope, arg.value))


def _subscript(collector: Collector, scope: Scope, node: cst.Subscript, start: int, end: int) -> Expression:
    value = convert(collector, scope, node.value)
    index = tuple(_index(collector, scope, element.slice) for element in node.slice)
    return Subscript(start, end, value, index, collector.offsets.outer(node.value)[1])


def _index(collector: Collector, scope: Scope, node: cst.BaseSlice) -> Expression:
    if isinstance(node, cst.Index):
        value = convert(collector, scope, node.value)
        return Operation(value.start, value.end, "*", (value,)) if node.star else value
    assert isinstance(node, cst.Slice)
    bounds = [convert(collector, scope, bound) if bound else None for bound in (node.lower, node.upper, node.step)]
    start, end = collector.offsets.inner(node)
    nothing = Constant(start, start, None)
    return Operation(start, end, ":", tuple(bound or nothing for bound in bounds))


def _text(collector: Collector, scope: Scope, node: cst.SimpleString, start: int, end: int) -> Expression:
    raw = node.value
    if end - start > _LONGEST_TEXT:
        return Operation(start, end, "f", ())
    if raw[0] in "'\"" and "\\" not in raw and raw[:3] not in ("'''", '"""'):
        return Constant(start, end, raw[1:-1])
    return Constant(start, end, _literal(raw))


def _joined(collector: Collector, scope: Scope, node: cst.ConcatenatedString, start: int, end: int) -> Expression:
    left, right = convert(collector, scope, node.left), convert(collector, scope, node.right)
    match left, right:
        case Constant(value=str(one)), Constant(value=str(other)):
            return Constant(start, end, one + other)
        case Constant(value=bytes(first)), Constant(value=bytes(second)):
            return Constant(start, end, first + second)
    return Operation(start, end, "f", (left, right))


def _formatted(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Expression:
    return Operation(start, end, "f", tuple(_interpolated(collector, scope, node.parts, start)))


def _interpolated(collector: Collector, scope: Scope, parts: Any, start: int) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, cst.FormattedStringText):
            yield Constant(start, start, part.value)
        elif expression := getattr(part, "expression", None):
            yield convert(collector, scope, expression)
            yield from _interpolated(collector, scope, part.format_spec or (), start)


def _number(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Expression:
    return Constant(start, end, _literal(node.value))


def _literal(raw: str) -> Any:
    """The value of a literal; None where this Python refuses it (an integer of 10,000 digits, ``0777``)."""
    try:
        return ast.literal_eval(raw)
    except (ValueError, SyntaxError, MemoryError):
        return None


def _ellipsis(collector: Collector, scope: Scope, node: cst.Ellipsis, start: int, end: int) -> Expression:
    return Operation(start, end, "...", ())


def _unary(collector: Collector, scope: Scope, node: cst.UnaryOperation, start: int, end: int) -> Expression:
    value = convert(collector, scope, node.expression)
    operator = _SIGNS[type(node.operator)]
    if operator == "-" and type(value) is Constant and isinstance(value.value, (int, float, complex)):
        return Constant(start, end, -value.value)
    return Operation(start, end, operator, (value,))


def _binary(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Expression:
    """Binary and boolean operations; a chain that leans left is walked down, not recursed into."""
    chain = [node]
    while type(chain[-1].left) is type(node):
        chain.append(chain[-1].left)
    value = convert(collector, scope, chain[-1].left)
    for link in reversed(chain):
        right = convert(collector, scope, link.right)
        value = Operation(*collector.offsets.inner(link), _SIGNS[type(link.operator)], (value, right))
    return value


def _comparison(collector: Collector, scope: Scope, node: cst.Comparison, start: int, end: int) -> Expression:
    left = convert(collector, scope, node.left)
    parts: list[Expression] = []
    for target in node.comparisons:
        right = convert(collector, scope, target.comparator)
        parts.append(Operation(left.start, right.end, _SIGNS[type(target.operator)], (left, right)))
        left = right
    return Operation(start, end, "and", tuple(parts)) if len(parts) > 1 else parts[0]._replace(start=start, end=end)


def _conditional(collector: Collector, scope: Scope, node: cst.IfExp, start: int, end: int) -> Expression:
    parts = (node.test, node.body, node.orelse)
    return Operation(start, end, "if", tuple(convert(collector, scope, part) for part in parts))


def _await(collector: Collector, scope: Scope, node: cst.Await, start: int, end: int) -> Expression:
    return Operation(start, end, "await", (convert(collector, scope, node.expression),))


def _yield(collector: Collector, scope: Scope, node: cst.Yield, start: int, end: int) -> Expression:
    collector.generators.add(scope.function().name)
    value = node.value
    if value is None:
        return Operation(start, end, "yield", ())
    if isinstance(value, cst.From):
        return Operation(start, end, "yield from", (convert(collector, scope, value.item),))
    return Operation(start, end, "yield", (convert(collector, scope, value),))


def _walrus(collector: Collector, scope: Scope, node: cst.NamedExpr, start: int, end: int) -> Expression:
    value = convert(collector, scope, node.value)
    owner = scope.function()
    bind_target(owner, node.target)
    collector.assign(owner, node.target, "=", value)
    return Operation(start, end, ":=", (convert(collector, scope, node.target), value))


def _collection(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for element in node.elements:
        value = convert(collector, scope, element.value)
        if isinstance(element, cst.StarredElement):
            value = Operation(*collector.offsets.inner(element), "*", (value,))
        items.append(value)
    return Collection(start, end, _KINDS[type(node)], tuple(items))


def _dict(collector: Collector, scope: Scope, node: cst.Dict, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for element in node.elements:
        items.append(convert(collector, scope, element.key) if isinstance(element, cst.DictElement) else None)
        items.append(convert(collector, scope, element.value))
    return Collection(start, end, "dict", tuple(items))


def _lambda(collector: Collector, scope: Scope, node: cst.Lambda, start: int, end: int) -> Expression:
    return Lambda(start, end, collector.define_lambda(scope, node, start, end))


def _comprehension(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Expression:
    """The first source is evaluated outside; everything else sees the targets."""
    prefix = scope.name if scope.name.endswith("<locals>.") else f"{scope.name}<locals>."
    inner = Scope("comprehension", f"{prefix}{scope.numbered('<comp>')}.", scope)
    clauses: list[Clause] = []
    clause, reading = node.for_in, scope
    while clause is not None:
        source = convert(collector, reading, clause.iter)
        bind_target(inner, clause.target)
        collector.assign(inner, clause.target, "[]", source)
        tests = tuple(convert(collector, inner, condition.test) for condition in clause.ifs)
        clauses.append(Clause(convert(collector, inner, clause.target), source, tests))
        clause, reading = clause.inner_for_in, inner
    parts = (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,)
    elements = tuple(convert(collector, inner, part) for part in parts)
    return Comprehension(start, end, _KINDS[type(node)], elements, tuple(clauses))


def _other(collector: Collector, scope: Scope, node: cst.CSTNode, start: int, end: int) -> Expression:
    return Operation(start, end, "?", ())


_NAMED_CONSTANTS: dict[str, Any] = {"True": True, "False": False, "None": None}

_KINDS: dict[type, str] = {
    cst.Tuple: "tuple",
    cst.List: "list",
    cst.Set: "set",
    cst.ListComp: "list",
    cst.SetComp: "set",
    cst.DictComp: "dict",
    cst.GeneratorExp: "generator",
}

_SIGNS: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.MatrixMultiply: "@",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.And: "and",
    cst.Or: "or",
    cst.Not: "not",
    cst.Minus: "-",
    cst.Plus: "+",
    cst.BitInvert: "~",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Is: "is",
    cst.IsNot: "is not",
    cst.In: "in",
    cst.NotIn: "not in",
}

_CONVERTERS: dict[type, _Convert] = {
    cst.Name: _name,
    cst.Attribute: _attribute,
    cst.Call: _call,
    cst.Subscript: _subscript,
    cst.SimpleString: _text,
    cst.ConcatenatedString: _joined,
    cst.FormattedString: _formatted,
    cst.Integer: _number,
    cst.Float: _number,
    cst.Imaginary: _number,
    cst.Ellipsis: _ellipsis,
    cst.UnaryOperation: _unary,
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _binary,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.Await: _await,
    cst.Yield: _yield,
    cst.NamedExpr: _walrus,
    cst.Tuple: _collection,
    cst.List: _collection,
    cst.Set: _collection,
    cst.Dict: _dict,
    cst.Lambda: _lambda,
    cst.ListComp: _comprehension,
    cst.SetComp: _comprehension,
    cst.DictComp: _comprehension,
    cst.GeneratorExp: _comprehension,
}
if templated := getattr(cst, "TemplatedString", None):
    _CONVERTERS[templated] = _formatted

# Whose spans are asked for; everything else goes unrecorded.
LOCATED: frozenset[type] = frozenset(_CONVERTERS) | {cst.Slice, cst.StarredElement}
