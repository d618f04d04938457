"""Tuples and other displays of ``ast`` → the expressions of ``facts``: which parentheses are whose."""

# the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.expressions import comprehension
from torchrepro_lint.facts import Collection, Expression, Operation
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.brackets import closed, encloses, skip, trailed

if TYPE_CHECKING:
    from torchrepro_lint.syntax.tree import Lowering


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
