"""The resolved body of a function, or of a module's top level: its events, each with the functions and objects that it may enter.

What an event may enter does not depend on the trace that comes to it, so a body is resolved once for all traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.query.database import Database
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.computed_names import ANY_GLOBAL
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.object_sources import Objects
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.resolve.registries import DECORATED, is_decorated_function
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import accepts
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Comprehension, Expression, Record, Ref, Subscript
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    enclosing_function,
    in_project,
    instance_value,
    is_element,
    is_instance,
    is_object,
    is_super,
    local_symbol,
    passes_call,
    path_of,
    project_classes,
    split_call,
)
from torchrepro_lint.syntax.use_def import flattened_values, passed_values
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of
from torchrepro_lint.trace.dead_initialisation import dead_initialisations
from torchrepro_lint.trace.events import EventKey, EventTargets, ResolvedEvent, Target
from torchrepro_lint.trace.library_models import (
    ADDING,
    LibraryCall,
    callbacks,
    dataset_attribute,
    makes_loader,
    rows_of,
    stores_callables,
)

# Functions that turn a function, a dictionary of functions, or a class into a command line.
COMMAND_LINES = frozenset(
    {"fire.Fire", "fire.core.Fire", "jsonargparse.CLI", "jsonargparse.auto_cli", "typer.run", "tyro.cli", "defopt.run"}
)
# The most targets that are kept of methods that run on objects of subclasses.
_CACHED_INHERITED = 5_000
# The most bodies that are kept, so that those of large programs are there for the next one.
CACHED_BODIES = 1 << 15

# Stands among the names of a parameter for values without a name: constants, or what is not known.
ANY_VALUE = "builtins.int()"


class EnteringEvent(Record, frozen=True):
    """An event that may enter functions of the project: its targets, the classes of the project that its receiver may have, and what
    it enters by itself: the callbacks of a library call, or the properties that it reads.
    """

    resolved: ResolvedEvent
    targets: EventTargets
    receivers: tuple[str, ...]
    enters: tuple[Target, ...]


# A step of a body: an import, an event that may enter functions, or the events up to the next such one.
Step: TypeAlias = Event | EnteringEvent | tuple[ResolvedEvent, ...]


class ResolvedBodies:
    """The resolved bodies of a project."""

    def __init__(self, database: Database) -> None:
        bounded = not database.reads.early_cutoff
        self.outcomes: MemoTable[EventKey, EventTargets] = database.table("outcomes", compare=False)
        # The targets of methods that run on an object of a subclass, by that class.
        self.inherited: MemoTable[tuple[EventKey, str], EventTargets] = database.table(
            "inherited targets", _CACHED_INHERITED if bounded else None, compare=False
        )
        self._bodies: MemoTable[tuple[Target, bool], tuple[Step, ...]] = database.table(
            "bodies", CACHED_BODIES if bounded else None, compare=False
        )

    def of(self, names: Names, target: Target, *, main: bool) -> tuple[Step, ...]:
        """The steps of a function's body in a mode, with an object of the receiver's class; ``main``: of a module as ``__main__``."""
        return self._bodies.of((target, main), lambda: tuple(self._resolve_body(names, target, main)))

    def _resolve_body(self, names: Names, target: Target, main: bool) -> Iterator[Step]:
        path = path_of(target.function)
        names.modules.reads.record_read(path)
        found = names.events.of(target.function, main=main)
        loaded = (
            frozenset() if target.mode else frozenset(dead_initialisations(names, names.events, target.function, found))
        )
        body = _Body(names, self, target.function, path, target.receiver)
        plain: list[ResolvedEvent] = []
        for event in found:
            mode = "loaded" if event.statement in loaded or event.value in loaded else target.mode
            step = event if event.kind == "import" else body.step(event, mode)
            if isinstance(step, ResolvedEvent):
                plain.append(step)
                continue
            if plain:
                yield tuple(plain)
                plain = []
            yield step
        if plain:
            yield tuple(plain)


# Containers of torch that keep the modules that they get.
MODULE_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


class _Body:
    """The body of one function, whose events are resolved."""

    def __init__(self, names: Names, bodies: ResolvedBodies, function: str, path: str, receiver: str) -> None:
        self._names = names
        self._bodies = bodies
        self._function = function
        self._path = path
        self._receiver = receiver

    def step(self, event: Event, mode: str) -> ResolvedEvent | EnteringEvent:
        """An event with what it may enter."""
        value = event.value
        assert value is not None
        if event.kind == "set":
            place = value.value if isinstance(value, Subscript) else value
            return ResolvedEvent(self._path, self._function, event, self._names.names(self._path, place), False, mode)
        called = value.func if isinstance(value, Call) and event.kind == "call" else value
        targets = self._targets(event, called)
        resolved = ResolvedEvent(self._path, self._function, event, targets.found, targets.assumed, mode)
        if event.kind == "read":
            read = tuple(Target(target, mode) for target in self._properties_read(value))
            return EnteringEvent(resolved, targets, (), read) if read else resolved
        if targets.enters_nothing:
            return resolved
        if event.kind != "call" or not isinstance(value, Call):
            return EnteringEvent(resolved, targets, (), ())
        receivers = self._receivers(called)
        library_call = LibraryCall(self._path, value, targets.found, receivers)
        return EnteringEvent(resolved, targets, receivers, tuple(self._callbacks(library_call, mode)))

    def _targets(self, event: Event, called: Expression) -> EventTargets:
        key = EventKey.of(self._path, event)
        if self._receiver:
            return self._bodies.inherited.of((key, self._receiver), lambda: self._compute_targets(event, called))
        self._names.modules.reads.recall("outcomes")
        return self._bodies.outcomes.of(key, lambda: self._compute_targets(event, called))

    def _compute_targets(self, event: Event, called: Expression) -> EventTargets:
        self._names.modules.reads.record_read(self._path)  # the key has offsets in this file
        found, assumed = self._names_called(called)
        passed: tuple[str, ...] = ()
        runs = False
        if event.kind == "call" and isinstance(event.value, Call):
            if made := self._names.configured(self._path, event.value):
                kept = () if any(map(self._names.owner, found)) else found  # not the registry's own method
                found = tuple(sorted({*kept, *filter(in_project, made)}))
            if isinstance(called, Call) and len(found) > 1:
                found = tuple(each for each in found if self._may_take(each, event.value)) or found
            values = list(passed_values(event.value))
            if runs := makes_loader(found):
                added = (self._names.events.added(self._path, each) for each in values if isinstance(each, Ref))
                values += [*flattened_values(item for items in added for item in items)]
            if last_identifier(called)[:1].isupper() and not any(map(in_project, found)):
                values += [*self._listed(values)]
            names = [name for each in values for name in self._names_passed(each, called, found)]
            names += [self._path + event.defines] if event.defines and stores_callables(found) else []
            passed = tuple(dict.fromkeys(filter(in_project, names)))
            runs = runs or not COMMAND_LINES.isdisjoint(found) or any(row.runs or row.calls for row in rows_of(found))
        return EventTargets(found, assumed, not (runs or passed or any(map(in_project, found))), passed)

    def _may_take(self, name: str, call: Call) -> bool:
        """Whether a function or class found by a computed name takes the arguments of a call: one without ``name=`` is not the one."""
        maker = self._names.methods(name, "__init__")[:1] if self._names.classes(name) else (name,)
        fits = [accepts(each, call) for one in maker for each in self._names.functions(one)]
        return any(fits) or not fits

    def _listed(self, values: Iterable[Expression]) -> Iterator[Expression]:
        """The items of the displays that variables have: ``layers = [Block(8)]`` of ``Sequential(*layers)``."""
        for each in values:
            for file, value in self._names.values(self._path, each) if isinstance(each, Ref) else ():
                if file == self._path and isinstance(value, Collection | Comprehension):
                    yield from flattened_values((value,))

    def _names_passed(self, value: Expression, called: Expression, found: Iterable[str]) -> Iterable[str]:
        """The names of a value that is passed; for a loader, a container of modules and an object that calls its arguments from all sources."""
        names = self._names.names(self._path, value)
        if makes_loader(found) and not any(map(in_project, names)):
            made = self._names.objects(self._path, value).names
            return made if len(made) == 1 else names  # of several it is not known which this run has
        if names or last_identifier(called) in ADDING:
            return names or self._names.made_by_parameter(self._path, value)
        if not any(map(in_project, found)) and (parts := self._names.destructured_names(self._path, value)):
            return parts
        keeps = not MODULE_CONTAINERS.isdisjoint(found) or any(map(self._calls_parameters, found))
        return self._names.objects(self._path, value).names if keeps else ()

    def _calls_parameters(self, name: str) -> bool:
        """Whether calling an object runs a method of a class whose methods call parameters: ``def __call__(self, net, x): return net(x)``."""
        methods = filter(in_project, self._names.call_methods(name)) if in_project(name) and is_instance(name) else ()
        return any(
            self._names.owner(enclosing_function(path_of(method) + root)) == self._names.owner(method)
            for method in methods
            for root in self._names.modules.summary(path_of(method)).through
        )

    def _names_called(self, called: Expression) -> tuple[tuple[str, ...], bool]:
        """The names that are called: on ``self`` by the receiver's class; for a parameter, with true, by what calls pass for it."""
        names = self._names
        if isinstance(called, Ref) and (inner := dataset_attribute(names, self._path, called)):
            return inner, False
        if isinstance(called, Ref) and self._receiver and self._is_own(called):
            if called.path:
                found = names.follow(instance_value(self._receiver), called.path)
                base = len(called.path) > 1 and any(map(self._is_overridden, found))
                if not found or base or any(is_abstract(each) or _is_held(each) for each in found):
                    found = _specified(found, names.attribute_objects(self._receiver, called.path))
                return found, False
            if names.names(self._path, called) == (names.owner(self._function),):
                return (self._receiver,), False  # ``cls(...)`` in a class method
        found = names.names(self._path, called)
        if names.is_chosen(found) and (made := names.factories(self._path, called)):
            found = (*made, *(found or (ANY_GLOBAL,)))
        if not isinstance(called, Ref):
            return self._names_computed(called, found)
        if all(map(is_element, found)) and (parts := names.destructured_names(self._path, called)):
            return parts, False
        if not found or self._is_of_unused_default(called, found):
            return self._passed_names(called) or found, True
        if any(passes_call(name) and names.subclasses(split_call(name)[0]) for name in found):
            # ``model: nn.Module`` says which class it inherits from; what is passed says which class it is.
            found = tuple(sorted({*found, *names.names_from_callers(self._path, called)}))
        elif len(called.path) == 1 and all(is_object(name) and not in_project(name) for name in found):
            # ``self.net = wrap(self.net)`` from outside may still be what was passed for it.
            found = tuple(sorted({*found, *names.names_from_callers(self._path, called)}))
        return self._specified_by_callers(called, found), False

    def _names_computed(self, called: Expression, found: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """The names that are called by another expression than a reference; see ``_names_called``."""
        if own := self._in_own_table(called):
            return own, False
        # An element of a container that is passed or returned: ``steps["train"](batch)``.
        names = self._names
        passed: tuple[str, ...] = ()
        if isinstance(called, Subscript) and (not found or self._is_under_unknown_key(called)):
            objects = names.objects(self._path, called).names
            passed = objects if set(found) < set(objects) else ()
        known = passed or self._specified_by_callers(called, found) or names.objects(self._path, called).names
        return known, bool(passed)

    def _is_under_unknown_key(self, called: Subscript) -> bool:
        """Whether an element is of a container that is passed, under a variable key of which no text is known: ``steps[key]``."""
        roots = called.value.roots if isinstance(called.value, Ref) and not called.value.path else ()
        keys = [
            each for each in called.indices if isinstance(each, Ref) and not self._names.literal_texts(self._path, each)
        ]
        return len(keys) == len(called.indices) and any(self._names.parameter(self._path + root) for root in roots)

    def _in_own_table(self, called: Expression) -> tuple[str, ...]:
        """What a table of the receiver's class has, which base classes leave to it: ``cls.PRODUCTS[name]``."""
        match called:
            case Subscript(value=Ref(path=(word,)) as table, indices=(key,)) if self._receiver and self._is_own(table):
                found = self._names.attribute_values(self._receiver, word)
                shown = [(file, each) for file, each in found if isinstance(each, Collection)]
                names = (name for file, each in shown for name in self._names.items(file, each, self._path, key))
                return tuple(sorted({*names}))
        return ()

    def _is_of_unused_default(self, called: Ref, found: tuple[str, ...]) -> bool:
        """Whether all names of a parameter are those of its default, and every call passes something else."""
        names, found = self._names, tuple(filter(in_project, found)) or found  # an annotation says ``Callable``
        for root in called.roots if not called.path else ():
            known = names.parameter(self._path + root)
            if known is None or known.param.default is None or found != names.names(self._path, known.param.default):
                return False
            given = names.passed(self._path + root)
            if not given or any(value == known.param.default for _, value in given):
                return False
        return not called.path

    def _passed_names(self, called: Ref) -> tuple[str, ...]:
        """The names of what calls pass for a parameter that is called, and what stands for values without names."""
        names = self._names
        passed = names.names_from_callers(self._path, called)
        if not passed or any(map(_is_held, passed)):
            passed = _specified(passed, names.objects(self._path, called))
        if passed:
            values = names.values(self._path, called) if not called.path else ()
            return passed if all(names.names(file, each) for file, each in values) else (*passed, ANY_VALUE)
        return (DECORATED,) if is_decorated_function(names, names.call_graph, self._path, called) else ()

    def _specified_by_callers(self, called: Expression, found: tuple[str, ...]) -> tuple[str, ...]:
        """The names without base classes that annotations give, where callers say which objects come."""
        hidden = any(is_abstract(name) or _is_held(name) or self._is_overridden(name) for name in found)
        return _specified(found, self._names.objects(self._path, called)) if hidden else found

    def _is_overridden(self, name: str) -> bool:
        """Whether a name is that of an object, or of a method, of a class of the project with subclasses: ``buffer: Buffer``."""
        owner = class_of(name) if is_instance(name) else self._names.owner(name)
        return in_project(owner) and bool(self._names.subclasses(owner))

    def _receivers(self, called: Expression) -> tuple[str, ...]:
        """The classes of the project that a method's receiver may have."""
        if isinstance(called, Ref) and called.path and self._receiver and self._is_own(called):
            return (self._receiver,) if len(called.path) == 1 else self._objects_of_attribute(called.path[:-1])
        if self._is_of_base(called):
            own = self._receiver or self._names.owner(self._function)
            return (own,) if own else ()
        found = sorted(set(self._names.receiver(self._path, called)))
        holder = receiver_of(called)
        if holder is not None and (not found or any(map(self._is_overridden, found))):
            # A parameter, or a base class that an annotation gives: callers say which objects come.
            given = self._names.objects(self._path, holder)
            found = [*given.names] if given.complete and len(given.names) <= limits.MAX_SUBCLASSES else found
        return tuple(
            class_of(name) for name in found if in_project(name) and (is_instance(name) or self._is_one_of_few(name))
        )

    def _objects_of_attribute(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The classes of the project that an attribute of the receiver may have objects of."""
        found = self._names.attribute_objects(self._receiver, words).names
        few = len(found) <= limits.MAX_SUBCLASSES
        return tuple(class_of(name) for name in found if few and in_project(name) and is_instance(name))

    def _is_one_of_few(self, owner: str) -> bool:
        """Whether a class shares the class methods of its bases with few others: those of a model zoo would be run hundreds of times."""
        bases = [*filter(in_project, self._names.ancestry(owner)[1:])]
        return bool(self._names.classes(owner)) and all(
            len(self._names.subclasses(each)) <= limits.MAX_SUBCLASSES for each in bases
        )

    def _is_of_base(self, called: Expression) -> bool:
        """Whether the method of a base class is called on the same object: ``super().m``, ``Base.__init__``."""
        match called:
            case Ref(roots=roots, path=path):
                return any(map(is_super, roots)) or path[-1:] == ("__init__",)
            case Attribute(value=value):
                return any(is_super(class_of(name)) for name in self._names.names(self._path, value))
        return False

    def _is_own(self, called: Ref) -> bool:
        """Whether a reference starts at the first parameter of the method."""
        return any(
            f"{self._path}{root}" == local_symbol(self._function, each.params[0].name)
            for each in self._names.functions(self._function)
            if each.owner and each.params
            for root in called.roots
        )

    def _callbacks(self, library_call: LibraryCall, mode: str) -> Iterator[Target]:
        """The functions and methods that a library call runs of its arguments."""
        for name in callbacks(self._names, library_call):
            if self._names.classes(name):
                yield from (Target(target, mode) for target in entered_functions(self._names, name, "call"))
            elif self._names.functions(name):
                yield Target(name, mode)

    def _properties_read(self, value: Expression) -> Iterator[str]:
        """The properties that reading ``a.b.c`` runs."""
        if isinstance(value, Ref):
            for index, word in enumerate(value.path):
                if word in self._names.property_words:
                    owner = value._replace(path=value.path[:index])
                    for each in project_classes(self._names.names_of(self._path, owner)):
                        yield from filter(self._names.is_property, self._names.methods(each, word))


_HELD = lazy_pattern(
    r"(builtins\.(tuple|list|dict|set|zip|enumerate|map|iter|sorted|reversed)|collections\.(OrderedDict|defaultdict|deque))\(\)"
    r"((\.(items|values|copy)\(\))?\[\]|\.(get|pop|setdefault)\(\)).*"
    r"|torch\.nn\.Module\(\)\.((named_)?(children|modules)\(\)|_modules\.(values|items)\(\))\[\].*"
    r"|(argparse\.(\w+\(\)\.parse_(known_)?args|Namespace)|types\.SimpleNamespace)\(\)(\[\])?\.\w+.*"
)


def _specified(found: tuple[str, ...], objects: Objects) -> tuple[str, ...]:
    """The names of an annotated callee and of the objects that it may be; those of base classes go where all are known."""
    kept = (name for name in found if not (objects.complete and (is_abstract(name) or _is_held(name))))
    return tuple(sorted({*kept, *objects.names}))


def _is_held(name: str) -> bool:
    """Whether a name is an element of a container of Python's own, a child of a module, an attribute of a namespace, or of such a value."""
    return _HELD.fullmatch(name) is not None
