"""What the functions of a run are given by those that enter them, and which of them are entered by certain events alone.

What functions run with where an event of a run enters them: the arguments, and the object whose methods they are.

Call paths: the steps from an entry point to a cause, as they are reported.

How an entry point reaches something, and where that is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.dataflow.arguments import bind, is_partial, passes_self
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.dataflow.feasibility import is_set_outside
from torchrepro_lint.query.fixpoint import ring
from torchrepro_lint.source.text import Lines, Position, Span
from torchrepro_lint.syntax.events import mark
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Function, Lambda, Ref, parted, path_of
from torchrepro_lint.syntax.visitor import last_word
from torchrepro_lint.trace.framework_models import through_loader

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.syntax.nodes import Statement
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.trace import CallFrame, Entered, Happening


# A function that is entered in more ways, or by a longer one, or by itself, is given whatever any call of the project passes.
_MOST = 8
_DEEPEST_ARRIVAL = 24


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
            if self._depth > _DEEPEST_ARRIVAL:
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


# Objects that were made by functions are looked for so deep.
_DEEPEST_ENTRY = 10


class Entering:
    """Answers for the events of a run. With ``likely`` a call that passes what cannot be read leaves out all that it does not name."""

    def __init__(self, project: ValueFlow, run: Run, *, likely: bool) -> None:
        self._likely = likely
        self._project = project
        self._run = run

    def scopes(self, function: str, definition: Function, caller: str, event: Event, outer: Scope) -> Iterator[Scope]:
        """The scopes of a function that an event enters; nothing is known of one that is entered in another way."""
        found = self._entered(function, definition, caller, event, outer)
        return map(self._with_defaults, found) if self._likely else found

    def _with_defaults(self, scope: Scope) -> Scope:
        given = dict(scope.given)
        for name in [name for name, values in given.items() if not values]:
            found = self._project.resolver.parameter(name)
            if found is not None and found.param.default is not None:
                given[name] = (Scoped(path_of(name), found.param.default),)
        return scope._replace(given=given)

    def _entered(self, function: str, definition: Function, caller: str, event: Event, outer: Scope) -> Iterator[Scope]:
        scoped = Scoped(path_of(caller), event.value or _NOTHING, outer)
        call = scoped.value
        if isinstance(call, Call) and definition.name.endswith(".__init__"):
            yield from self._constructed(scoped, call, function, definition)
            return
        called = isinstance(call, Call) and function in self._called(scoped, call.func)
        if not definition.owner:
            yield self._bound(scoped, function, definition, Scope()) if called else Scope()
            return
        word = function.rpartition(".")[2]
        if isinstance(call, Call) and _is_on_self(call, caller, word):
            objects = [outer]
        else:
            objects = list(self._objects(scoped, function, 0))
            if not objects and not self._is_of_others(scoped, word) and not self._are_others_handed(scoped, function):
                objects = [Scope()]
        yield from (self._bound(scoped, function, definition, each) if called else each for each in objects)

    def _called(self, at: Scoped, func: Expression) -> tuple[str, ...]:
        """What is called, where nothing says it there: what the run takes it for."""
        names = self._names(at, func)
        if not isinstance(func, Ref):
            return names
        resolver = self._project.resolver
        return through_loader(resolver, at.path, func) or names or resolver.through_calls(at.path, func)

    def _constructed(self, at: Scoped, call: Call, function: str, definition: Function) -> Iterator[Scope]:
        """What a constructor is given by the call of its class, or by that of an heir's: ``super().__init__(...)``."""
        resolver = self._project.resolver
        if last_word(call.func) == "__init__":
            skip = not passes_self(call)
            yield bind(self._project.origins, at, function, definition, skip=skip, outer=at.scope)
            return
        made = [name for name in self._names(at, call.func) if resolver.classes(name)]
        if len(made) > 1 and (known := self._classes(at._replace(value=call.func), 0)) is not None:
            made = [name for name in known if function in resolver.methods(name, "__init__")]
            if not made:
                return
        yield self._project.origins.construct(at, made[0]).scope if len(made) == 1 else Scope()

    def _classes(self, called: Scoped, depth: int) -> list[str] | None:
        """The classes of the project that a variable stands for, by itself or by a partial; None where it may be another."""
        found: dict[str, None] = {}
        for each in self._project.origins.of(called):
            inner: list[str] | None = None
            if isinstance(each.value, Ref):
                inner = [name for name in self._names(each, each.value) if self._project.resolver.classes(name)]
            elif is_partial(self._project.origins, each) and isinstance(each.value, Call) and depth < _DEEPEST_ENTRY:
                inner = self._classes(each._replace(value=each.value.args[0].value), depth + 1)
            if not inner:
                return None
            found.update(dict.fromkeys(inner))
        return list(found)

    def _bound(self, call: Scoped, function: str, definition: Function, same: Scope) -> Scope:
        return bind(self._project.origins, call, function, definition, skip=bool(definition.owner), outer=same)

    def _objects(self, used: Scoped, method: str, depth: int) -> Iterator[Scope]:
        """What is known of the objects with a method that an expression uses: what it calls, goes along, or is given."""
        word = method.rpartition(".")[2]
        for part in used_by(used.value, word):
            for each in self._project.origins.of(used._replace(value=part)):
                if not isinstance(each.value, Call) or depth > _DEEPEST_ENTRY:
                    continue
                classes = [name for name in self._names(each, each.value.func) if self._project.resolver.classes(name)]
                fitting = [name for name in classes if method in self._project.resolver.methods(name, word)]
                if fitting:
                    yield self._project.origins.construct(each, fitting[0]).scope
                elif not classes and each.value is not used.value:
                    yield from self._objects(each, method, depth + 1)

    def _is_of_others(self, used: Scoped, word: str) -> bool:
        """Whether what an event goes along, calls, or calls a method of, is known: functions and objects of the project's
        classes alone.
        """
        holder = _holder(used.value, word)
        behind = self._project.origins.of(used._replace(value=holder)) if holder is not None else ()
        if not behind or not all(map(self._is_known, behind)):
            return False
        return not isinstance(holder, Ref) or not holder.path or not self._is_set_outside(used, holder.path[-1])

    def _are_others_handed(self, used: Scoped, method: str) -> bool:
        """Whether an event hands over nothing with a method, as far as what may be handed there is known in this scope."""
        handed = list(self._handed(used, method, 0))
        return bool(handed) and all(map(self._is_all_known, handed))

    def _is_all_known(self, handed: Scoped) -> bool:
        value, behind = handed.value, self._project.origins.of(handed)
        kept = isinstance(value, Ref) and bool(value.path)
        return all(map(self._is_known, behind)) and not (kept and self._is_set_outside(handed, last_word(value)))

    def _handed(self, used: Scoped, method: str, depth: int) -> Iterator[Scoped]:
        """The arguments, of the calls behind what an event uses, that may be something with a method."""
        for part in used_by(used.value, method.rpartition(".")[2]):
            given = used._replace(value=part)
            passed = isinstance(used.value, Call) and any(part is arg.value for arg in used.value.args)
            if passed and method in self._run_by_calling(used.path, part):
                yield given
                continue
            for each in self._project.origins.of(given) if depth <= _DEEPEST_ENTRY else ():
                if isinstance(each.value, Call) and each.value is not used.value and not self._makes(each):
                    yield from self._handed(each, method, depth + 1)

    def _makes(self, call: Scoped) -> bool:
        """Whether a call makes an object of the project's."""
        func = call.value.func if isinstance(call.value, Call) else call.value
        return any(map(self._project.resolver.classes, self._names(call, func)))

    def _run_by_calling(self, path: str, value: Expression) -> Iterator[str]:
        """What runs where whoever is handed a value calls it."""
        for name in self._project.names(path, value):
            if ":" in name and name.endswith("()"):
                yield from self._project.resolver.call_methods(name)

    def _is_set_outside(self, used: Scoped, word: str) -> bool:
        files = map(path_of, self._run.functions)
        return is_set_outside(self._project.origins, used.path, word, used.scope, files)

    def _is_known(self, each: Scoped) -> bool:
        match each.value:
            case Lambda():
                return True
            case Call():
                return self._makes(each)
        return False

    def _names(self, scoped: Scoped, called: Expression) -> tuple[str, ...]:
        return self._project.names(scoped.path, called)


