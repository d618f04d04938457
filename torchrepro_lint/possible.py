"""Whether a run gets to an event at all: through no branch that the arguments on every way there rule out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call, Constant, Expression, Function, Ref
from torchrepro_lint.passing import bind
from torchrepro_lint.qualified import path_of
from torchrepro_lint.scoped import Scope, Scoped

if TYPE_CHECKING:
    from torchrepro_lint.events import Event
    from torchrepro_lint.happenings import Happening
    from torchrepro_lint.project import Project
    from torchrepro_lint.runs import Run

# What is known of so many calls, each from so many others above, is looked at; beyond, anything may be passed.
_DEEPEST = 10
_MOST = 60


def possible(project: Project, run: Run, happening: Happening) -> bool:
    """Whether some way of a run leads to an event, as far as literal arguments and defaults tell."""
    return _Look(project, run).gets_to(happening.function, happening.event, 0)


class _Look:
    def __init__(self, project: Project, run: Run) -> None:
        self._project, self._run = project, run
        self._left = _MOST

    def gets_to(self, function: str, event: Event, depth: int) -> bool:
        return any(True for _ in self._scopes_at(function, event, depth))

    def _scopes_at(self, function: str, event: Event, depth: int) -> Iterator[Scope]:
        """The scopes in which a function comes to one of its events."""
        found = self._project.resolver.functions(function)
        offset = event.value.start if event.value is not None else event.statement.start
        for scope in self._scopes(function, depth):
            if len(found) != 1 or self._project.origins.runs(path_of(function), found[0], offset, scope):
                yield scope

    def _scopes(self, function: str, depth: int) -> Iterator[Scope]:
        """What a function may be run with: one scope for each way to enter it."""
        entries = self._run.entries.get(function, ())
        definitions = self._project.resolver.functions(function)
        if not entries or depth >= _DEEPEST or len(definitions) != 1:
            yield Scope()
            return
        for caller, event in entries:
            self._left -= 1
            if self._left < 0:
                yield Scope()
                return
            for outer in self._scopes_at(caller, event, depth + 1):
                yield from self._entered(function, definitions[0], caller, event, outer)

    def _entered(self, function: str, definition: Function, caller: str, event: Event, outer: Scope) -> Iterator[Scope]:
        """The scopes of a function that an event enters; nothing is known of one that is entered in another way."""
        scoped = Scoped(path_of(caller), event.value or _NOTHING, outer)
        call = scoped.value
        if isinstance(call, Call) and definition.name.endswith(".__init__"):
            made = [name for name in self._names(scoped, call.func) if self._project.resolver.classes(name)]
            yield self._project.origins.construct(scoped, made[0]).scope if len(made) == 1 else Scope()
            return
        called = isinstance(call, Call) and function in self._names(scoped, call.func)
        if not definition.owner:
            yield self._bound(scoped, function, definition, Scope()) if called else Scope()
            return
        if isinstance(call, Call) and _is_on_self(call, caller):
            objects = [outer]
        else:
            objects = list(self._objects(scoped, self._project.resolver.owner(function), 0)) or [Scope()]
        yield from (self._bound(scoped, function, definition, each) if called else each for each in objects)

    def _bound(self, call: Scoped, function: str, definition: Function, same: Scope) -> Scope:
        return bind(self._project.origins, call, function, definition, skip=bool(definition.owner), outer=same)

    def _objects(self, used: Scoped, owner: str, depth: int) -> Iterator[Scope]:
        """What is known of the objects of a class that an expression uses: what it calls, goes along, or is given.

        An unknown scope among them where some of what may be meant is not known.
        """
        for part in _used(used.value):
            for each in self._project.origins.of(used._replace(value=part)):
                if not isinstance(each.value, Call) or depth > _DEEPEST:
                    continue
                classes = [name for name in self._names(each, each.value.func) if self._project.resolver.classes(name)]
                fitting = [name for name in classes if owner in self._project.resolver.ancestry(name)]
                if fitting:
                    yield self._project.origins.construct(each, fitting[0]).scope
                elif not classes and each.value is not used.value:
                    yield from self._objects(each, owner, depth + 1)

    def _names(self, scoped: Scoped, called: Expression) -> tuple[str, ...]:
        return self._project.names(scoped.path, called)


def _used(value: Expression) -> Iterator[Expression]:
    match value:
        case Call(func=func, args=args):
            if isinstance(func, Ref) and func.path:
                yield func._replace(path=func.path[:-1])
            yield from (arg.value for arg in args)
        case _:
            yield value


_NOTHING = Constant(0, 0, None)


def _is_on_self(call: Call, caller: str) -> bool:
    """``self.method(...)``."""
    own = caller[len(path_of(caller)) :]
    return isinstance(call.func, Ref) and len(call.func.path) == 1 and call.func.roots == (f"{own}.<locals>.self",)
