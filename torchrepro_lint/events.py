"""What happens when a function runs, with what surrounds it."""

from __future__ import annotations

from torchrepro_lint.facts import Expression, Statement
from torchrepro_lint.small import Small


class Guard(Small, frozen=True):
    """What surrounds an event: ``with`` (the entered value), ``if`` or ``else`` (the test of that branch).

    ``certain`` says that whatever comes after the ``if`` has been in this branch: the other one raises or leaves.
    """

    kind: str
    value: Expression
    certain: bool = False


class Event(Small, frozen=True):
    """One thing that happens to ``value``: ``call``, ``iterate``, ``index``, ``enter`` (by ``with``), ``read`` (of a property),
    ``set`` (an attribute or an item is assigned ``given``; those of ``self`` are left out); or an ``import`` of ``modules``.

    ``statement`` is the innermost statement that it happens in. ``given`` is None where it is an unknown part of a value.
    """

    kind: str
    value: Expression | None
    statement: Statement
    guards: tuple[Guard, ...]
    modules: tuple[str, ...] = ()
    given: Expression | None = None


def mark(event: Event) -> tuple[str, int]:
    """What tells an event from the others of a project, as long as its facts stay. The event itself does not: it may be worked
    out more than once.
    """
    return event.kind, id(event.statement if event.value is None else event.value)
