"""Lowering of the expressions of libcst: one function per node type, in a table."""

# ruff: noqa: ARG001  # all functions of a table have the same parameters

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchrepro_lint.source.text import literal
from torchrepro_lint.syntax import lowering_rules
from torchrepro_lint.syntax.lowering_rules import (
    MAX_TEXT_LENGTH,
    concatenated_strings,
    number_literal,
    resolve_builtin,
    unary_operation,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.parser_tree import Lowering, ToExpression
from torchrepro_lint.syntax.scopes import Scope
from torchrepro_lint.syntax.tokens import after_opening

if TYPE_CHECKING:
    from torchrepro_lint.syntax.libcst_positions import NodeSpans


def unary(lowering: Lowering, scope: Scope, node: cst.UnaryOperation, start: int, end: int) -> Expression:
    value = lowering.convert(scope, node.expression)
    return unary_operation(SIGNS[type(node.operator)], value, start, end)


def binary(lowering: Lowering, scope: Scope, node: Any, start: int, end: int) -> Expression:
    """Binary and boolean operations; a left-leaning chain is handled without recursion."""
    chain = [node]
    while type(chain[-1].left) is type(node):
        chain.append(chain[-1].left)
    value = lowering.convert(scope, chain[-1].left)
    for link in reversed(chain):
        right = lowering.convert(scope, link.right)
        value = Operation(*spans_of(lowering).inner(link), SIGNS[type(link.operator)], (value, right))
    return value


def spans_of(lowering: Lowering) -> NodeSpans:
    spans: NodeSpans = lowering.tree.offsets  # type: ignore[attr-defined]  # only a LibcstTree has these nodes
    return spans


SIGNS: dict[type, str] = {
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


def _name(lowering: Lowering, scope: Scope, node: cst.Name, start: int, end: int) -> Expression:
    constant = _NAMED_CONSTANTS.get(node.value, ...)
    if constant is not ...:
        return Constant(start, end, constant)
    return Ref(start, end, scope.resolve(node.value), (), end)


def _attribute(lowering: Lowering, scope: Scope, node: cst.Attribute, start: int, end: int) -> Expression:
    path: list[str] = []
    base: cst.BaseExpression = node
    while type(base) is cst.Attribute:
        path.append(base.attr.value)
        base = base.value
    base_end = spans_of(lowering).outer(node.value)[1]
    if type(base) is cst.Name and base.value not in _NAMED_CONSTANTS:
        return Ref(start, end, scope.resolve(base.value), tuple(reversed(path)), base_end)
    return Attribute(start, end, lowering.convert(scope, node.value), node.attr.value, base_end)


def _call(lowering: Lowering, scope: Scope, node: cst.Call, start: int, end: int) -> Expression:
    func = resolve_builtin(scope, lowering.convert(scope, node.func), bare=not node.args)
    open_ = after_opening(lowering.tree.text, spans_of(lowering).outer(node.func)[1])
    return Call(start, end, func, tuple(arguments(lowering, scope, node.args)), open_)


def arguments(lowering: Lowering, scope: Scope, args: Any) -> Iterator[Arg]:
    """The arguments of a call, or the bases and keywords of a class."""
    for arg in args:
        start, end = spans_of(lowering).outer(arg.value)
        keyword = arg.keyword.value if arg.keyword else None
        yield Arg(start, end, keyword, arg.star, lowering.convert(scope, arg.value))


def _subscript(lowering: Lowering, scope: Scope, node: cst.Subscript, start: int, end: int) -> Expression:
    value = lowering.convert(scope, node.value)
    index = tuple(_index(lowering, scope, element.slice) for element in node.slice)
    return Subscript(start, end, value, index, spans_of(lowering).outer(node.value)[1])


def _index(lowering: Lowering, scope: Scope, node: cst.BaseSlice) -> Expression:
    if isinstance(node, cst.Index):
        value = lowering.convert(scope, node.value)
        if not node.star:
            return value
        start, end = spans_of(lowering).outer(node.value)
        return Operation(lowering.tree.text.rindex("*", 0, start), end, "*", (value,))
    assert isinstance(node, cst.Slice)
    bounds = [lowering.convert(scope, bound) if bound else None for bound in (node.lower, node.upper, node.step)]
    start, end = spans_of(lowering).inner(node)
    nothing = Constant(start, start, None)
    return Operation(start, end, ":", tuple(bound or nothing for bound in bounds))


def _text(lowering: Lowering, scope: Scope, node: cst.SimpleString, start: int, end: int) -> Expression:
    raw = node.value
    if end - start > MAX_TEXT_LENGTH:
        return Operation(start, end, "f", ())
    if raw[0] in "'\"" and "\\" not in raw and raw[:3] not in ("'''", '"""'):
        return Constant(start, end, raw[1:-1])
    return Constant(start, end, literal(raw))


def _joined(lowering: Lowering, scope: Scope, node: cst.ConcatenatedString, start: int, end: int) -> Expression:
    left = lowering.convert(scope, node.left)
    return concatenated_strings(left, lowering.convert(scope, node.right), start, end)


def _formatted(lowering: Lowering, scope: Scope, node: Any, start: int, end: int) -> Expression:
    return Operation(start, end, "f", tuple(_interpolated(lowering, scope, node.parts, start)))


def _interpolated(lowering: Lowering, scope: Scope, parts: Any, start: int) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, cst.FormattedStringText):
            yield Constant(start, start, part.value)
        elif expression := getattr(part, "expression", None):
            yield lowering.convert(scope, expression)
            yield from _interpolated(lowering, scope, part.format_spec or (), start)


def _number(lowering: Lowering, scope: Scope, node: Any, start: int, end: int) -> Expression:
    return number_literal(literal(node.value), start, end)


def _ellipsis(lowering: Lowering, scope: Scope, node: cst.Ellipsis, start: int, end: int) -> Expression:
    return Operation(start, end, "...", ())


def _await(lowering: Lowering, scope: Scope, node: cst.Await, start: int, end: int) -> Expression:
    return Operation(start, end, "await", (lowering.convert(scope, node.expression),))


def _yield(lowering: Lowering, scope: Scope, node: cst.Yield, start: int, end: int) -> Expression:
    lowering.generators.add(scope.function().name)
    value = node.value
    if value is None:
        return Operation(start, end, "yield", ())
    if isinstance(value, cst.From):
        return Operation(start, end, "yield from", (lowering.convert(scope, value.item),))
    return Operation(start, end, "yield", (lowering.convert(scope, value),))


def _collection(lowering: Lowering, scope: Scope, node: Any, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for element in node.elements:
        value = lowering.convert(scope, element.value)
        if isinstance(element, cst.StarredElement):
            value = Operation(*spans_of(lowering).inner(element), "*", (value,))
        items.append(value)
    return Collection(start, end, _KINDS[type(node)], tuple(items))


def _dict(lowering: Lowering, scope: Scope, node: cst.Dict, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for element in node.elements:
        items.append(lowering.convert(scope, element.key) if isinstance(element, cst.DictElement) else None)
        items.append(lowering.convert(scope, element.value))
    return Collection(start, end, "dict", tuple(items))


def other(lowering: Lowering, scope: Scope, node: cst.CSTNode, start: int, end: int) -> Expression:
    return Operation(start, end, "?", ())


_NAMED_CONSTANTS: dict[str, Any] = {"True": True, "False": False, "None": None}

_KINDS: dict[type, str] = {
    cst.Tuple: "tuple",
    cst.List: "list",
    cst.Set: "set",
}

EXPRESSIONS: dict[type, ToExpression] = {
    **lowering_rules.by_node_type(cst, lowering_rules.EXPRESSIONS),
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
    cst.UnaryOperation: unary,
    cst.BinaryOperation: binary,
    cst.BooleanOperation: binary,
    cst.Await: _await,
    cst.Yield: _yield,
    cst.Tuple: _collection,
    cst.List: _collection,
    cst.Set: _collection,
    cst.Dict: _dict,
}
if templated := getattr(cst, "TemplatedString", None):
    EXPRESSIONS[templated] = _formatted
