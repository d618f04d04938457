"""Calling contexts: the argument environment and the receiver with which a trace enters each function.

A function has one context for each call path that no path condition rules out, up to a limit; a function on a cycle of the call
graph, or beyond the limit, has the context of the whole trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import module_wrapper, transform_models
from torchrepro_lint.dataflow.arguments import bind_arguments, is_partial
from torchrepro_lint.dataflow.environment import Budget, Closure, Environment
from torchrepro_lint.dataflow.feasibility import is_set_from_outside
from torchrepro_lint.syntax.binding import call_with_key, passes_self
from torchrepro_lint.syntax.control_flow import EventIdentity, event_key
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Constant,
    Expression,
    Function,
    Lambda,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    enclosing_function,
    is_instance,
    local_symbol,
    path_of,
    project_classes,
    root_of,
    simple_name,
)
from torchrepro_lint.syntax.scopes import evaluation_start
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of
from torchrepro_lint.trace.call_paths import is_another_picked
from torchrepro_lint.trace.library_models import dataset_attribute

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.control_flow import Event
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.events import TraceEvent


class CallingContexts:
    """The calling contexts of the functions of one trace, which begins with ``starts`` in ``scope``."""

    def __init__(self, project: ValueFlow, run: Trace, starts: Iterable[str], scope: Environment) -> None:
        self._origins = project.value_sources
        self._call_edges = CallEdgeContexts(project, run, likely=False)
        self._run = run
        self._starts = frozenset(starts)
        self.scope = scope
        self._known: dict[str, tuple[Environment, ...]] = {}
        self._depth = 0

    def scopes(self, function: str) -> tuple[Environment, ...]:
        """The environments of a function, one for each feasible call path; that of the whole trace where there are too many."""
        if function not in self._known:
            if self._depth > limits.MAX_CONTEXT_DEPTH:
                return (self.scope,)
            self._depth += 1
            try:
                self._known[function] = self._find(function)
            finally:
                self._depth -= 1
        return self._known[function]

    def is_reached(self, trace_event: TraceEvent) -> bool:
        """Whether some feasible call path leads to an event."""
        return any(
            self._runs(trace_event.function, trace_event.event, scope) for scope in self.scopes(trace_event.function)
        )

    def reached_without(self, events: set[EventIdentity]) -> frozenset[str]:
        """The functions that the trace reaches without these events, which are given by their keys."""
        ways: dict[str, list[str]] = {}
        for function, entries in self._run.call_edges.items():
            for each in entries:
                if event_key(path_of(each.caller), each.event) not in events:
                    ways.setdefault(each.caller, []).append(function)
        found, queue = set(self._starts), [*self._starts]
        while queue:
            for function in ways.get(queue.pop(), ()):
                if function not in found:
                    found.add(function)
                    queue.append(function)
        return frozenset(found)

    def _find(self, function: str) -> tuple[Environment, ...]:
        if function in self._run.cycles:
            return (self.scope,)  # each time round it may be given something else
        found = dict.fromkeys([self.scope] if function in self._starts else [])
        definition = next(iter(self._origins.project.resolver.functions(function)), None)
        entries = self._run.call_edges.get(function, ())
        for each in entries:
            ways = (scope for scope in self.scopes(each.caller) if self._runs(each.caller, each.event, scope))
            for scope in ways:
                entered = (
                    self._call_edges.scopes(function, definition, each.caller, each.event, scope)
                    if definition
                    else (scope,)
                )
                found.update(dict.fromkeys(entered))
            if len(found) > limits.MAX_CONTEXTS:
                return (self.scope,)
        return tuple(found) if entries else (self.scope,)

    def _runs(self, function: str, event: Event, scope: Environment) -> bool:
        """Whether an event is feasible in an environment: no branch around it is ruled out."""
        offset = evaluation_start(event.value or event.statement)
        path, functions = path_of(function), self._origins.project.resolver.functions(function)
        return all(self._origins.is_feasible(path, each, offset, scope) for each in functions)


def passes_own_arguments(project: ProgramIndex, name: str, function: Function, path: str, call: Call) -> bool:
    """Whether the arguments of a call are the function's own, not those of a function that it is passed to."""
    word = simple_name(name)
    names = project.names(path, call.func)
    if name in names or not function.owner:
        return name in names
    by_word = isinstance(call.func, Ref) and call.func.path[-1:] == (word,)
    return by_word or (word in _CALLED and any(map(is_instance, names)))


