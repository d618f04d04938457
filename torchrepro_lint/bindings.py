"""Which words the statements of a body bind in its scope, wherever in the body they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchrepro_lint.importing import import_bindings
from torchrepro_lint.scopes import Scope
from torchrepro_lint.syntax.tree import Binder, Node, SyntaxTree


def bind_body(tree: SyntaxTree, scope: Scope, block: Node) -> None:
    """Bind in ``scope`` every word that the statements of a body bind, nested blocks included, nested scopes not."""
    body = tree.body(block)
    unconditional = set(map(id, body))
    imported: dict[str, str] = {}
    binders, blocks, walrus = tree.binders, tree.blocks, tree.walrus
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        kind = type(node)
        binder = binders.get(kind)
        if binder is not None:
            if binder in _REPLACING and id(node) in unconditional:
                _forget(tree, scope, imported, node)
            binder(tree, scope, node)
        if walrus:
            for target in tree.walruses(node):
                bind_target(tree, scope, target)
        if kind in blocks:
            stack.extend(reversed(list(_inner(tree, node))))


def bind_globals(tree: SyntaxTree, module: Scope) -> None:
    """Bind in the module's scope what functions and classes anywhere in it declare ``global`` and bind."""
    stack = list(tree.body(tree.module))
    while stack:
        node = stack.pop()
        if tree.binders.get(type(node)) is _bind_definition:
            bind_body(tree, Scope("function", module.name, module), node.body)
            stack.extend(tree.body(node.body))
        elif type(node) in tree.blocks:
            stack.extend(_inner(tree, node))


def _inner(tree: SyntaxTree, node: Node) -> Iterator[Node]:
    """The statements and clauses directly inside a statement, nested definitions left out."""
    for field in tree.blocks[type(node)]:
        yield from tree.body(getattr(node, field))


def bind_target(tree: SyntaxTree, scope: Scope, target: Node) -> None:
    """Bind the words of an assignment target."""
    word = tree.word(target)
    for each in target_words(tree, target) if word is None else (word,):
        scope.bind(each)


def target_words(tree: SyntaxTree, target: Node) -> Iterator[str]:
    """The plain names in an assignment target: ``a``, ``b`` and ``c`` in ``a, (b, *c), d.e``."""
    word = tree.word(target)
    if word is not None:
        yield word
    else:
        for element, _ in tree.elements(target):
            yield from target_words(tree, element)


def _forget(tree: SyntaxTree, scope: Scope, imported: dict[str, str], node: Node) -> None:
    """Drop what an earlier unconditional import bound to the words that a later one, or a definition, binds again."""
    defines = tree.binders[type(node)] is _bind_definition
    for word, name in [(tree.name(node), "")] if defines else import_bindings(tree.imported(node)):
        earlier = imported.get(word)
        if earlier and earlier != name:
            scope.unbind(word, earlier)
        imported[word] = name


def _bind_import(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    for word, name in import_bindings(tree.imported(node)):
        scope.bind(word, name)


def _bind_definition(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    scope.bind(tree.name(node))


def _bind_assign(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    for target in tree.targets(node):
        bind_target(tree, scope, target)


def _bind_one(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    bind_target(tree, scope, node.target)


def _bind_alias(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    bind_target(tree, scope, node.name)


def _bind_with(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    for _, target in tree.entered(node):
        if target is not None:
            bind_target(tree, scope, target)


def _bind_handler(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    word = tree.caught(node)
    if word is not None:
        scope.bind(word)


def _bind_case(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    for word in tree.captured(node):
        scope.bind(word)


def _bind_global(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    for word in tree.declared(node):
        scope.redirect(word, scope.module())


def _bind_nonlocal(tree: SyntaxTree, scope: Scope, node: Node) -> None:
    for word in tree.declared(node):
        owner = scope.parent
        while owner is not None and (owner.kind == "class" or word not in owner.bound):
            owner = owner.parent
        if owner is not None:
            scope.redirect(word, owner)


_REPLACING = frozenset({_bind_import, _bind_definition})

# By the names of the parsers' node types; where they differ, both stand here.
BINDERS: Mapping[str, Binder] = {
    "Import": _bind_import,
    "ImportFrom": _bind_import,
    "FunctionDef": _bind_definition,
    "AsyncFunctionDef": _bind_definition,
    "ClassDef": _bind_definition,
    "Assign": _bind_assign,
    "AnnAssign": _bind_one,
    "AugAssign": _bind_one,
    "For": _bind_one,
    "AsyncFor": _bind_one,
    "With": _bind_with,
    "AsyncWith": _bind_with,
    "ExceptHandler": _bind_handler,
    "ExceptStarHandler": _bind_handler,
    "Global": _bind_global,
    "Nonlocal": _bind_nonlocal,
    "MatchCase": _bind_case,
    "match_case": _bind_case,
    "TypeAlias": _bind_alias,
}

BLOCKS: Mapping[str, tuple[str, ...]] = {
    "If": ("body", "orelse"),
    "For": ("body", "orelse"),
    "AsyncFor": ("body", "orelse"),
    "While": ("body", "orelse"),
    "With": ("body",),
    "AsyncWith": ("body",),
    "Try": ("body", "handlers", "orelse", "finalbody"),
    "TryStar": ("body", "handlers", "orelse", "finalbody"),
    "ExceptHandler": ("body",),
    "ExceptStarHandler": ("body",),
    "Match": ("cases",),
    "MatchCase": ("body",),
    "match_case": ("body",),
}
