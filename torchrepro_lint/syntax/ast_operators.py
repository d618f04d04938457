"""Operators of ``ast`` → the operations of ``facts``."""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast

from torchrepro_lint.expressions import LONGEST_CHAIN, signed
from torchrepro_lint.facts import Expression, Operation
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.brackets import closed
from torchrepro_lint.syntax.tree import Lowering, Untrusted


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
