"""Calls of ``ast`` → those of ``facts``, with the parentheses that it does not keep."""

# the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchrepro_lint.expressions import called
from torchrepro_lint.facts import Arg, Call, Expression
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.brackets import around, opening

if TYPE_CHECKING:
    from torchrepro_lint.syntax.tree import Lowering


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
