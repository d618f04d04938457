"""Lowering of the expressions of ``ast``: one function per node type, in a table.

``ast`` keeps no parentheses; where a span depends on them (arguments, tuples, generator expressions) they are read from the text.
"""

# ruff: noqa: ARG001  # all functions of a table have the same parameters

from __future__ import annotations

import ast
from collections.abc import Sequence
from sys import intern
from types import EllipsisType
from typing import Any

from torchrepro_lint.syntax import lowering_rules
from torchrepro_lint.syntax.lowering_rules import (
    MAX_CHAIN_LENGTH,
    MAX_TEXT_LENGTH,
    comprehension,
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
from torchrepro_lint.syntax.parser_tree import Convert, Lowering, ToExpression, UnreliableTree
from torchrepro_lint.syntax.qualified_names import interned_names
from torchrepro_lint.syntax.scopes import Scope
from torchrepro_lint.syntax.tokens import (
    Columns,
    after_opening,
    encloses,
    end_of_parentheses,
    end_of_trailers,
    skip,
    string,
    with_parentheses,
)


def call(lowering: Lowering, scope: Scope, node: ast.Call, start: int, end: int) -> Expression:
    func = resolve_builtin(scope, lowering.convert(scope, node.func), bare=not node.args and not node.keywords)
    tree, at = lowering.tree, func.end
    text = tree.text
    at = at + 1 if text[at] == "(" else after_opening(text, at)
    args = arguments(lowering, scope, node.args, node.keywords, at) if node.args or node.keywords else ()
    at = tree.columns.numbers[at]  # type: ignore[attr-defined]  # an AstTree has them
    return Call(start, end, func, args, at)


def arguments(
    lowering: Lowering, scope: Scope, args: list[ast.expr], keywords: list[ast.keyword], before: int
) -> tuple[Arg, ...]:
    """The arguments of a call or class, whose parenthesis opens before ``before``."""
    text, span, convert = lowering.tree.text, lowering.tree.span, lowering.convert
    found: list[Arg] = []
    for node in _in_order(args, keywords) if keywords else args:
        value, keyword, star = node, None, ""
        if type(node) is ast.keyword:
            value, keyword = node.value, node.arg
            star = "" if keyword else "**"
        elif type(node) is ast.Starred:
            value, star = node.value, "*"
        made = convert(scope, value)
        start, end = span(value) if type(value) in _PARENTHESISED else (made.start, made.end)
        if start < before:  # a generator expression without parentheses of its own
            start, end = made.start, made.end
        elif text.find("(", before, start) >= 0:
            start, end = with_parentheses(text, before, start, end)
        found.append(Arg(start, end, keyword, star, made))
        before = end
    return tuple(found)


# Nodes whose span in ``ast`` includes their parentheses.
_PARENTHESISED = frozenset({ast.Tuple, ast.GeneratorExp})


def _in_order(args: Sequence[Any], keywords: Sequence[Any]) -> Sequence[Any]:
    """Arguments in the order of the text: ``*args`` may follow a keyword."""
    if args and type(args[-1]) is ast.Starred:
        return sorted((*args, *keywords), key=lambda node: (node.lineno, node.col_offset))
    return (*args, *keywords)


def tuple_(lowering: Lowering, scope: Scope, node: ast.Tuple, start: int, end: int) -> Expression:
    items = _items(lowering, scope, node.elts)
    if enclosed(lowering, node, start, end):
        start, end = _within(lowering, node.elts[-1:], start, end)
    return Collection(start, end, "tuple", items)


def list_(lowering: Lowering, scope: Scope, node: ast.List, start: int, end: int) -> Expression:
    return Collection(start, end, "list", _items(lowering, scope, node.elts))


def set_(lowering: Lowering, scope: Scope, node: ast.Set, start: int, end: int) -> Expression:
    return Collection(start, end, "set", _items(lowering, scope, node.elts))


def _items(lowering: Lowering, scope: Scope, nodes: list[ast.expr]) -> tuple[Expression, ...]:
    return tuple([_item(lowering, scope, node) for node in nodes])


def _item(lowering: Lowering, scope: Scope, node: ast.expr) -> Expression:
    if type(node) is ast.Starred:
        return Operation(*lowering.tree.span(node), "*", (lowering.convert(scope, node.value),))
    return lowering.convert(scope, node)


def dict_(lowering: Lowering, scope: Scope, node: ast.Dict, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for key, value in zip(node.keys, node.values, strict=True):
        items.append(lowering.convert(scope, key) if key is not None else None)
        items.append(lowering.convert(scope, value))
    return Collection(start, end, "dict", tuple(items))


_lower_generator = comprehension("generator", "elt")


def generator_(lowering: Lowering, scope: Scope, node: ast.GeneratorExp, start: int, end: int) -> Expression:
    last = node.generators[-1]
    record = _lower_generator(lowering, scope, node, start, end)
    start, end = _within(lowering, [last.ifs[-1] if last.ifs else last.iter], start, end)
    return record._replace(start=start, end=end)


def enclosed(lowering: Lowering, node: ast.Tuple, start: int, end: int) -> bool:
    """Whether a tuple has parentheses, which are then in its span."""
    tree = lowering.tree
    if tree.text[start] != "(" or tree.text[end - 1] != ")":
        return False
    return not node.elts or encloses(tree.text, start, tree.span(node.elts[0]))


def _within(lowering: Lowering, last: Sequence[ast.expr], start: int, end: int) -> tuple[int, int]:
    """The span inside parentheses; ``last`` is the last node in them, if any."""
    text = lowering.tree.text
    start = skip(text, start + 1)
    return (start, end_of_trailers(text, lowering.tree.span(last[0])[1], end - 1)) if last else (start, start)


def deleted(lowering: Lowering, scope: Scope, node: ast.Delete, end: int) -> Expression:
    """The operand of ``del``: a tuple if there are several targets, or a comma."""
    tree, targets = lowering.tree, node.targets
    if len(targets) == 1 and end_of_parentheses(tree.text, tree.span(targets[0])[1]) >= end:
        return lowering.convert(scope, targets[0])
    start = skip(tree.text, tree.span(node)[0] + len("del"))
    return Collection(start, end, "tuple", _items(lowering, scope, targets))


def unary(lowering: Lowering, scope: Scope, node: ast.UnaryOp, start: int, end: int) -> Expression:
    return unary_operation(SIGNS[type(node.op)], lowering.convert(scope, node.operand), start, end)


def binary(lowering: Lowering, scope: Scope, node: ast.BinOp, start: int, end: int) -> Expression:
    """A binary operation; a left-leaning chain is handled without recursion."""
    chain = [node]
    while type(left := chain[-1].left) is ast.BinOp:
        chain.append(left)
    if len(chain) > MAX_CHAIN_LENGTH:
        raise UnreliableTree
    value = lowering.convert(scope, left)
    for link in reversed(chain):
        right = lowering.convert(scope, link.right)
        value = Operation(*lowering.tree.span(link), SIGNS[type(link.op)], (value, right))
    return value


def boolean(lowering: Lowering, scope: Scope, node: ast.BoolOp, start: int, end: int) -> Expression:
    """A boolean operation: ``a and b and c`` is lowered as ``(a and b) and c``."""
    tree, sign = lowering.tree, SIGNS[type(node.op)]
    if len(node.values) > MAX_CHAIN_LENGTH:
        raise UnreliableTree
    value = lowering.convert(scope, node.values[0])
    for each in node.values[1:]:
        right = lowering.convert(scope, each)
        stop = end if each is node.values[-1] else end_of_parentheses(tree.text, tree.span(each)[1])
        value = Operation(start, stop, sign, (value, right))
    return value


SIGNS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.And: "and",
    ast.Or: "or",
    ast.Not: "not",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


# Strings shorter than this are interned: most are keys and names that many files share.
_INTERNED_LENGTH = 40
_BLANKS = frozenset(" \t\f\r\n")


def fast_converter(lowering: Lowering, columns: Columns) -> Convert:
    """A fast converter for a text whose columns are code points: it inlines names, and uses the table for other nodes."""
    starts, numbers = columns.starts, columns.numbers

    def convert(scope: Scope, node: ast.expr) -> Expression:
        kind = type(node)
        start = numbers[starts[node.lineno] + node.col_offset]
        if kind is ast.Name:
            end = numbers[start + len(node.id)]  # type: ignore[attr-defined]  # narrowed by exact type
            return Ref(start, end, scope.resolve(node.id), (), end)  # type: ignore[attr-defined]
        end = numbers[starts[node.end_lineno] + node.end_col_offset]  # type: ignore[index, operator]  # the parser sets both
        return EXPRESSIONS.get(kind, other)(lowering, scope, node, start, end)

    return convert


def _name(lowering: Lowering, scope: Scope, node: ast.Name, start: int, end: int) -> Expression:
    return Ref(start, end, scope.resolve(node.id), (), end)


def _attribute(lowering: Lowering, scope: Scope, node: ast.Attribute, start: int, end: int) -> Expression:
    tree = lowering.tree
    word = node.attr
    dot = end - len(word) - 1
    if tree.text[dot] == "." and tree.text[dot - 1] not in _BLANKS:
        base_end = tree.columns.numbers[dot]  # type: ignore[attr-defined]  # an AstTree has them
    else:
        base_end = end_of_parentheses(tree.text, tree.span(node.value)[1])
    base = node.value
    if type(base) is ast.Name:
        return Ref(start, end, scope.resolve(base.id), interned_names((word,)), base_end)
    path = [word]
    while type(base) is ast.Attribute:
        path.append(base.attr)
        base = base.value
    if type(base) is ast.Name:
        return Ref(start, end, scope.resolve(base.id), interned_names(tuple(reversed(path))), base_end)
    return Attribute(start, end, lowering.convert(scope, node.value), word, base_end)


def _subscript(lowering: Lowering, scope: Scope, node: ast.Subscript, start: int, end: int) -> Expression:
    value = lowering.convert(scope, node.value)
    text, index = lowering.tree.text, node.slice
    nodes = [index]
    if isinstance(index, ast.Tuple) and not enclosed(lowering, index, *lowering.tree.span(index)):
        nodes = index.elts
    indices = tuple([_index(lowering, scope, each) for each in nodes])
    base_end = value.end if text[value.end] == "[" else end_of_parentheses(text, value.end)
    return Subscript(start, end, value, indices, base_end)


def _index(lowering: Lowering, scope: Scope, node: ast.expr) -> Expression:
    if type(node) is ast.Starred:
        value = lowering.convert(scope, node.value)
        return Operation(*lowering.tree.span(node), "*", (value,))
    return lowering.convert(scope, node)


def _slice(lowering: Lowering, scope: Scope, node: ast.Slice, start: int, end: int) -> Expression:
    bounds = [lowering.convert(scope, bound) if bound else None for bound in (node.lower, node.upper, node.step)]
    nothing = Constant(start, start, None)
    if lowering.tree.text[end - 1] == ":":
        end = skip(lowering.tree.text, end)  # as libcst has it
    return Operation(start, end, ":", tuple(bound or nothing for bound in bounds))


def _constant(lowering: Lowering, scope: Scope, node: ast.Constant, start: int, end: int) -> Expression:
    value = node.value
    kind = type(value)
    if kind is str and end - start == len(value) + 2 <= MAX_TEXT_LENGTH:  # type: ignore[arg-type]  # narrowed by exact type
        text = intern(value) if len(value) < _INTERNED_LENGTH else value  # type: ignore[arg-type]
        return Constant(start, end, text)  # type: ignore[arg-type]
    if isinstance(value, (str, bytes)):
        return string(lowering, scope, value, start, end)
    if isinstance(value, EllipsisType):
        return Operation(start, end, "...", ())
    return Constant(start, end, value) if value is None else number_literal(value, start, end)


def _formatted(lowering: Lowering, scope: Scope, node: ast.JoinedStr, start: int, end: int) -> Expression:
    return string(lowering, scope, None, start, end)


def _await(lowering: Lowering, scope: Scope, node: ast.Await, start: int, end: int) -> Expression:
    return Operation(start, end, "await", (lowering.convert(scope, node.value),))


def _yield(lowering: Lowering, scope: Scope, node: ast.Yield | ast.YieldFrom, start: int, end: int) -> Expression:
    lowering.generators.add(scope.function().name)
    operands = (lowering.convert(scope, node.value),) if node.value is not None else ()
    return Operation(start, end, "yield" if type(node) is ast.Yield else "yield from", operands)


def _starred(lowering: Lowering, scope: Scope, node: ast.Starred, start: int, end: int) -> Expression:
    """A star where the grammar has no name for it: ``x = *y``."""
    return Operation(start, end, "?", ())


def other(lowering: Lowering, scope: Scope, node: ast.AST, start: int, end: int) -> Expression:
    """An unknown node: syntax of a later Python."""
    raise UnreliableTree


EXPRESSIONS: dict[type, ToExpression] = {
    **lowering_rules.by_node_type(ast, lowering_rules.EXPRESSIONS),
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: call,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Constant: _constant,
    ast.JoinedStr: _formatted,
    ast.UnaryOp: unary,
    ast.BinOp: binary,
    ast.BoolOp: boolean,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Starred: _starred,
    ast.Tuple: tuple_,
    ast.List: list_,
    ast.Set: set_,
    ast.Dict: dict_,
    ast.GeneratorExp: generator_,
}
