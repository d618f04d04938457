"""Calls of ``ast`` → those of ``facts``, with the parentheses that it does not keep.

Tuples and other displays of ``ast`` → the expressions of ``facts``: which parentheses are whose.

Operators of ``ast`` → the operations of ``facts``.

Expressions of ``ast`` → the expressions of ``facts``: one function per node type, found by a table.
"""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast
from collections.abc import Sequence
from sys import intern
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from torchrepro_lint.query.memo_tables import words
from torchrepro_lint.syntax import lowering_rules
from torchrepro_lint.syntax.ast_strings import string
from torchrepro_lint.syntax.lowering_rules import LONGEST_CHAIN, LONGEST_TEXT, called, comprehension, number, signed
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
from torchrepro_lint.syntax.scope_builder import Convert, Lowering, ToExpression, Untrusted, typed
from torchrepro_lint.syntax.scopes import Scope
from torchrepro_lint.syntax.tokens import around, closed, encloses, opening, skip, trailed

if TYPE_CHECKING:
    from torchrepro_lint.syntax.ast_strings import Columns


# the functions of a table take what the table's callers hand them


def call(collector: Lowering, scope: Scope, node: ast.Call, start: int, end: int) -> Expression:
    func = called(scope, collector.convert(scope, node.func))
    tree, at = collector.tree, func.end
    text = tree.text
    at = at + 1 if text[at] == "(" else opening(text, at)
    args = arguments(collector, scope, node.args, node.keywords, at) if node.args or node.keywords else ()
    at = tree.columns.numbers[at]  # type: ignore[attr-defined]  # an AstTree has them
    return Call(start, end, func, args, at)


def arguments(
    collector: Lowering, scope: Scope, args: list[ast.expr], keywords: list[ast.keyword], before: int
) -> tuple[Arg, ...]:
    """The records of the arguments of a call or class, whose parenthesis opens before ``before``."""
    text, span, convert = collector.tree.text, collector.tree.span, collector.convert
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
            start, end = around(text, before, start, end)
        found.append(Arg(start, end, keyword, star, made))
        before = end
    return tuple(found)


# Their records may begin after what their nodes begin with.
_PARENTHESISED = frozenset({ast.Tuple, ast.GeneratorExp})


def _in_order(args: Sequence[Any], keywords: Sequence[Any]) -> Sequence[Any]:
    """Arguments as written: ``*args`` may follow a keyword."""
    if args and type(args[-1]) is ast.Starred:
        return sorted((*args, *keywords), key=lambda node: (node.lineno, node.col_offset))
    return (*args, *keywords)


# the functions of a table take what the table's callers hand them


def tuple_(collector: Lowering, scope: Scope, node: ast.Tuple, start: int, end: int) -> Expression:
    items = _items(collector, scope, node.elts)
    if enclosed(collector, node, start, end):
        start, end = _within(collector, node.elts[-1:], start, end)
    return Collection(start, end, "tuple", items)


def list_(collector: Lowering, scope: Scope, node: ast.List, start: int, end: int) -> Expression:
    return Collection(start, end, "list", _items(collector, scope, node.elts))


def set_(collector: Lowering, scope: Scope, node: ast.Set, start: int, end: int) -> Expression:
    return Collection(start, end, "set", _items(collector, scope, node.elts))


def _items(collector: Lowering, scope: Scope, nodes: list[ast.expr]) -> tuple[Expression, ...]:
    return tuple([_item(collector, scope, node) for node in nodes])


def _item(collector: Lowering, scope: Scope, node: ast.expr) -> Expression:
    if type(node) is ast.Starred:
        return Operation(*collector.tree.span(node), "*", (collector.convert(scope, node.value),))
    return collector.convert(scope, node)


