"""libcst's operators → the operations of ``facts``."""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from torchrepro_lint.expressions import signed
from torchrepro_lint.facts import Expression, Operation
from torchrepro_lint.scopes import Scope

if TYPE_CHECKING:
    from torchrepro_lint.offsets import Offsets
    from torchrepro_lint.syntax.tree import Lowering


def unary(collector: Lowering, scope: Scope, node: cst.UnaryOperation, start: int, end: int) -> Expression:
    value = collector.convert(scope, node.expression)
    return signed(SIGNS[type(node.operator)], value, start, end)


def binary(collector: Lowering, scope: Scope, node: Any, start: int, end: int) -> Expression:
    """Binary and boolean operations; a chain that leans left is walked down, not recursed into."""
    chain = [node]
    while type(chain[-1].left) is type(node):
        chain.append(chain[-1].left)
    value = collector.convert(scope, chain[-1].left)
    for link in reversed(chain):
        right = collector.convert(scope, link.right)
        value = Operation(*offsets_of(collector).inner(link), SIGNS[type(link.operator)], (value, right))
    return value


def offsets_of(collector: Lowering) -> Offsets:
    offsets: Offsets = collector.tree.offsets  # type: ignore[attr-defined]  # only a LibcstTree has these nodes
    return offsets


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
