"""What statements store, and where."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.facts import Collection, Expression, Loop, Ref, Statement, Subscript, With


def stored(statement: Statement) -> tuple[Expression, ...]:
    """What the head of a loop or of a ``with`` assigns to."""
    match statement:
        case Loop(target=target) if target is not None:
            return (target,)
        case With(items=items):
            return tuple(target for _, target in items if target is not None)
    return ()


def places(target: Expression, value: Expression | None) -> Iterator[tuple[Expression, Expression | None]]:
    """The attributes and items that an assignment changes, each with its part of the value."""
    match target:
        case Subscript():
            yield target, value
        case Ref(roots=roots, path=(_, *_)) if not any(root.endswith(".<locals>.self") for root in roots):
            yield target, value
        case Collection(items=items):
            whole = isinstance(value, Collection) and len(value.items) == len(items)
            for index, item in enumerate(items):
                if item is not None:
                    yield from places(item, value.items[index] if whole and isinstance(value, Collection) else None)