def dict_(collector: Lowering, scope: Scope, node: ast.Dict, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for key, value in zip(node.keys, node.values, strict=True):
        items.append(collector.convert(scope, key) if key is not None else None)
        items.append(collector.convert(scope, value))
    return Collection(start, end, "dict", tuple(items))


_comprehended = comprehension("generator", "elt")


def generator_(collector: Lowering, scope: Scope, node: ast.GeneratorExp, start: int, end: int) -> Expression:
    last = node.generators[-1]
    record = _comprehended(collector, scope, node, start, end)
    start, end = _within(collector, [last.ifs[-1] if last.ifs else last.iter], start, end)
    return record._replace(start=start, end=end)


def enclosed(collector: Lowering, node: ast.Tuple, start: int, end: int) -> bool:
    """Whether a tuple has parentheses, which then are in its span."""
    tree = collector.tree
    if tree.text[start] != "(" or tree.text[end - 1] != ")":
        return False
    return not node.elts or encloses(tree.text, start, tree.span(node.elts[0]))


def _within(collector: Lowering, last: Sequence[ast.expr], start: int, end: int) -> tuple[int, int]:
    """The span between parentheses that hold something, of which ``last`` is the last node, or nothing."""
    text = collector.tree.text
    start = skip(text, start + 1)
    return (start, trailed(text, collector.tree.span(last[0])[1], end - 1)) if last else (start, start)


def deleted(collector: Lowering, scope: Scope, node: ast.Delete, end: int) -> Expression:
    """What ``del`` deletes, a tuple if there are several, or a comma."""
    tree, targets = collector.tree, node.targets
    if len(targets) == 1 and closed(tree.text, tree.span(targets[0])[1]) >= end:
        return collector.convert(scope, targets[0])
    start = skip(tree.text, tree.span(node)[0] + len("del"))
    return Collection(start, end, "tuple", _items(collector, scope, targets))


def unary(collector: Lowering, scope: Scope, node: ast.UnaryOp, start: int, end: int) -> Expression:
    return signed(SIGNS[type(node.op)], collector.convert(scope, node.operand), start, end)


def binary(collector: Lowering, scope: Scope, node: ast.BinOp, start: int, end: int) -> Expression:
    """A chain that leans left is walked down, not recursed into."""
    chain = [node]
    while type(left := chain[-1].left) is ast.BinOp:
        chain.append(left)
    if len(chain) > LONGEST_CHAIN:
        raise Untrusted
    value = collector.convert(scope, left)
    for link in reversed(chain):
        right = collector.convert(scope, link.right)
        value = Operation(*collector.tree.span(link), SIGNS[type(link.op)], (value, right))
    return value


def boolean(collector: Lowering, scope: Scope, node: ast.BoolOp, start: int, end: int) -> Expression:
    """``a and b and c`` is ``(a and b) and c``."""
    tree, sign = collector.tree, SIGNS[type(node.op)]
    if len(node.values) > LONGEST_CHAIN:
        raise Untrusted
    value = collector.convert(scope, node.values[0])
    for each in node.values[1:]:
        right = collector.convert(scope, each)
        stop = end if each is node.values[-1] else closed(tree.text, tree.span(each)[1])
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


# Shorter texts are most often keys and names, which many files have alike.
_WORD = 40
_BLANKS = frozenset(" \t\f\r\n")


def quick(collector: Lowering, columns: Columns) -> Convert:
    """What converts the nodes of a text whose columns are code points: the commonest at once, the others by the table."""
    starts, numbers = columns.starts, columns.numbers

    def convert(scope: Scope, node: ast.expr) -> Expression:
        kind = type(node)
        start = numbers[starts[node.lineno] + node.col_offset]
        if kind is ast.Name:
            end = numbers[start + len(node.id)]  # type: ignore[attr-defined]  # narrowed by exact type
            return Ref(start, end, scope.resolve(node.id), (), end)  # type: ignore[attr-defined]
        end = numbers[starts[node.end_lineno] + node.end_col_offset]  # type: ignore[index, operator]  # the parser sets both
        return EXPRESSIONS.get(kind, other)(collector, scope, node, start, end)

    return convert


def _name(collector: Lowering, scope: Scope, node: ast.Name, start: int, end: int) -> Expression:
    return Ref(start, end, scope.resolve(node.id), (), end)


def _attribute(collector: Lowering, scope: Scope, node: ast.Attribute, start: int, end: int) -> Expression:
    tree = collector.tree
    word = node.attr
    dot = end - len(word) - 1
    if tree.text[dot] == "." and tree.text[dot - 1] not in _BLANKS:
        base_end = tree.columns.numbers[dot]  # type: ignore[attr-defined]  # an AstTree has them
    else:
        base_end = closed(tree.text, tree.span(node.value)[1])
    base = node.value
    if type(base) is ast.Name:
        return Ref(start, end, scope.resolve(base.id), words((word,)), base_end)
    path = [word]
    while type(base) is ast.Attribute:
        path.append(base.attr)
        base = base.value
    if type(base) is ast.Name:
        return Ref(start, end, scope.resolve(base.id), words(tuple(reversed(path))), base_end)
    return Attribute(start, end, collector.convert(scope, node.value), word, base_end)


def _subscript(collector: Lowering, scope: Scope, node: ast.Subscript, start: int, end: int) -> Expression:
    value = collector.convert(scope, node.value)
    text, index = collector.tree.text, node.slice
    nodes = [index]
    if isinstance(index, ast.Tuple) and not enclosed(collector, index, *collector.tree.span(index)):
        nodes = index.elts
    indices = tuple([_index(collector, scope, each) for each in nodes])
    base_end = value.end if text[value.end] == "[" else closed(text, value.end)
    return Subscript(start, end, value, indices, base_end)


def _index(collector: Lowering, scope: Scope, node: ast.expr) -> Expression:
    if type(node) is ast.Starred:
        value = collector.convert(scope, node.value)
        return Operation(*collector.tree.span(node), "*", (value,))
    return collector.convert(scope, node)


def _slice(collector: Lowering, scope: Scope, node: ast.Slice, start: int, end: int) -> Expression:
    bounds = [collector.convert(scope, bound) if bound else None for bound in (node.lower, node.upper, node.step)]
    nothing = Constant(start, start, None)
    if collector.tree.text[end - 1] == ":":
        end = skip(collector.tree.text, end)  # as libcst has it
    return Operation(start, end, ":", tuple(bound or nothing for bound in bounds))


def _constant(collector: Lowering, scope: Scope, node: ast.Constant, start: int, end: int) -> Expression:
    value = node.value
    kind = type(value)
    if kind is str and end - start == len(value) + 2 <= LONGEST_TEXT:  # type: ignore[arg-type]  # narrowed by exact type
        text = intern(value) if len(value) < _WORD else value  # type: ignore[arg-type]
        return Constant(start, end, text)  # type: ignore[arg-type]
    if isinstance(value, (str, bytes)):
        return string(collector, scope, value, start, end)
    if isinstance(value, EllipsisType):
        return Operation(start, end, "...", ())
    return Constant(start, end, value) if value is None else number(value, start, end)


def _formatted(collector: Lowering, scope: Scope, node: ast.JoinedStr, start: int, end: int) -> Expression:
    return string(collector, scope, None, start, end)


def _await(collector: Lowering, scope: Scope, node: ast.Await, start: int, end: int) -> Expression:
    return Operation(start, end, "await", (collector.convert(scope, node.value),))


def _yield(collector: Lowering, scope: Scope, node: ast.Yield | ast.YieldFrom, start: int, end: int) -> Expression:
    collector.generators.add(scope.function().name)
    operands = (collector.convert(scope, node.value),) if node.value is not None else ()
    return Operation(start, end, "yield" if type(node) is ast.Yield else "yield from", operands)


def _starred(collector: Lowering, scope: Scope, node: ast.Starred, start: int, end: int) -> Expression:
    """In a place where no parser's grammar has a word for it: ``x = *y``."""
    return Operation(start, end, "?", ())


def other(collector: Lowering, scope: Scope, node: ast.AST, start: int, end: int) -> Expression:
    """No node that is known here: syntax of a later Python."""
    raise Untrusted


EXPRESSIONS: dict[type, ToExpression] = {
    **typed(ast, lowering_rules.EXPRESSIONS),
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
