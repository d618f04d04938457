"""What the functions of a run are given by those that enter them, and which of them are entered by certain events alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.arguments import bind
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.query.fixpoint import ring
from torchrepro_lint.syntax.events import mark
from torchrepro_lint.syntax.nodes import Call, Function, Ref, path_of

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.happenings import Happening
    from torchrepro_lint.runs import Run
    from torchrepro_lint.stretches import Entered
    from torchrepro_lint.syntax.events import Event

# A function that is entered in more ways, or by a longer one, or by itself, is given whatever any call of the project passes.
_MOST = 8
_DEEPEST = 24


class Arrivals:
    """Answers for the functions of one run, which begins with ``starts`` in a scope."""

    def __init__(self, origins: ValueSources, run: Run, starts: Iterable[str], scope: Scope) -> None:
        self._origins = origins
        self._run = run
        self._starts = frozenset(starts)
        self.scope = scope
        self._known: dict[str, tuple[Scope, ...]] = {}
        self._depth = 0

    def scopes(self, function: str) -> tuple[Scope, ...]:
        """What a function runs with, once for each way into it that no branch rules out; that of the run alone where there
        are too many.
        """
        if function not in self._known:
            if self._depth > _DEEPEST:
                return (self.scope,)
            self._depth += 1
            try:
                self._known[function] = self._find(function)
            finally:
                self._depth -= 1
        return self._known[function]

    def comes_to(self, happening: Happening) -> bool:
        """Whether some way leads to what happens."""
        return any(self._runs(happening.function, happening.event, scope) for scope in self.scopes(happening.function))

    def reached_without(self, events: Collection[tuple[str, int]]) -> frozenset[str]:
        """The functions that the run comes to by other events than these, which are known by their marks."""
        ways: dict[str, list[str]] = {}
        for function, entries in self._run.entries.items():
            for each in entries:
                if mark(each.event) not in events:
                    ways.setdefault(each.caller, []).append(function)
        found, queue = set(self._starts), [*self._starts]
        while queue:
            for function in ways.get(queue.pop(), ()):
                if function not in found:
                    found.add(function)
                    queue.append(function)
        return frozenset(found)

    def _find(self, function: str) -> tuple[Scope, ...]:
        if ring(self._run.entries, function):
            return (self.scope,)  # each time round it may be given something else
        found = [self.scope] if function in self._starts else []
        entries = self._run.entries.get(function, ())
        for each in entries:
            ways = (scope for scope in self.scopes(each.caller) if self._runs(each.caller, each.event, scope))
            found += (self._entered(each, scope) for scope in ways)
            if len(found) > _MOST:
                return (self.scope,)
        return tuple(found) if entries else (self.scope,)

    def _runs(self, function: str, event: Event, scope: Scope) -> bool:
        """Whether a function gets to one of its events: no branch that a scope rules out is around that."""
        place = event.value if event.value is not None else event.statement
        return all(
            self._origins.runs(path_of(function), each, place.start, scope)
            for each in self._origins.project.resolver.functions(function)
        )

    def _entered(self, entered: Entered, scope: Scope) -> Scope:
        function, path, call = entered.function, path_of(entered.caller), entered.event.value
        if entered.event.kind != "call" or not isinstance(call, Call):
            return scope
        for each in self._origins.project.resolver.functions(function):
            if self._is_called(function, each, path, call):
                skip = self._origins.project.resolver.calls_of.is_bound(path, call.func, each)
                return bind(self._origins, Scoped(path, call, scope), function, each, skip=skip, outer=scope)
        return scope

    def _is_called(self, name: str, function: Function, path: str, call: Call) -> bool:
        """Whether the arguments of a call are those of the function, not of one that the function is handed to."""
        word = name.rpartition(".")[2]
        names = self._origins.project.names(path, call.func)
        if name in names or not function.owner:
            return name in names
        own = isinstance(call.func, Ref) and call.func.path[-1:] == (word,)
        return own or (word in ("__call__", "forward") and any(each.endswith("()") for each in names))