class CallEdgeContexts:
    """The calling contexts of single call edges of a trace.

    With ``likely`` a parameter whose argument is unknown has its default.
    """

    def __init__(self, project: ValueFlow, run: Trace, *, likely: bool) -> None:
        self._likely = likely
        self._project = project
        self._run = run
        self._calls = Budget(limits.MAX_OBJECT_CALLS)

    def scopes(
        self, function: str, definition: Function, caller: str, event: Event, outer: Environment
    ) -> Iterator[Environment]:
        """The environments of a function that an event enters; an empty one where nothing is known of its arguments."""
        found = self._entered(function, definition, caller, event, outer)
        return map(self._with_defaults, found) if self._likely else found

    def _with_defaults(self, scope: Environment) -> Environment:
        given = dict(scope.arguments)
        for name in [name for name, values in given.items() if not values]:
            found = self._project.resolver.parameter(name)
            if found is not None and found.param.default is not None:
                given[name] = (Closure(path_of(name), found.param.default),)
        return scope.with_arguments(given)

    def _entered(
        self, function: str, definition: Function, caller: str, event: Event, outer: Environment
    ) -> Iterator[Environment]:
        scoped = Closure(path_of(caller), event.value or _NOTHING, outer)
        call = scoped.value
        if is_another_picked(self._project, scoped.path, call, outer, function):
            return
        if isinstance(call, Call) and definition.name.endswith(".__init__"):
            yield from self._constructed(scoped, call, function, definition)
            return
        names = self._called(scoped, call.func) if isinstance(call, Call) else ()
        called = function in names or function in self._run_by_calling(names)
        if not definition.owner:
            around = outer if enclosing_function(function) else Environment.of()  # what a nested function reads
            yield self._bound(scoped, function, definition, around) if called else around
            return
        word = simple_name(function)
        if isinstance(call, Call) and _is_on_self(call, caller, word):
            objects = [outer]
        else:
            objects = list(islice(self._objects(scoped, function), limits.MAX_CONTEXTS + 1))
            if len(objects) > limits.MAX_CONTEXTS:
                objects = [Environment.of()]
            if not objects and self._is_of_others(scoped, function):
                objects = list(islice(self._passed_objects(scoped, function), limits.MAX_CONTEXTS))
            elif not objects and not self._are_arguments_known(scoped, function):
                objects = [Environment.of()]
        if isinstance(event.given, Subscript) and event.kind == "index" and len(event.given.indices) == 1:
            indexed, of = scoped._replace(value=call_with_key(event.given)), self._project.value_sources
            yield from (bind_arguments(of, indexed, function, definition, skip=True, outer=each) for each in objects)
            return
        yield from (self._bound(scoped, function, definition, each) if called else each for each in objects)

    def _called(self, at: Closure, func: Expression) -> tuple[str, ...]:
        """The names that are called; where they are unknown locally, those that the trace builder assumes."""
        names = self._names(at, func)
        if not isinstance(func, Ref):
            return names
        resolver = self._project.resolver
        return dataset_attribute(resolver, at.path, func) or names or resolver.names_from_callers(at.path, func)

    def _constructed(self, at: Closure, call: Call, function: str, definition: Function) -> Iterator[Environment]:
        """The environments of a constructor that is entered by a call of its class, or by ``super().__init__(...)`` of a subclass."""
        resolver = self._project.resolver
        if last_identifier(call.func) == "__init__":
            skip = not passes_self(call)
            yield bind_arguments(self._project.value_sources, at, function, definition, skip=skip, outer=at.environment)
            return
        made = [name for name in self._names(at, call.func) if resolver.classes(name)]
        if len(made) > 1 and (known := self._classes(at._replace(value=call.func), 0)) is not None:
            made = [name for name in known if function in resolver.methods(name, "__init__")]
            if not made:
                return
        yield self._project.value_sources.construct(at, made[0]).environment if len(made) == 1 else Environment.of()

    def _classes(self, called: Closure, depth: int) -> list[str] | None:
        """The classes of the project that a variable may be, directly or as a partial; None where it may be anything else."""
        found: dict[str, None] = {}
        for each in self._project.value_sources.of(called):
            inner: list[str] | None = None
            if isinstance(each.value, Ref):
                inner = [name for name in self._names(each, each.value) if self._project.resolver.classes(name)]
            elif (
                is_partial(self._project.value_sources, each)
                and isinstance(each.value, Call)
                and depth < limits.MAX_OBJECT_DEPTH
            ):
                inner = self._classes(each._replace(value=each.value.args[0].value), depth + 1)
            if not inner:
                return None
            found.update(dict.fromkeys(inner))
        return list(found)

    def _bound(self, call: Closure, function: str, definition: Function, same: Environment) -> Environment:
        func = call.value.func if isinstance(call.value, Call) else call.value
        skip = self._project.resolver.is_bound(call.path, func, definition)
        return bind_arguments(self._project.value_sources, call, function, definition, skip=skip, outer=same)

    def _objects(self, used: Closure, method: str, seen: set[Closure] | None = None) -> Iterator[Environment]:
        """The environments of the objects with a method among the values that an expression calls, iterates or passes; one of which
        nothing is known where there are too many calls behind it. Each call is followed once: one that ``seen`` has is a value that
        an earlier round of a loop gave.
        """
        seen = set() if seen is None else seen
        if used in seen:
            return
        seen.add(used)
        if not self._calls.spend():
            yield Environment.of()
            return
        word = simple_name(method)
        sources, resolver = self._project.value_sources, self._project.resolver
        try:
            for each in self._involved(used, word):
                if not isinstance(each.value, Call):
                    continue
                classes = [name for name in self._names(each, each.value.func) if resolver.classes(name)]
                fitting = [name for name in classes if method in resolver.methods(name, word)]
                if fitting:
                    yield sources.construct(each, fitting[0]).environment
                elif not classes and each.place != used.place:
                    yield from self._objects(each, method, seen)
        finally:
            self._calls.leave()

    def _involved(self, used: Closure, word: str) -> Iterator[Closure]:
        """The values of these expressions; of a bound method, those of its object."""
        of = self._project.value_sources.of
        for each in (one for part in involved_values(used.value, word) for one in of(used._replace(value=part))):
            held = receiver_of(each.value) if last_identifier(each.value) == word else None
            yield from (each,) if held is None else of(each._replace(value=held))

    def _passed_objects(self, used: Closure, method: str) -> Iterator[Environment]:
        """The environments of objects with a method that the constructor of what is used gets: the sampler in ``Prefetch(loader)``."""
        holder = _holder(used.value, simple_name(method))
        for each in self._project.value_sources.of(used._replace(value=holder)) if holder is not None else ():
            for arg in each.value.args if isinstance(each.value, Call) else ():
                yield from self._objects(each._replace(value=arg.value), method)

    def _is_of_others(self, used: Closure, method: str) -> bool:
        """Whether the value that an event iterates, calls, or calls a method of is known, and does not have the method: only functions
        and objects of the project's classes, or a library's transforms of known others.
        """
        holder = _holder(used.value, simple_name(method))
        behind = self._project.value_sources.of(used._replace(value=holder)) if holder is not None else ()
        if not behind or not (all(map(self._is_known, behind)) or all(self._lacks(each, method, 0) for each in behind)):
            return False
        return not isinstance(holder, Ref) or not holder.path or not self._is_set_outside(used, holder.path[-1])

    def _are_arguments_known(self, used: Closure, method: str) -> bool:
        """Whether all arguments of an event that might have a method are known in this environment, and do not have it."""
        arguments = list(self._arguments_with(used, method))
        return bool(arguments) and all(map(self._is_all_known, arguments))

    def _lacks(self, each: Closure, method: str, depth: int) -> bool:
        """Whether a value is known to be a constant, a transform or a wrapped module, or several, and not to hold an object with a method."""
        origins, resolver, held = self._project.value_sources, self._project.resolver, list[Expression | None]()
        match each.value:
            case Collection(items=items):
                held = [*items]
            case Call(func=func, args=args):
                names = self._names(each, func)
                if self._makes(each):
                    return not any(method in resolver.methods(name, simple_name(method)) for name in names)
                rows = [row for name in names for row in islice(transform_models(name), 1)]  # the first decides
                if args and names and all(map(module_wrapper, names)):
                    held = [args[0].value]
                elif not rows or any(True for _ in origins.appended_to(each, ("transforms",))):
                    return False
                elif any(row.inner or row.draws or row.when for row in rows):
                    held = [None if arg.star else arg.value for arg in args]
            case other if not isinstance(other, Constant):
                return False
        values = [() if one is None else origins.of(each._replace(value=one)) for one in held]
        return depth < limits.MAX_OBJECT_DEPTH and all(
            found and all(self._lacks(one, method, depth + 1) for one in found) for found in values
        )

    def _is_all_known(self, argument: Closure) -> bool:
        value, behind = argument.value, self._project.value_sources.of(argument)
        stored = isinstance(value, Ref) and bool(value.path)
        return all(map(self._is_known, behind)) and not (
            stored and self._is_set_outside(argument, last_identifier(value))
        )

    def _arguments_with(self, used: Closure, method: str, seen: set[Closure] | None = None) -> Iterator[Closure]:
        """The arguments, of the calls behind the values of an event, that may have a method; the event itself where there are too many."""
        seen = set() if seen is None else seen
        if used in seen:
            return
        seen.add(used)
        if not self._calls.spend():
            yield used
            return
        try:
            for part in involved_values(used.value, simple_name(method)):
                given = used._replace(value=part)
                passed = isinstance(used.value, Call) and any(part == arg.value for arg in used.value.args)
                if passed and method in self._run_by_calling(self._project.names(used.path, part)):
                    yield given
                    continue
                for each in self._project.value_sources.of(given):
                    if isinstance(each.value, Call) and each.place != used.place and not self._makes(each):
                        yield from self._arguments_with(each, method, seen)
        finally:
            self._calls.leave()

    def _makes(self, call: Closure) -> bool:
        """Whether a call makes an object of the project's."""
        func = call.value.func if isinstance(call.value, Call) else call.value
        return any(map(self._project.resolver.classes, self._names(call, func)))

    def _run_by_calling(self, names: Iterable[str]) -> Iterator[str]:
        """The methods that run where a value with these names is called."""
        for owner in project_classes(names):
            yield from self._project.resolver.call_methods(owner)

    def _is_set_outside(self, used: Closure, word: str) -> bool:
        files = map(path_of, self._run.functions)
        return is_set_from_outside(self._project.value_sources, used.path, word, used.environment, files)

    def _is_known(self, each: Closure) -> bool:
        match each.value:
            case Lambda():
                return True
            case Call():
                return self._makes(each)
        return False

    def _names(self, scoped: Closure, called: Expression) -> tuple[str, ...]:
        return self._project.names(scoped.path, called)


def involved_values(value: Expression, word: str = "") -> Iterator[Expression]:
    """The values through which an event may run a method: the one that has it, or a variable that is called, and the arguments."""
    if (holder := _holder(value, word)) is not None:
        yield holder
    if isinstance(value, Call):
        yield from (value.func,) if holder is None else ()
        yield from (arg.value for arg in value.args)


def _holder(value: Expression, word: str) -> Expression | None:
    """The value that is iterated or called, or whose method is called or passed: ``launch(job.run)``."""
    if not isinstance(value, Call) or last_identifier(value.func) == word:
        return receiver_of(value.func) if isinstance(value, Call) else value
    passed = (receiver_of(arg.value) for arg in value.args if last_identifier(arg.value) == word)
    held = next((each for each in passed if each is not None), value.func if word in _CALLED else None)
    return receiver_of(value.func) if held is None else held


_NOTHING = Constant(0, 0, None)
# Methods that run where the object itself is called.
_CALLED = frozenset({"__call__", "forward"})


def _is_on_self(call: Call, caller: str, word: str) -> bool:
    """``self.method(...)``."""
    own = root_of(caller)
    return isinstance(call.func, Ref) and call.func.path == (word,) and call.func.roots == (local_symbol(own, "self"),)
