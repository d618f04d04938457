"""What a dictionary holds where it is passed on with ``**``: its display, and what was done to it before that place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.scoped import UNKNOWN, Arguments, Scoped, either, over
from torchrepro_lint.syntax.definitions import Change
from torchrepro_lint.syntax.nodes import Arg, Call, Collection, Constant, Expression, Operation, Ref

if TYPE_CHECKING:
    from torchrepro_lint.value_context import ValueSources

_COPIES = frozenset({"copy.copy", "copy.deepcopy", "builtins.dict", "collections.OrderedDict"})
_MOST = 8


def entries(origins: ValueSources, passed: Scoped, depth: int = 0) -> Arguments:
    """The entries of a dictionary by key; not ``complete`` where it may hold more, or where it takes too long to tell."""
    if depth > _MOST or not origins.dictionaries.enter():
        return UNKNOWN
    try:
        return _entries(origins, passed, depth)
    finally:
        origins.dictionaries.leave()


def _entries(origins: ValueSources, passed: Scoped, depth: int) -> Arguments:
    match passed.value:
        case Ref():
            return _of_reference(origins, passed, depth)
        case Collection(kind="dict", items=items):
            return _displayed(origins, passed, items, depth)
        case Call(func=Ref(path=(*_, "copy")) as func, args=()):
            return entries(origins, passed._replace(value=func._replace(path=func.path[:-1])), depth + 1)
        case Call(func=func, args=args) if _COPIES.intersection(origins.project.names(passed.path, func)):
            return named(origins, passed, args, depth)
        case Operation(op="if", operands=(_, one, other)) | Operation(op="or", operands=(one, other)):
            ways = [entries(origins, passed._replace(value=each), depth + 1) for each in (one, other)]
            return either(*ways)
        case Operation(op="|", operands=operands):
            return _merged(entries(origins, passed._replace(value=each), depth + 1) for each in operands)
    return _behind(origins, passed, depth)


def _behind(origins: ValueSources, passed: Scoped, depth: int) -> Arguments:
    """What a call or a subscript leads to; nothing is known of what leads nowhere."""
    found = [each for each in origins.of(passed) if each.value is not passed.value]
    ways = [entries(origins, each, depth + 1) for each in found] or [UNKNOWN]
    return _any(ways)


def _any(ways: Iterable[Arguments]) -> Arguments:
    found: Arguments | None = None
    for way in ways:
        found = way if found is None else either(found, way)
    return UNKNOWN if found is None else found


def _merged(parts: Iterable[Arguments]) -> Arguments:
    found = Arguments()
    for part in parts:
        found = over(found, part)
    return found


def _displayed(origins: ValueSources, passed: Scoped, items: tuple[Expression | None, ...], depth: int) -> Arguments:
    found = Arguments()
    for key, item in zip(items[::2], items[1::2], strict=True):
        assert item is not None
        if key is None:
            found = over(found, entries(origins, passed._replace(value=item), depth + 1))
        elif isinstance(key, Constant) and isinstance(key.value, str):
            found = over(found, Arguments({key.value: (passed._replace(value=item),)}))
        else:
            found = over(found, UNKNOWN)
    return found


def named(origins: ValueSources, passed: Scoped, args: tuple[Arg, ...], depth: int) -> Arguments:
    """What ``dict(...)`` and ``update(...)`` are given: other dictionaries, and keywords."""
    found = Arguments()
    for arg in args:
        value = passed._replace(value=arg.value)
        if arg.keyword is not None:
            found = over(found, Arguments({arg.keyword: (value,)}))
        else:
            found = over(found, UNKNOWN if arg.star == "*" else entries(origins, value, depth + 1))
    return found


def _of_reference(origins: ValueSources, passed: Scoped, depth: int) -> Arguments:
    """What a variable or attribute is given, with the changes that are made to it before."""
    assert isinstance(passed.value, Ref)
    state: Arguments | None = None
    for step in origins.history(passed):
        if step.value is not None:
            way = step.value if isinstance(step.value, Arguments) else entries(origins, step.value, depth + 1)
            state = way if step.certain or state is None else either(state, way)
        elif state is not None and step.change is not None:
            after = _changed(origins, passed._replace(path=step.path), state, step.change, depth)
            state = after if step.certain else either(state, after)
    return UNKNOWN if state is None else state


def _changed(origins: ValueSources, here: Scoped, state: Arguments, change: Change, depth: int) -> Arguments:
    """The entries after a change; what is set or dropped by a key that is not known may be any."""
    value = () if change.value is None else (here._replace(value=change.value),)
    match change.kind:
        case "merge":
            return over(state, named(origins, here, change.args, depth))
        case "set" | "default" if change.key is None:
            return over(state, UNKNOWN)
        case "set":
            return over(state, Arguments({change.key or "": value}))
        case "default":
            return over(Arguments({change.key or "": value}), state)
        case "drop" if change.key is not None:
            return state._replace(given={key: each for key, each in state.given.items() if key != change.key})
    return state
