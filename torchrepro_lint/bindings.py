"""Which words the statements of a body bind in its scope, wherever in the body they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

from torchrepro_lint.importing import import_bindings
from torchrepro_lint.scopes import Scope


def bind_body(scope: Scope, body: cst.BaseSuite | cst.Module, may_bind: Callable[[cst.CSTNode], bool]) -> None:
    """Bind in ``scope`` every word that the statements of a body bind, nested blocks included, nested scopes not.

    ``may_bind`` says whether there may be a ``:=`` in a statement's expressions: looking at all of them costs time.
    """
    stack: list[cst.CSTNode] = list(reversed(body.body))
    unconditional = _unconditional(body)
    imported: dict[str, str] = {}
    while stack:
        node = stack.pop()
        binder = _BINDERS.get(type(node))
        if binder is not None:
            if id(node) in unconditional:
                _forget(scope, imported, node)
            binder(scope, node)
        if may_bind(node):
            for target in _walruses(node):
                bind_target(scope, target)
        stack.extend(reversed(list(_blocks(node))))


def _unconditional(body: cst.BaseSuite | cst.Module) -> set[int]:
    """The imports and definitions, by identity, that stand in the body itself and so replace earlier ones."""
    found: set[int] = set()
    for node in body.body:
        if isinstance(node, cst.SimpleStatementLine):
            found |= {id(small) for small in node.body if isinstance(small, (cst.Import, cst.ImportFrom))}
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            found.add(id(node))
    return found


def _forget(scope: Scope, imported: dict[str, str], node: cst.CSTNode) -> None:
    """Drop what an earlier unconditional import bound to the words that a later one, or a definition, binds again."""
    if isinstance(node, (cst.Import, cst.ImportFrom)):
        bound = list(import_bindings(node))
    else:
        assert isinstance(node, (cst.FunctionDef, cst.ClassDef))
        bound = [(node.name.value, "")]
    for word, name in bound:
        earlier = imported.get(word)
        if earlier and earlier != name:
            scope.bound.get(word, set()).discard(earlier)
        imported[word] = name


def bind_globals(module: Scope, tree: cst.Module, may_bind: Callable[[cst.CSTNode], bool]) -> None:
    """Bind in the module's scope what functions and classes anywhere in it declare ``global`` and bind."""
    stack: list[cst.CSTNode] = list(tree.body)
    while stack:
        node = stack.pop()
        stack.extend(_blocks(node))
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            bind_body(Scope("function", module.name, module), node.body, may_bind)
            stack.append(node.body)


def _walruses(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The targets of ``:=`` in the expressions of a statement or clause, its blocks and lambdas apart."""
    stack = [child for child in node.children if not isinstance(child, _BLOCKS)]
    while stack:
        each = stack.pop()
        if isinstance(each, cst.NamedExpr):
            yield each.target
        stack.extend(each.params.children if isinstance(each, cst.Lambda) else each.children)


def bind_target(scope: Scope, target: cst.CSTNode) -> None:
    """Bind the words of an assignment target."""
    for word in target_words(target):
        scope.bind(word)


def target_words(target: cst.CSTNode) -> Iterator[str]:
    """The plain names in an assignment target: ``a``, ``b`` and ``c`` in ``a, (b, *c), d.e``."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from target_words(element.value)


def _bind_import(scope: Scope, node: cst.Import | cst.ImportFrom) -> None:
    for word, name in import_bindings(node):
        scope.bind(word, name)


def _bind_definition(scope: Scope, node: cst.FunctionDef | cst.ClassDef) -> None:
    scope.bind(node.name.value)


def _bind_assign(scope: Scope, node: cst.Assign) -> None:
    for target in node.targets:
        bind_target(scope, target.target)


def _bind_one(scope: Scope, node: cst.AnnAssign | cst.AugAssign | cst.For) -> None:
    bind_target(scope, node.target)


def _bind_with(scope: Scope, node: cst.With) -> None:
    for item in node.items:
        if item.asname:
            bind_target(scope, item.asname.name)


def _bind_handler(scope: Scope, node: cst.ExceptHandler | cst.ExceptStarHandler) -> None:
    if node.name:
        bind_target(scope, node.name.name)


def _bind_global(scope: Scope, node: cst.Global) -> None:
    for item in node.names:
        scope.redirect(item.name.value, scope.module())


def _bind_nonlocal(scope: Scope, node: cst.Nonlocal) -> None:
    for item in node.names:
        word, owner = item.name.value, scope.parent
        while owner is not None and (owner.kind == "class" or word not in owner.bound):
            owner = owner.parent
        if owner is not None:
            scope.redirect(word, owner)


def _bind_case(scope: Scope, node: cst.MatchCase) -> None:
    """Captures are the names of ``as``, star and mapping-rest patterns, however deep."""
    stack: list[cst.CSTNode] = [node.pattern]
    while stack:
        pattern = stack.pop()
        name = getattr(pattern, "name", None) if isinstance(pattern, (cst.MatchAs, cst.MatchStar)) else None
        rest = pattern.rest if isinstance(pattern, cst.MatchMapping) else None
        for word in (name, rest):
            if word is not None:
                scope.bind(word.value)
        stack.extend(pattern.children)


def _bind_alias(scope: Scope, node: cst.TypeAlias) -> None:
    scope.bind(node.name.value)


_BINDERS: dict[type, Callable[[Scope, Any], None]] = {
    cst.Import: _bind_import,
    cst.ImportFrom: _bind_import,
    cst.FunctionDef: _bind_definition,
    cst.ClassDef: _bind_definition,
    cst.Assign: _bind_assign,
    cst.AnnAssign: _bind_one,
    cst.AugAssign: _bind_one,
    cst.For: _bind_one,
    cst.With: _bind_with,
    cst.ExceptHandler: _bind_handler,
    cst.ExceptStarHandler: _bind_handler,
    cst.Global: _bind_global,
    cst.Nonlocal: _bind_nonlocal,
    cst.MatchCase: _bind_case,
    cst.TypeAlias: _bind_alias,
}


def _blocks(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements and clauses directly inside a statement, nested definitions left out."""
    kind = type(node)
    if kind is cst.SimpleStatementLine or kind is cst.SimpleStatementSuite or kind is cst.IndentedBlock:
        yield from node.body  # type: ignore[attr-defined]  # narrowed by exact type, for speed
    elif kind in _BLOCK_FIELDS:
        for field in _BLOCK_FIELDS[kind]:
            value = getattr(node, field)
            if isinstance(value, (list, tuple)):
                yield from value
            elif value is not None:
                yield value


_BLOCK_FIELDS: dict[type, tuple[str, ...]] = {
    cst.If: ("body", "orelse"),
    cst.Else: ("body",),
    cst.For: ("body", "orelse"),
    cst.While: ("body", "orelse"),
    cst.With: ("body",),
    cst.Try: ("body", "handlers", "orelse", "finalbody"),
    cst.TryStar: ("body", "handlers", "orelse", "finalbody"),
    cst.ExceptHandler: ("body",),
    cst.ExceptStarHandler: ("body",),
    cst.Finally: ("body",),
    cst.Match: ("cases",),
    cst.MatchCase: ("body",),
}

# What holds statements: they are looked at on their own.
_BLOCKS = (
    cst.BaseSuite,
    cst.BaseStatement,
    cst.Else,
    cst.Finally,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.MatchCase,
)