def used_by(value: Expression, word: str = "") -> Iterator[Expression]:
    """What an event may be about that runs a method, if any: what has that, and what is passed."""
    if (holder := _holder(value, word)) is not None:
        yield holder
    if isinstance(value, Call):
        yield from (arg.value for arg in value.args)


def _holder(value: Expression, word: str) -> Expression | None:
    """What is gone along, or called, or has the method that is called."""
    match value:
        case Call(func=func) if word in _CALLED and last_word(func) != word:
            return func
        case Call(func=Ref(path=(*before, _)) as func):
            return func._replace(path=tuple(before))
        case Call(func=Attribute(value=holder)):
            return holder
        case Call():
            return None
    return value


_NOTHING = Constant(0, 0, None)
# What runs where the object itself is called.
_CALLED = frozenset({"__call__", "forward"})


def _is_on_self(call: Call, caller: str, word: str) -> bool:
    """``self.method(...)``."""
    own = caller[len(path_of(caller)) :]
    return isinstance(call.func, Ref) and call.func.path == (word,) and call.func.roots == (f"{own}.<locals>.self",)


class Step(NamedTuple):
    """A step of the way from an entry point to a cause: a place of the project, and what happens there."""

    path: str
    place: Position
    text: str


def entry_statement(entry: Entry, happening: Happening) -> Statement:
    """The statement of the entry file through which something is reached.

    Calls to functions of the same file are followed down, since they are the program; constructing or calling an
    object of a class is not.
    """
    at = happening.event.statement if happening.path == entry.path else None
    for step in happening.way:
        if step.path != entry.path:
            break
        at = step.event.statement
        if is_method(step.into):
            return at
    else:
        if happening.path == entry.path:
            return happening.event.statement
    assert at is not None  # a run starts in the entry's file
    return at


