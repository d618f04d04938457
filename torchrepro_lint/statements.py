"""libcst statements → the statements of ``facts``: one function per node type, found by a table."""

# ruff: noqa: ARG001  # the functions of a table take what the table's callers hand them

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchrepro_lint.expressions import convert
from torchrepro_lint.facts import (
    Assign,
    Collection,
    Constant,
    Define,
    Do,
    Expression,
    If,
    Import,
    Leave,
    Loop,
    Match,
    Statement,
    Try,
    With,
)
from torchrepro_lint.importing import dotted, import_bindings, imported_module
from torchrepro_lint.scopes import Scope

if TYPE_CHECKING:
    from torchrepro_lint.collect import Collector

_Convert = Callable[["Collector", Scope, Any, int, int], Statement | None]


def body_of(collector: Collector, scope: Scope, block: Any) -> tuple[Statement, ...]:
    """The statements of a module, suite or clause; documentation strings and ``pass`` are left out."""
    if block is None:
        return ()
    if isinstance(block, (cst.Else, cst.Finally)):
        block = block.body
    return tuple(_statements(collector, scope, block.body))


def _statements(collector: Collector, scope: Scope, body: Any) -> Iterator[Statement]:
    for node in body:
        kind = type(node)
        if kind is cst.SimpleStatementLine:
            yield from _statements(collector, scope, node.body)
        elif converter := STATEMENTS.get(kind):
            start, end = collector.offsets.inner(node)
            statement = converter(collector, scope, node, start, end)
            if statement is not None:
                yield statement


def _do(collector: Collector, scope: Scope, node: cst.Expr, start: int, end: int) -> Statement | None:
    value = convert(collector, scope, node.value)
    return None if type(value) is Constant else Do(start, end, value)


def _assign(collector: Collector, scope: Scope, node: cst.Assign, start: int, end: int) -> Statement:
    value = convert(collector, scope, node.value)
    for target in node.targets:
        _pair(collector, scope, target.target, value)
    targets = tuple(convert(collector, scope, target.target) for target in node.targets)
    return Assign(start, end, targets, value, "=", None)


def _pair(collector: Collector, scope: Scope, target: cst.CSTNode, value: Expression) -> None:
    """Note assignments; ``a, b = f(), g()`` gives each name its own value."""
    if (
        isinstance(target, (cst.Tuple, cst.List))
        and isinstance(value, Collection)
        and len(target.elements) == len(value.items)
        and value.kind in ("tuple", "list")
        and not any(isinstance(element, cst.StarredElement) for element in target.elements)
    ):
        for element, item in zip(target.elements, value.items, strict=True):
            assert item is not None
            _pair(collector, scope, element.value, item)
    else:
        collector.assign(scope, target, "=", value)


def _annotated(collector: Collector, scope: Scope, node: cst.AnnAssign, start: int, end: int) -> Statement:
    annotation = collector.annotation(scope, node.annotation.annotation)
    collector.assign(scope, node.target, ":", annotation)
    value = convert(collector, scope, node.value) if node.value else None
    if value is not None:
        collector.assign(scope, node.target, "=", value)
    return Assign(start, end, (convert(collector, scope, node.target),), value, ":", annotation)


def _augmented(collector: Collector, scope: Scope, node: cst.AugAssign, start: int, end: int) -> Statement:
    value = convert(collector, scope, node.value)
    op = _AUGMENTED.get(type(node.operator), "?=")
    collector.assign(scope, node.target, op, value)
    return Assign(start, end, (convert(collector, scope, node.target),), value, op, None)


