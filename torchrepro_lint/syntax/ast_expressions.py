"""Expressions of ``ast`` → the expressions of ``facts``: one function per node type, found by a table."""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torchrepro_lint import expressions
from torchrepro_lint.expressions import called, comprehension, signed
from torchrepro_lint.facts import Arg, Attribute, Call, Collection, Constant, Expression, Operation, Ref, Subscript
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.ast_strings import string
from torchrepro_lint.syntax.brackets import around, closed, encloses, opening, skip, trailed
from torchrepro_lint.syntax.tree import ToExpression, Untrusted, typed

if TYPE_CHECKING:
    from torchrepro_lint.collector import Collector

_BLANKS = frozenset(" \t\f\r\n")


def _name(collector: Collector, scope: Scope, node: ast.Name, start: int, end: int) -> Expression:
    return Ref(start, end, scope.resolve(node.id), (), end)


def _attribute(collector: Collector, scope: Scope, node: ast.Attribute, start: int, end: int) -> Expression:
    tree = collector.tree
    word = node.attr
    dot = end - len(word) - 1
    if tree.text[dot] == "." and tree.text[dot - 1] not in _BLANKS:
        base_end = dot
    else:
        base_end = closed(tree.text, tree.span(node.value)[1])
    base = node.value
    if type(base) is ast.Name:
        return Ref(start, end, scope.resolve(base.id), (word,), base_end)
    path = [word]
    while type(base) is ast.Attribute:
        path.append(base.attr)
        base = base.value
    if type(base) is ast.Name:
        return Ref(start, end, scope.resolve(base.id), tuple(reversed(path)), base_end)
    return Attribute(start, end, collector.convert(scope, node.value), word, base_end)


def _call(collector: Collector, scope: Scope, node: ast.Call, start: int, end: int) -> Expression:
    func = called(scope, collector.convert(scope, node.func))
    text, at = collector.tree.text, func.end
    at = at + 1 if text[at] == "(" else opening(text, at)
    return Call(start, end, func, tuple(arguments(collector, scope, node.args, node.keywords, at)), at)


def arguments(
    collector: Collector, scope: Scope, args: list[ast.expr], keywords: list[ast.keyword], before: int
) -> Iterable[Arg]:
    """The records of the arguments of a call or class, whose parenthesis opens before ``before``."""
    tree = collector.tree
    text, span, converters = tree.text, tree.span, tree.expressions
    for node in _in_order(args, keywords) if keywords else args:
        value, keyword, star = node, None, ""
        if type(node) is ast.keyword:
            value, keyword = node.value, node.arg
            star = "" if keyword else "**"
        elif type(node) is ast.Starred:
            value, star = node.value, "*"
        start, end = span(value)
        record = converters.get(type(value), other)(collector, scope, value, start, end)
        if start < before:  # a generator expression without parentheses of its own
            start, end = record.start, record.end
        elif text.find("(", before, start) >= 0:
            start, end = around(text, before, start, end)
        yield Arg(start, end, keyword, star, record)
        before = end


def _in_order(args: Sequence[Any], keywords: Sequence[Any]) -> Sequence[Any]:
    """Arguments as written: ``*args`` may follow a keyword."""
    if args and type(args[-1]) is ast.Starred:
        return sorted((*args, *keywords), key=lambda node: (node.lineno, node.col_offset))
    return (*args, *keywords)


def _subscript(collector: Collector, scope: Scope, node: ast.Subscript, start: int, end: int) -> Expression:
    value = collector.convert(scope, node.value)
    text, index = collector.tree.text, node.slice
    nodes = [index]
    if isinstance(index, ast.Tuple) and not _enclosed(collector, index, *collector.tree.span(index)):
        nodes = index.elts
    indices = tuple(_index(collector, scope, each) for each in nodes)
    base_end = value.end if text[value.end] == "[" else closed(text, value.end)
    return Subscript(start, end, value, indices, base_end)


def _index(collector: Collector, scope: Scope, node: ast.expr) -> Expression:
    if type(node) is ast.Starred:
        value = collector.convert(scope, node.value)
        return Operation(value.start, value.end, "*", (value,))
    return collector.convert(scope, node)


def _slice(collector: Collector, scope: Scope, node: ast.Slice, start: int, end: int) -> Expression:
    bounds = [collector.convert(scope, bound) if bound else None for bound in (node.lower, node.upper, node.step)]
    nothing = Constant(start, start, None)
    if collector.tree.text[end - 1] == ":":
        end = skip(collector.tree.text, end)  # as libcst has it
    return Operation(start, end, ":", tuple(bound or nothing for bound in bounds))


def _constant(collector: Collector, scope: Scope, node: ast.Constant, start: int, end: int) -> Expression:
    value = node.value
    if isinstance(value, (str, bytes)):
        return string(collector, scope, value, start, end)
    if value is ...:
        return Operation(start, end, "...", ())
    return Constant(start, end, value)


def _formatted(collector: Collector, scope: Scope, node: ast.JoinedStr, start: int, end: int) -> Expression:
    return string(collector, scope, None, start, end)


def _unary(collector: Collector, scope: Scope, node: ast.UnaryOp, start: int, end: int) -> Expression:
    return signed(SIGNS[type(node.op)], collector.convert(scope, node.operand), start, end)


