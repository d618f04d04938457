"""Definitions: the statements that bind a place (a variable, an attribute, an element), with destructuring and in-place updates.

A definition names the part of a value that a variable gets; a mutation site, the entry or item that is set, merged, dropped or added. A
place that is stored to is a name, an attribute or an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    FrozenRecord,
    Function,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    With,
)
from torchrepro_lint.syntax.qualified_names import is_self, local_symbol
from torchrepro_lint.syntax.visitor import expressions, statements, subexpressions


class Assignment(FrozenRecord, frozen=True):
    """A definition (as in reaching definitions): a statement that binds a variable, and the value.

    An element is a ``Subscript``: with its index in a destructuring, without indices for any element, as in a loop.
    """

    statement: Statement
    value: Expression


Assignments: TypeAlias = dict[str, list[Assignment]]


def assignments(facts: SyntaxTree) -> Assignments:
    """The definitions of all variables of a file, by name (``:f.<locals>.x``), in the order of the text."""
    found: Assignments = {}
    for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
        for statement in statements(body):
            for name, value in _definitions_in(statement):
                found.setdefault(name, []).append(Assignment(statement, value))
    return found


def attribute_stores(facts: SyntaxTree) -> Iterator[tuple[Ref, Expression]]:
    """The stores to attributes of objects other than ``self``: the target, and the value."""
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            if isinstance(statement, Assign) and statement.value is not None and statement.op == "=":
                for target in statement.targets:
                    if isinstance(target, Ref) and target.path and not _is_self_attribute(target):
                        yield target, statement.value


def _is_self_attribute(target: Ref) -> bool:
    """``self.x``, but not ``self.x.y``."""
    return len(target.path) == 1 and any(root.endswith(".self") for root in target.roots)


def _definitions_in(statement: Statement) -> Iterator[tuple[str, Expression]]:
    match statement:
        case Assign(targets=targets, value=value, op="=" | ":") if value is not None:
            for target in targets:
                yield from _destructured(target, value)
        case Loop(target=target, source=source) if target is not None:
            yield from _destructured(target, _any_element(source))
        case With(items=items):
            for entered, name in items:
                if name is not None:
                    yield from _destructured(name, entered)
    for expression in expressions(statement):
        for each in subexpressions(expression):
            if isinstance(each, Comprehension):
                for clause in each.clauses:
                    yield from _destructured(clause.target, _any_element(clause.source))
            elif isinstance(each, Operation) and each.op == ":=":
                yield from _destructured(each.operands[0], each.operands[1])


def _destructured(target: Expression, value: Expression) -> Iterator[tuple[str, Expression]]:
    """Destructuring: the variables that a target binds, each with its part of the value."""
    match target:
        case Ref(roots=roots, path=()):
            yield from ((root, value) for root in roots)
        case Collection(items=items):
            whole = isinstance(value, Collection) and len(value.items) == len(items) and value.kind != "dict"
            starred = any(_is_starred(item) for item in items)
            for index, item in enumerate(items):
                if item is not None and not _is_starred(item):
                    picked = value.items[index] if whole and isinstance(value, Collection) else None
                    yield from _destructured(
                        item, picked or (_any_element(value) if starred else _element(value, index))
                    )


def _is_starred(item: Expression | None) -> bool:
    return isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1


def _element(value: Expression, index: int) -> Expression:
    return Subscript(value.start, value.end, value, (Constant(value.end, value.end, index),), value.end)


def _any_element(value: Expression) -> Expression:
    return Subscript(value.start, value.end, value, (), value.end)


_METHODS = {
    "update": "merge",
    "setdefault": "default",
    "pop": "drop",
    "append": "add",
    "extend": "join",
    "insert": "add",
}


class ContainerUpdate(NamedTuple):
    """An in-place update of a dictionary: ``set``, ``default`` or ``drop`` of a ``key`` (None: unknown), or ``merge`` of ``args``,
    which are as those of ``dict``; of a list: ``add`` of one item, or ``join`` of the items of another.
    """

    kind: str
    key: str | None = None
    value: Expression | None = None
    args: tuple[Arg, ...] = ()


class MutationSite(NamedTuple):
    """An in-place update, and the statement that makes it."""

    statement: Statement
    change: ContainerUpdate


# By the container: a name of the file (``:f.<locals>.x``) and the attributes read from it.
MutationSites: TypeAlias = dict[tuple[str, tuple[str, ...]], list[MutationSite]]


def mutation_sites(facts: SyntaxTree) -> MutationSites:
    """The in-place updates in a file, in the order of the text."""
    found: MutationSites = {}
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            for container, change in _updates(statement):
                for root in container.roots:
                    found.setdefault((root, container.path), []).append(MutationSite(statement, change))
    return found


def _updates(statement: Statement) -> Iterator[tuple[Ref, ContainerUpdate]]:
    """The in-place updates of a statement, without those of its blocks."""
    if isinstance(statement, Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, Subscript) and isinstance(target.value, Ref):
                yield target.value, ContainerUpdate("set", _key(target.indices), statement.value)
            elif statement.op in ("|=", "+=") and isinstance(target, Ref):
                arg = Arg(statement.value.start, statement.value.end, None, "", statement.value)
                yield (
                    target,
                    ContainerUpdate("merge" if statement.op == "|=" else "join", None, statement.value, (arg,)),
                )
    if isinstance(statement, SimpleStatement) and statement.kind == "del":
        for value in statement.values:
            for each in value.items if isinstance(value, Collection) else (value,):
                if isinstance(each, Subscript) and isinstance(each.value, Ref):
                    yield each.value, ContainerUpdate("drop", _key(each.indices))
    for expression in expressions(statement):
        for part in subexpressions(expression):
            if isinstance(part, Call) and isinstance(part.func, Ref) and part.func.path[-1:]:
                yield from _updates_by_method(part, part.func)


def _updates_by_method(call: Call, func: Ref) -> Iterator[tuple[Ref, ContainerUpdate]]:
    kind = _METHODS.get(func.path[-1])
    container = func._replace(path=func.path[:-1])
    if kind == "merge":
        yield container, ContainerUpdate("merge", None, None, call.args)
    elif kind in ("add", "join") and call.args:
        yield container, ContainerUpdate(kind, None, call.args[-1].value)
    elif kind in ("default", "drop") and call.args:
        value = call.args[1].value if len(call.args) > 1 else None
        if kind == "drop" or value is not None:
            yield container, ContainerUpdate(kind, _key((call.args[0].value,)), value)


def _key(indices: tuple[Expression, ...]) -> str | None:
    match indices:
        case (Constant(value=str(key)),):
            return key
    return None


def header_targets(statement: Statement) -> tuple[Expression, ...]:
    """The assignment targets in the header of a loop or a ``with``."""
    match statement:
        case Loop(target=target) if target is not None:
            return (target,)
        case With(items=items):
            return tuple(target for _, target in items if target is not None)
    return ()


def stored_places(target: Expression, value: Expression | None) -> Iterator[tuple[Expression, Expression | None]]:
    """The attributes and elements that an assignment stores to (places), each with its part of the value."""
    match target:
        case Subscript():
            yield target, value
        case Ref(roots=roots, path=(_, *_)) if not any(map(is_self, roots)):
            yield target, value
        case Collection(items=items):
            whole = isinstance(value, Collection) and len(value.items) == len(items)
            for index, item in enumerate(items):
                if item is not None:
                    yield from stored_places(
                        item, value.items[index] if whole and isinstance(value, Collection) else None
                    )


def unpacking_index(body: Iterable[Statement], root: str, value: Expression) -> int | None:
    """The index of a variable where a body destructures a value: 0 for ``net`` in ``net, step = build()``.

    None where the variable gets the value in another way, or stands behind a star.
    """
    for statement in statements(tuple(body)):
        if isinstance(statement, Assign) and statement.value is value:
            for target in statement.targets:
                if isinstance(target, Collection) and (found := _index_in(target, root)) is not None:
                    return found
    return None


def loop_unpacking_index(body: Iterable[Statement], root: str, source: Expression) -> int | None:
    """The index of a variable where a loop destructures each element of a source: 1 for ``net`` in ``for i, net in enumerate(nets)``."""
    for statement in statements(tuple(body)):
        if isinstance(statement, Loop) and statement.source is source and isinstance(statement.target, Collection):
            return _index_in(statement.target, root)
    return None


def attribute_unpacking_index(function: Function, word: str, value: Expression) -> int | None:
    """The same for an attribute of a method's first parameter: 0 for ``net`` in ``self.net, self.step = build()``."""
    own = local_symbol(function.name, function.params[0].name) if function.params else ""
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.value is value:
            for target in statement.targets:
                if isinstance(target, Collection) and (found := _index_in(target, own, (word,))) is not None:
                    return found
    return None


def _index_in(target: Collection, root: str, path: tuple[str, ...] = ()) -> int | None:
    for index, item in enumerate(target.items):
        if isinstance(item, Operation):
            return None
        if isinstance(item, Ref) and item.path == path and root in item.roots:
            return index
    return None
