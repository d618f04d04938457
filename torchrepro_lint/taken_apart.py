"""Which part of a value an assignment gives to a variable."""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.facts import Assign, Collection, Expression, Operation, Ref, Statement
from torchrepro_lint.walk import statements


def position(body: Iterable[Statement], root: str, value: Expression) -> int | None:
    """The position at which a variable stands where a body takes a value apart: 0 for ``net`` in ``net, step = build()``.

    None where the variable gets the value in another way, or stands behind a star.
    """
    for statement in statements(tuple(body)):
        if isinstance(statement, Assign) and statement.value is value:
            for target in statement.targets:
                if isinstance(target, Collection) and (found := _among(target, root)) is not None:
                    return found
    return None


def _among(target: Collection, root: str) -> int | None:
    for index, item in enumerate(target.items):
        if isinstance(item, Operation):
            return None
        if isinstance(item, Ref) and not item.path and root in item.roots:
            return index
    return None
