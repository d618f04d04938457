"""Call sites: the calls of a file as nodes of the call graph, each with its function and what it calls."""

from __future__ import annotations

from torchrepro_lint.syntax.events import Event, Guard
from torchrepro_lint.syntax.nodes import Call, Small, Statement


class Site(Small, frozen=True):
    """A call of a module: its function (``path:`` for the top level, class bodies included), what is called, and what
    surrounds it.
    """

    call: Call
    function: str
    names: tuple[str, ...]
    guards: tuple[Guard, ...]
    statement: Statement


class Called(Small, frozen=True):
    """A call, its function, and the event that it is, before it is asked what is called."""

    call: Call
    function: str
    event: Event
