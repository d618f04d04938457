"""Expressions of ``ast`` → the expressions of ``facts``: one function per node type, found by a table."""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast
from sys import intern
from types import EllipsisType
from typing import TYPE_CHECKING

from torchrepro_lint import expressions
from torchrepro_lint.expressions import LONGEST_TEXT, number
from torchrepro_lint.facts import Attribute, Constant, Expression, Operation, Ref, Subscript
from torchrepro_lint.query.memo_tables import words
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.ast_calls import call
from torchrepro_lint.syntax.ast_displays import dict_, enclosed, generator_, list_, set_, tuple_
from torchrepro_lint.syntax.ast_operators import binary, boolean, unary
from torchrepro_lint.syntax.ast_strings import string
from torchrepro_lint.syntax.brackets import closed, skip
from torchrepro_lint.syntax.tree import Convert, Lowering, ToExpression, Untrusted, typed

if TYPE_CHECKING:
    from torchrepro_lint.syntax.columns import Columns

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
    **typed(ast, expressions.EXPRESSIONS),
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