def _binary(collector: Collector, scope: Scope, node: ast.BinOp, start: int, end: int) -> Expression:
    """A chain that leans left is walked down, not recursed into."""
    chain = [node]
    while type(left := chain[-1].left) is ast.BinOp:
        chain.append(left)
    value = collector.convert(scope, left)
    for link in reversed(chain):
        right = collector.convert(scope, link.right)
        value = Operation(*collector.tree.span(link), SIGNS[type(link.op)], (value, right))
    return value


def _boolean(collector: Collector, scope: Scope, node: ast.BoolOp, start: int, end: int) -> Expression:
    """``a and b and c`` is ``(a and b) and c``."""
    tree, sign = collector.tree, SIGNS[type(node.op)]
    value = collector.convert(scope, node.values[0])
    for each in node.values[1:]:
        right = collector.convert(scope, each)
        stop = end if each is node.values[-1] else closed(tree.text, tree.span(each)[1])
        value = Operation(start, stop, sign, (value, right))
    return value


def _await(collector: Collector, scope: Scope, node: ast.Await, start: int, end: int) -> Expression:
    return Operation(start, end, "await", (collector.convert(scope, node.value),))


def _yield(collector: Collector, scope: Scope, node: ast.Yield | ast.YieldFrom, start: int, end: int) -> Expression:
    collector.generators.add(scope.function().name)
    operands = (collector.convert(scope, node.value),) if node.value is not None else ()
    return Operation(start, end, "yield" if type(node) is ast.Yield else "yield from", operands)


def _starred(collector: Collector, scope: Scope, node: ast.Starred, start: int, end: int) -> Expression:
    """In a place where no parser's grammar has a word for it: ``x = *y``."""
    return Operation(start, end, "?", ())


def _tuple(collector: Collector, scope: Scope, node: ast.Tuple, start: int, end: int) -> Expression:
    items = _items(collector, scope, node.elts)
    if _enclosed(collector, node, start, end):
        start, end = _within(collector, node.elts[-1:], start, end)
    return Collection(start, end, "tuple", items)


def _list(collector: Collector, scope: Scope, node: ast.List, start: int, end: int) -> Expression:
    return Collection(start, end, "list", _items(collector, scope, node.elts))


def _set(collector: Collector, scope: Scope, node: ast.Set, start: int, end: int) -> Expression:
    return Collection(start, end, "set", _items(collector, scope, node.elts))


def _items(collector: Collector, scope: Scope, nodes: list[ast.expr]) -> tuple[Expression, ...]:
    return tuple(_item(collector, scope, node) for node in nodes)


def _item(collector: Collector, scope: Scope, node: ast.expr) -> Expression:
    if type(node) is ast.Starred:
        return Operation(*collector.tree.span(node), "*", (collector.convert(scope, node.value),))
    return collector.convert(scope, node)


def _dict(collector: Collector, scope: Scope, node: ast.Dict, start: int, end: int) -> Expression:
    items: list[Expression | None] = []
    for key, value in zip(node.keys, node.values, strict=True):
        items.append(collector.convert(scope, key) if key is not None else None)
        items.append(collector.convert(scope, value))
    return Collection(start, end, "dict", tuple(items))


_comprehended = comprehension("generator", "elt")


def _generator(collector: Collector, scope: Scope, node: ast.GeneratorExp, start: int, end: int) -> Expression:
    last = node.generators[-1]
    record = _comprehended(collector, scope, node, start, end)
    start, end = _within(collector, [last.ifs[-1] if last.ifs else last.iter], start, end)
    return record._replace(start=start, end=end)


def _enclosed(collector: Collector, node: ast.Tuple, start: int, end: int) -> bool:
    """Whether a tuple has parentheses, which then are in its span."""
    tree = collector.tree
    if tree.text[start] != "(" or tree.text[end - 1] != ")":
        return False
    return not node.elts or encloses(tree.text, start, tree.span(node.elts[0]))


def _within(collector: Collector, last: Sequence[ast.expr], start: int, end: int) -> tuple[int, int]:
    """The span between parentheses that hold something, of which ``last`` is the last node, or nothing."""
    text = collector.tree.text
    start = skip(text, start + 1)
    return (start, trailed(text, collector.tree.span(last[0])[1], end - 1)) if last else (start, start)


def deleted(collector: Collector, scope: Scope, node: ast.Delete, end: int) -> Expression:
    """What ``del`` deletes, a tuple if there are several, or a comma."""
    tree, targets = collector.tree, node.targets
    if len(targets) == 1 and closed(tree.text, tree.span(targets[0])[1]) >= end:
        return collector.convert(scope, targets[0])
    start = skip(tree.text, tree.span(node)[0] + len("del"))
    return Collection(start, end, "tuple", _items(collector, scope, targets))


def other(collector: Collector, scope: Scope, node: ast.AST, start: int, end: int) -> Expression:
    """No node that is known here: syntax of a later Python."""
    raise Untrusted


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

EXPRESSIONS: dict[type, ToExpression] = {
    **typed(ast, expressions.EXPRESSIONS),
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Constant: _constant,
    ast.JoinedStr: _formatted,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Starred: _starred,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.GeneratorExp: _generator,
}