def _import(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Statement:
    names = tuple(import_bindings(node))
    if isinstance(node, cst.Import):
        return Import(start, end, tuple(_module_names(node)), names)
    module = imported_module(node)
    if isinstance(node.names, cst.ImportStar):
        collector.stars.append(module)
        names = (("*", module),)
    return Import(start, end, (module,), names)


def _module_names(node: cst.Import) -> Iterator[str]:
    return (dotted(alias.name) for alias in node.names)


def _if(collector: Collector, scope: Scope, node: cst.If, start: int, end: int) -> Statement:
    """A chain of ``elif`` nests in the other branch, built from its end: 3,000 of them are no recursion."""
    chain = [node]
    while isinstance(chain[-1].orelse, cst.If):
        chain.append(chain[-1].orelse)
    parts = [(convert(collector, scope, link.test), body_of(collector, scope, link.body)) for link in chain]
    orelse = body_of(collector, scope, chain[-1].orelse)
    for link, (test, body) in zip(reversed(chain), reversed(parts), strict=True):
        orelse = (If(*collector.offsets.inner(link), test, body, orelse),)
    return orelse[0]


def _for(collector: Collector, scope: Scope, node: cst.For, start: int, end: int) -> Statement:
    source = convert(collector, scope, node.iter)
    collector.assign(scope, node.target, "[]", source)
    target = convert(collector, scope, node.target)
    return _loop(collector, scope, node, target, source, start, end)


def _while(collector: Collector, scope: Scope, node: cst.While, start: int, end: int) -> Statement:
    return _loop(collector, scope, node, None, convert(collector, scope, node.test), start, end)


def _loop(
    collector: Collector, scope: Scope, node: Any, target: Expression | None, source: Expression, start: int, end: int
) -> Statement:
    body = body_of(collector, scope, node.body)
    return Loop(start, end, target, source, body, body_of(collector, scope, node.orelse))


def _with(collector: Collector, scope: Scope, node: cst.With, start: int, end: int) -> Statement:
    items: list[tuple[Expression, Expression | None]] = []
    for item in node.items:
        value = convert(collector, scope, item.item)
        target = None
        if item.asname:
            collector.assign(scope, item.asname.name, "with", value)
            target = convert(collector, scope, item.asname.name)
        items.append((value, target))
    return With(start, end, tuple(items), body_of(collector, scope, node.body))


def _try(collector: Collector, scope: Scope, node: Any, start: int, end: int) -> Statement:
    body = body_of(collector, scope, node.body)
    handlers = tuple(
        (convert(collector, scope, handler.type) if handler.type else None, body_of(collector, scope, handler.body))
        for handler in node.handlers
    )
    orelse, final = (body_of(collector, scope, block) for block in (node.orelse, node.finalbody))
    return Try(start, end, body, handlers, orelse, final)


def _match(collector: Collector, scope: Scope, node: cst.Match, start: int, end: int) -> Statement:
    subject = convert(collector, scope, node.subject)
    cases = tuple(
        (convert(collector, scope, case.guard) if case.guard else None, body_of(collector, scope, case.body))
        for case in node.cases
    )
    return Match(start, end, subject, cases)


def _function(collector: Collector, scope: Scope, node: cst.FunctionDef, start: int, end: int) -> Statement:
    return Define(start, end, scope.own(node.name.value), collector.define_function(scope, node), ())


def _class(collector: Collector, scope: Scope, node: cst.ClassDef, start: int, end: int) -> Statement:
    values, body = collector.define_class(scope, node)
    return Define(start, end, scope.own(node.name.value), values, body)


def _leave(collector: Collector, scope: Scope, node: cst.CSTNode, start: int, end: int) -> Statement:
    fields, kind = _LEAVES[type(node)]
    parts = (getattr(node, field) for field in fields)
    return Leave(start, end, kind, tuple(convert(collector, scope, part) for part in parts if part is not None))


def _alias(collector: Collector, scope: Scope, node: cst.TypeAlias, start: int, end: int) -> Statement:
    target, value = convert(collector, scope, node.name), convert(collector, scope, node.value)
    collector.assign(scope, node.name, "=", value)
    return Assign(start, end, (target,), value, "=", None)


def imports_end(collector: Collector, body: tuple[Statement, ...]) -> int:
    """The end of the last import before the first definition; else of the docstring; else where the code starts."""
    end = 0
    tree = collector.tree
    if tree.get_docstring(clean=False) is not None:
        first = tree.body[0]
        assert isinstance(first, cst.SimpleStatementLine)
        end = collector.offsets.inner(first.body[0])[1]
    for statement in body:
        if isinstance(statement, Define):
            break
        if isinstance(statement, Import) or _only_imports(statement):
            end = statement.end
    return end


def _only_imports(statement: Statement) -> bool:
    match statement:
        case If(body=body, orelse=orelse) | Try(body=body, orelse=orelse):
            return any(isinstance(inner, Import) for inner in (*body, *orelse))
    return False


_LEAVES: dict[type, tuple[tuple[str, ...], str]] = {
    cst.Return: (("value",), "return"),
    cst.Raise: (("exc",), "raise"),
    cst.Assert: (("test", "msg"), "assert"),
    cst.Del: (("target",), "del"),
    cst.Break: ((), "break"),
    cst.Continue: ((), "continue"),
}

_AUGMENTED: dict[type, str] = {
    cst.AddAssign: "+=",
    cst.SubtractAssign: "-=",
    cst.MultiplyAssign: "*=",
    cst.DivideAssign: "/=",
    cst.BitOrAssign: "|=",
    cst.BitAndAssign: "&=",
}

STATEMENTS: dict[type, _Convert] = {
    cst.Expr: _do,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augmented,
    cst.Import: _import,
    cst.ImportFrom: _import,
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Match: _match,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    cst.TypeAlias: _alias,
    **dict.fromkeys(_LEAVES, _leave),
}
