"""What a statement does to a dictionary or a list that a variable holds: entries set, merged, dropped, items added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.facts import Arg, Assign, Call, Collection, Constant, Expression, Leave, Ref, Statement, Subscript
from torchrepro_lint.walk import expressions, within

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


def changes(statement: Statement, holder: Ref) -> Iterator[Change]:
    """What a statement itself, without its blocks, does to what ``holder`` refers to."""
    if isinstance(statement, Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, Subscript) and _same(target.value, holder):
                yield Change("set", _key(target.indices), statement.value)
            elif statement.op in ("|=", "+=") and _same(target, holder):
                arg = Arg(statement.value.start, statement.value.end, None, "", statement.value)
                yield Change("merge" if statement.op == "|=" else "join", None, statement.value, (arg,))
    if isinstance(statement, Leave) and statement.kind == "del":
        for value in statement.values:
            for each in value.items if isinstance(value, Collection) else (value,):
                if isinstance(each, Subscript) and _same(each.value, holder):
                    yield Change("drop", _key(each.indices))
    for expression in expressions(statement):
        for each in within(expression):
            if isinstance(each, Call) and isinstance(each.func, Ref) and each.func.path[-1:]:
                yield from _by_method(each, each.func, holder)


def _by_method(call: Call, func: Ref, holder: Ref) -> Iterator[Change]:
    kind = _METHODS.get(func.path[-1])
    if kind is None or not _same(func._replace(path=func.path[:-1]), holder):
        return
    if kind == "merge":
        yield Change("merge", None, None, call.args)
    elif kind in ("add", "join") and call.args:
        yield Change(kind, None, call.args[-1].value)
    elif kind in ("default", "drop") and call.args:
        value = call.args[1].value if len(call.args) > 1 else None
        if kind == "drop" or value is not None:
            yield Change(kind, _key((call.args[0].value,)), value)


def _same(expression: Expression, holder: Ref) -> bool:
    return (
        isinstance(expression, Ref)
        and expression.path == holder.path
        and not set(expression.roots).isdisjoint(holder.roots)
    )


def _key(indices: tuple[Expression, ...]) -> str | None:
    match indices:
        case (Constant(value=str(key)),):
            return key
    return None
