"""What the statements of a file do to dictionaries and lists that variables hold: entries set, merged, dropped, items added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from torchrepro_lint.facts import (
    Arg,
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    Facts,
    Leave,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.walk import expressions, statements, within

_METHODS = {
    "update": "merge",
    "setdefault": "default",
    "pop": "drop",
    "append": "add",
    "extend": "join",
    "insert": "add",
}


class Change(NamedTuple):
    """``kind`` is ``set``, ``default`` or ``drop`` of a ``key`` (None: not known), ``merge`` of what ``args`` are as those of
    ``dict``; of a list ``add`` of one item, or ``join`` of the items of another.
    """

    kind: str
    key: str | None = None
    value: Expression | None = None
    args: tuple[Arg, ...] = ()


class Mutation(NamedTuple):
    """A change, and the statement that makes it."""

    statement: Statement
    change: Change


# By the holder: a name of the file (``:f.<locals>.x``) and the attributes read from it.
Mutations: TypeAlias = dict[tuple[str, tuple[str, ...]], list[Mutation]]


def mutations(facts: Facts) -> Mutations:
    """The mutations in a file, in the order of the text."""
    found: Mutations = {}
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            for holder, change in _changes(statement):
                for root in holder.roots:
                    found.setdefault((root, holder.path), []).append(Mutation(statement, change))
    return found


def _changes(statement: Statement) -> Iterator[tuple[Ref, Change]]:
    """What a statement does itself, without its blocks."""
    if isinstance(statement, Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, Subscript) and isinstance(target.value, Ref):
                yield target.value, Change("set", _key(target.indices), statement.value)
            elif statement.op in ("|=", "+=") and isinstance(target, Ref):
                arg = Arg(statement.value.start, statement.value.end, None, "", statement.value)
                yield target, Change("merge" if statement.op == "|=" else "join", None, statement.value, (arg,))
    if isinstance(statement, Leave) and statement.kind == "del":
        for value in statement.values:
            for each in value.items if isinstance(value, Collection) else (value,):
                if isinstance(each, Subscript) and isinstance(each.value, Ref):
                    yield each.value, Change("drop", _key(each.indices))
    for expression in expressions(statement):
        for part in within(expression):
            if isinstance(part, Call) and isinstance(part.func, Ref) and part.func.path[-1:]:
                yield from _by_method(part, part.func)


def _by_method(call: Call, func: Ref) -> Iterator[tuple[Ref, Change]]:
    kind = _METHODS.get(func.path[-1])
    holder = func._replace(path=func.path[:-1])
    if kind == "merge":
        yield holder, Change("merge", None, None, call.args)
    elif kind in ("add", "join") and call.args:
        yield holder, Change(kind, None, call.args[-1].value)
    elif kind in ("default", "drop") and call.args:
        value = call.args[1].value if len(call.args) > 1 else None
        if kind == "drop" or value is not None:
            yield holder, Change(kind, _key((call.args[0].value,)), value)


def _key(indices: tuple[Expression, ...]) -> str | None:
    match indices:
        case (Constant(value=str(key)),):
            return key
    return None
