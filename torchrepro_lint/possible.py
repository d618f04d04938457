"""Whether a run gets to an event at all: through no branch that the arguments on every way there rule out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call, Constant, Expression, Function, Ref
from torchrepro_lint.loader_kinds import loader_names
from torchrepro_lint.passing import bind
from torchrepro_lint.qualified import path_of
from torchrepro_lint.runs import fetches
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
    return _Look(project, run, happening.mode).gets_to(happening.function, happening.event, 0)


class _Look:
    def __init__(self, project: Project, run: Run, mode: str) -> None:
        self._project, self._run, self._mode = project, run, mode
        self._left = _MOST
        # By files and identities of expressions, which stay as long as the project.
        self._modes: dict[tuple[str, int], frozenset[bool]] = project.kept.setdefault("loader modes", {})

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
            if self._is_in_other_mode(caller, event):
                continue
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
            objects = list(self._objects(scoped, function, 0))
            if not objects and not self._is_of_others(scoped):
                objects = [Scope()]
        yield from (self._bound(scoped, function, definition, each) if called else each for each in objects)

    def _bound(self, call: Scoped, function: str, definition: Function, same: Scope) -> Scope:
        return bind(self._project.origins, call, function, definition, skip=bool(definition.owner), outer=same)

    def _objects(self, used: Scoped, method: str, depth: int) -> Iterator[Scope]:
        """What is known of the objects with a method that an expression uses: what it calls, goes along, or is given."""
        word = method.rpartition(".")[2]
        for part in _used(used.value):
            for each in self._project.origins.of(used._replace(value=part)):
                if not isinstance(each.value, Call) or depth > _DEEPEST:
                    continue
                classes = [name for name in self._names(each, each.value.func) if self._project.resolver.classes(name)]
                fitting = [name for name in classes if method in self._project.resolver.methods(name, word)]
                if fitting:
                    yield self._project.origins.construct(each, fitting[0]).scope
                elif not classes and each.value is not used.value:
                    yield from self._objects(each, method, depth + 1)

    def _is_of_others(self, used: Scoped) -> bool:
        """Whether what an event goes along, or calls a method of, is known to be objects of the project's classes alone."""
        parts = list(_used(used.value))[:1]
        behind = [each for part in parts for each in self._project.origins.of(used._replace(value=part))]
        return bool(behind) and all(
            isinstance(each.value, Call)
            and any(map(self._project.resolver.classes, self._names(each, each.value.func)))
            for each in behind
        )

    def _is_in_other_mode(self, caller: str, event: Event) -> bool:
        """Whether workers of the loader that an event makes or uses do what is looked for in the program itself, or the
        other way round.
        """
        if event.value is None or self._mode not in ("", "worker"):
            return False
        key = path_of(caller), id(event.value)
        if key not in self._modes:
            used = Scoped(key[0], event.value)
            self._modes[key] = frozenset(map(self._is_fetching, self._loaders(used)))
        return self._modes[key] == {self._mode != "worker"}

    def _loaders(self, used: Scoped) -> Iterator[Scoped]:
        if isinstance(used.value, Call) and self._is_loader(used):
            yield used
            return
        for part in _used(used.value):
            yield from filter(self._is_loader, self._project.origins.of(used._replace(value=part)))

    def _is_loader(self, made: Scoped) -> bool:
        return isinstance(made.value, Call) and not loader_names().isdisjoint(self._names(made, made.value.func))

    def _is_fetching(self, loader: Scoped) -> bool:
        call = loader.value
        assert isinstance(call, Call)
        return fetches(self._project.resolver, loader.path, call, self._names(loader, call.func))

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