def is_method(function: str) -> bool:
    """Whether a function's name has a class in it: ``a.py:Net.forward``, not ``a.py:main.<locals>.step``."""
    qualified = parted(function)[2].rpartition("<locals>.")[2]
    return "." in qualified


def steps_to(project: ProgramIndex, happening: Happening, label: str) -> tuple[Step, ...]:
    """The way from the entry point to something that happens, which ``label`` names; empty where it is no way at all."""
    if not happening.way:
        return ()
    found = [_waypoint(project, step.path, step.event, _entering(step)) for step in happening.way]
    return (*found, _waypoint(project, happening.path, happening.event, label))


def _waypoint(project: ProgramIndex, path: str, event: Event, text: str) -> Step:
    at = event.value if event.value is not None else event.statement
    return Step(path, project.position(path, at.start), text)


def _entering(step: CallFrame) -> str:
    """``calls build_model``, ``imports model.py``, ``iterates Rows.__getitem__``."""
    path, _, name = parted(step.into)
    if not name:
        return f"imports {path}"
    verb = {"call": "calls", "iterate": "iterates", "index": "indexes", "enter": "enters", "read": "reads"}
    return f"{verb.get(step.event.kind, step.event.kind)} {name.replace('.<locals>', '')}"


def reached_at(project: ProgramIndex, entry: Entry, happening: Happening) -> str:
    """Where something stands and how it is reached, where that is not the statement itself: `` (model.py:14, via f)``."""
    reported = entry_statement(entry, happening)
    if not happening.way or happening.event.statement is reported:
        return ""
    # What lies before the reported statement is the program that the reader is looking at.
    on_way = [index for index, step in enumerate(happening.way) if step.event.statement is reported]
    steps = happening.way[on_way[0] :] if on_way else happening.way
    via = [parted(step.into)[2].rpartition(".")[2] for step in steps if parted(step.into)[2]]
    place = place_of(project, happening, entry.path)
    named = [word for word in via if not word.startswith("__") and word != "main"]
    return f" ({place}, via {named[0]})" if named else f" ({place})"


def place_of(project: ProgramIndex, happening: Happening, read: str = "") -> str:
    """``model.py:14``; ``cell 3:2`` of the notebook that is ``read``, ``train.ipynb:cell 3:2`` of another."""
    at = project.position(happening.path, happening.event.value.start if happening.event.value else 0)
    if at.cell and happening.path == read:
        return at.line
    return f"{happening.path}:{at.line}" if at.row else happening.path


def first_line(lines: Lines, statement: Statement) -> Span:
    """A compound statement is reported up to the end of its first line."""
    row = lines.position(statement.start).row
    end = lines.offset(row) + len(lines.line(row))
    return Span(statement.start, max(min(statement.end, end), statement.start))
