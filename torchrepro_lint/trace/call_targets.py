"""Call targets: the functions of a project that a call, iteration, index or read enters in a trace.

A callable that is passed to a call is entered at once, or its entry is deferred until it is seen to be called or iterated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchrepro_lint.catalogue.libraries import (
    METHODS_WITHOUT_FORWARD,
    loader_kinds,
    loader_names,
    samplers_of,
    takes_transforms,
)
from torchrepro_lint.query import limits
from torchrepro_lint.resolve.computed_names import ANY_GLOBAL
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.object_sources import is_abstract, is_held, specified
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.resolve.registries import DECORATED, is_decorated_function
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Record, Ref, Statement, fields
from torchrepro_lint.syntax.qualified_names import (
    class_of,
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
    simple_name,
    split_call,
)
from torchrepro_lint.syntax.visitor import passing_argument
from torchrepro_lint.trace.events import (
    CallFrame,
    DeferralKey,
    DeferredCall,
    EventKey,
    EventTargets,
    Target,
    TraceMemoTables,
)
from torchrepro_lint.trace.library_models import (
    LibraryCall,
    callbacks,
    dataset_attribute,
    flattened_values,
    passed_values,
    receiver_of,
    rows_of,
    stores_callables,
)


class Frame(Record, frozen=True):
    """A stack frame of the trace builder: a function that is being run, and the rest of its events."""

    function: str
    path: str
    rest: Iterator[Event]
    call_path: tuple[CallFrame, ...]
    mode: str
    loaded: frozenset[Statement]
    receiver: str


class CallTargets:
    """The call targets of the events of one trace, and its deferred calls."""

    def __init__(self, names: Names, tables: TraceMemoTables) -> None:
        self._names = names
        self._events = names.events
        self._tables = tables
        self._deferred: dict[DeferralKey, DeferredCall] = {}

    def _resolve(self, frame: Frame, event: Event, called: Expression) -> EventTargets:
        """The targets of an event; one memo table serves all traces."""
        key = EventKey.of(frame.path, event)
        if frame.receiver:
            return self._tables.inherited_targets.of(
                (key, frame.receiver), lambda: self._compute_targets(frame, event, called)
            )
        self._names.modules.reads.recall("outcomes")
        return self._tables.outcomes.of(key, lambda: self._compute_targets(frame, event, called))

    def _compute_targets(self, frame: Frame, event: Event, called: Expression) -> EventTargets:
        self._names.modules.reads.record_read(frame.path)  # the key has offsets in this file
        found, assumed = self._names_called(frame, called)
        passed: tuple[str, ...] = ()
        runs = False
        if event.kind == "call" and isinstance(event.value, Call):
            if made := self._names.configured(frame.path, event.value):
                kept = () if any(map(self._names.owner, found)) else found  # not the registry's own method
                found = tuple(sorted({*kept, *filter(in_project, made)}))
            values = list(passed_values(event.value))
            if runs := _makes_loader(found):
                lists = [each for each in values if isinstance(each, Ref)]
                values += flattened_values(item for each in lists for item in self._events.added(frame.path, each))
            names = (name for each in values for name in self._names.names(frame.path, each))
            passed = tuple(dict.fromkeys(filter(in_project, names)))
            runs = runs or not _COMMAND_LINES.isdisjoint(found) or any(row.runs or row.calls for row in rows_of(found))
        return EventTargets(found, assumed, not (runs or passed or any(map(in_project, found))), passed)

    def _names_called(self, frame: Frame, called: Expression) -> tuple[tuple[str, ...], bool]:
        """The names that are called: on ``self`` by the receiver's class; for a parameter, with true, by what calls pass for it."""
        names = self._names
        if isinstance(called, Ref) and (inner := dataset_attribute(names, frame.path, called)):
            return inner, False
        if isinstance(called, Ref) and frame.receiver and _is_self(names, frame.function, called):
            if called.path:
                found = names.follow(instance_value(frame.receiver), called.path)
                if not found or any(map(is_abstract, found)):
                    found = specified(found, names.attribute_objects(frame.receiver, called.path))
                return found, False
            if names.names(frame.path, called) == (names.owner(frame.function),):
                return (frame.receiver,), False  # ``cls(...)`` in a class method
        found = names.names(frame.path, called)
        if (not found or found == ANY_GLOBAL) and names.has_namespaces:
            found = names.factories(frame.path, called) or found
        if not isinstance(called, Ref):
            return self._specified_by_callers(frame, called, found), False
        if all(map(is_element, found)) and (parts := names.destructured_names(frame.path, called)):
            return parts, False
        if not found:
            passed = names.names_from_callers(frame.path, called) or names.objects(frame.path, called).names
            return passed or (
                (DECORATED,) if is_decorated_function(names, names.call_graph, frame.path, called) else ()
            ), True
        if any(passes_call(name) and names.subclasses(split_call(name)[0]) for name in found):
            # ``model: nn.Module`` says which class it inherits from; what is passed says which class it is.
            found = tuple(sorted({*found, *names.names_from_callers(frame.path, called)}))
        elif len(called.path) == 1 and all(is_object(name) and not in_project(name) for name in found):
            # ``self.net = wrap(self.net)`` from outside may still be what was passed for it.
            found = tuple(sorted({*found, *names.names_from_callers(frame.path, called)}))
        return self._specified_by_callers(frame, called, found), False

    def _specified_by_callers(self, frame: Frame, called: Expression, found: tuple[str, ...]) -> tuple[str, ...]:
        """The names without base classes that annotations give, where callers say which objects come."""
        hidden = any(is_abstract(name) or is_held(name) or self._is_overridden(name) for name in found)
        return specified(found, self._names.objects(frame.path, called)) if hidden else found

    def _is_overridden(self, name: str) -> bool:
        """Whether a name is that of an object, or of a method, of a class of the project with subclasses."""
        owner = class_of(name) if is_instance(name) else self._names.owner(name)
        return in_project(owner) and bool(self._names.subclasses(owner))

    def _receivers(self, frame: Frame, called: Expression) -> tuple[str, ...]:
        """The classes of the project that a method's receiver may have."""
        if isinstance(called, Ref) and called.path and frame.receiver and _is_self(self._names, frame.function, called):
            return (frame.receiver,) if len(called.path) == 1 else ()
        if self._is_of_base(frame, called):
            own = frame.receiver or self._names.owner(frame.function)
            return (own,) if own else ()
        found = sorted(set(self._names.receiver(frame.path, called)))
        return tuple(
            class_of(name) for name in found if in_project(name) and (is_instance(name) or self._is_one_of_few(name))
        )

    def _is_one_of_few(self, owner: str) -> bool:
        """Whether a class shares the class methods of its bases with few others: those of a model zoo would be run hundreds of times."""
        bases = [*filter(in_project, self._names.ancestry(owner)[1:])]
        return bool(self._names.classes(owner)) and all(
            len(self._names.subclasses(each)) <= limits.MAX_SUBCLASSES for each in bases
        )

    def _is_of_base(self, frame: Frame, called: Expression) -> bool:
        """Whether the method of a base class is called on the same object: ``super().m``, ``Base.__init__``."""
        match called:
            case Ref(roots=roots, path=path):
                return any(map(is_super, roots)) or path[-1:] == ("__init__",)
            case Attribute(value=value):
                return any(is_super(class_of(name)) for name in self._names.names(frame.path, value))
        return False

    def _enter_or_defer(
        self, name: str, kind: str, mode: str, waiting: DeferredCall, receivers: tuple[str, ...]
    ) -> Iterator[Target]:
        """The functions that an event on a value of the project enters; a generator's body is deferred until it is used."""
        for target, owner, waits in self._tables.entered.of(
            (name, kind, receivers), lambda: tuple(self._compute_entered(name, kind, receivers))
        ):
            found = Target(target, mode, owner)
            if waits:
                self._deferred.setdefault(target, waiting._replace(targets=[found]))
            else:
                yield found
        if kind != "call" and is_instance(name) and class_of(name) in self._deferred:
            yield from self._deferred.pop(class_of(name)).targets

    def _compute_entered(self, name: str, kind: str, receivers: tuple[str, ...]) -> Iterator[tuple[str, str, bool]]:
        """The functions, each with the receiver's class where that is a subclass, and whether its entry is deferred."""
        for target in entered_functions(self._names, name, kind):
            owner = self._names.owner(target)
            if self._names.classes(name):
                objects = [name]
            elif is_instance(name):
                objects = [class_of(name)]
            else:
                objects = [each for each in receivers if owner in self._names.ancestry(each)]
            for each in objects or [""]:
                yield target, "" if each == owner else each, kind == "call" and self._names.is_generator(target)

    def _release_deferred(self, path: str, used: Expression) -> Iterator[Target]:
        """The deferred calls that using an object releases: a loader's dataset, a container's modules."""
        if self._defers_values():
            still = isinstance(used, Ref) and not METHODS_WITHOUT_FORWARD.isdisjoint(used.path[-1:])
            for each in (used, None if still else receiver_of(used)):
                # No call makes anything else.
                if isinstance(each, Call) or (isinstance(each, Ref) and len(each.path) < 2):
                    for made in self._names.values_through_calls(path, each):
                        if made in self._deferred:
                            yield from self._deferred.pop(made).targets

    def _defers_values(self) -> bool:
        """Whether the use of some value would release a deferred call; a hot path."""
        for key in self._deferred:  # noqa: SIM110  a generator takes twice as long
            if type(key) is tuple:
                return True
        return False

    def _callbacks(self, library_call: LibraryCall, mode: str) -> Iterator[Target]:
        """The functions and methods that a library call runs of its arguments."""
        for name in callbacks(self._names, library_call):
            if self._names.classes(name):
                yield from (Target(target, mode) for target in entered_functions(self._names, name, "call"))
            elif self._names.functions(name):
                yield Target(name, mode)

    def _properties_read(self, path: str, value: Expression) -> Iterator[str]:
        """The properties that reading ``a.b.c`` runs."""
        if isinstance(value, Ref):
            for index, word in enumerate(value.path):
                if word in self._names.property_words:
                    owner = value._replace(path=value.path[:index])
                    for each in project_classes(self._names.names_of(path, owner)):
                        yield from filter(self._names.is_property, self._names.methods(each, word))

    def _higher_order_targets(
        self, path: str, call: Call, found: tuple[str, ...], given: Sequence[str], mode: str, waiting: DeferredCall
    ) -> Iterator[Target]:
        """The targets of a higher-order call: functions, generators and callable objects that are passed as arguments.

        A function from outside is assumed to call them at once, an object of a class from outside when it is used, and a loader's
        workers when the loader is iterated. A function of the project calls them where its body does.
        """
        if "functools.partial" in found:
            return  # a partial stands for its function
        if found and all(name in _INSPECTING or name.startswith(_DISPLAYING) or _is_registry(name) for name in found):
            return
        if not given and _COMMAND_LINES.isdisjoint(found) and not _makes_loader(found):
            return
        inside = "worker" if runs_in_worker(self._names, path, call, found) else mode
        followed = any(map(in_project, found))
        ordering = self._ordering(path, call, found)
        passed = self._wrapped(path, call, inside, mode) if _makes_loader(found) else []
        if not call.args and _COMMAND_LINES.intersection(found):
            passed += (Target(name, inside) for name in self._names.defined_in(path))
        for name in given:
            if is_instance(name) and class_of(name) in self._deferred and not followed:
                yield from self._deferred.pop(class_of(name)).targets
            elif self._names.functions(name):
                passed.append(Target(name, inside))
            elif not followed:
                where = mode if name in ordering else inside
                passed += (Target(target, where) for target in self._run_from_outside(name, found, where))
        if followed:
            for target in passed:
                self._deferred.setdefault(":".join(fields(target)), waiting._replace(targets=[target]))
        elif any(_constructs(name) for name in found) or stores_callables(found):
            self._deferred.setdefault((path, call), waiting._replace(targets=passed))
        else:
            yield from passed

    def _ordering(self, path: str, call: Call, found: tuple[str, ...]) -> frozenset[str]:
        """The samplers that a loader call passes: they draw the order in the main process."""
        if loader_names().isdisjoint(found):
            return frozenset()
        return frozenset(name for each in samplers_of(call) for name in self._names.names(path, each))

    def _wrapped(self, path: str, call: Call, inside: str, outside: str) -> list[Target]:
        """The deferred calls of datasets that are passed to a loader or wrapper: they run in its mode, samplers where the loader runs."""
        found: list[Target] = []
        if self._defers_values():
            ordering = samplers_of(call)
            for each in passed_values(call):
                mode = outside if any(each is sampler for sampler in ordering) else inside
                for made in self._makers(path, each):
                    if made in self._deferred:
                        found += (target._replace(mode=mode) for target in self._deferred.pop(made).targets)
        return found

    def _makers(self, path: str, each: Expression) -> Iterator[tuple[str, Expression]]:
        """The expressions, with their files, that create a value, or a collection that holds it."""
        yield from self._names.values_through_calls(path, each)
        if isinstance(each, Ref) and not each.path:
            for root in each.roots:
                yield from ((path, value) for how, value in self._names.assigned(path + root) if how == "[]")

    def _run_from_outside(self, name: str, found: tuple[str, ...], mode: str) -> Iterator[str]:
        """The methods that code from outside runs of a class or an object that is passed to it."""
        if _COMMAND_LINES.intersection(found):
            yield from self._names.public_methods(name)
        elif is_instance(name):
            yield from self._names.call_methods(name)
            if mode == "worker" or _makes_loader(found):
                yield from entered_functions(self._names, name, "iterate")

    def _class_of(self, name: str) -> str:
        """The project's class of an object (``f.py:Net()``) or of a method; empty for other names."""
        if is_instance(name):
            return class_of(name) if self._names.classes(class_of(name)) else ""
        return "" if name.endswith(".__init__") or self._names.classes(name) else self._names.owner(name)


# Functions that neither call nor iterate their arguments.
_INSPECTING = frozenset(
    f"builtins.{word}"
    for word in (
        "hasattr",
        "isinstance",
        "issubclass",
        "id",
        "type",
        "len",
        "callable",
        "super",
        "setattr",
        "getattr",
        "delattr",
        "repr",
        "print",
        "vars",
        "dir",
    )
)

# Modules whose functions only display their arguments.
_DISPLAYING = ("inspect.", "logging.", "warnings.", "loguru.")

# Functions that turn a function, a dictionary of functions, or a class into a command line.
_COMMAND_LINES = frozenset({"fire.Fire", "fire.core.Fire"})


# Functions that return a function, module or dataset that they get, to be run later.
_WRAPPERS = frozenset(
    {"torch.compile", "torch.jit.script", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "copy.copy", "copy.deepcopy"}
    | {"torch.utils.data.random_split", "torch.utils.data.dataset.random_split"}
)


def _makes_loader(found: Iterable[str]) -> bool:
    """Whether a call makes a loader, or a dataset wrapper or sampler."""
    return any(name in loader_names() or name.startswith("torch.utils.data.") for name in found)


def _is_registry(name: str) -> bool:
    """Whether a name is the ``register`` method of an object from outside, which stores a function under a key."""
    return name.endswith("().register") and not stores_callables((name,))


def _constructs(name: str) -> bool:
    """Whether calling a name from outside makes an object, by naming convention."""
    return (simple_name(name)[:1].isupper() and name not in _COMMAND_LINES) or name in _WRAPPERS


def _is_self(names: Names, function: str, called: Ref) -> bool:
    """Whether a reference starts at the first parameter of a method."""
    path = path_of(function)
    return any(
        f"{path}{root}" == local_symbol(function, each.params[0].name)
        for each in names.functions(function)
        if each.owner and each.params
        for root in called.roots
    )


def runs_in_worker(names: Names, path: str, call: Call, found: tuple[str, ...]) -> bool:
    """Whether the callables that a call gets run where samples are fetched: in a loader's workers, as far as is known."""
    if kind := next((loader_kinds()[name] for name in found if name in loader_names()), None):
        words = kind.parameters
        workers = passing_argument(call, words.index("num_workers") if "num_workers" in words else None, "num_workers")
        if workers is None or workers.star:
            return workers is not None
        return any(
            not (isinstance(value, Constant) and value.value == 0) for _, value in names.values(path, workers.value)
        )
    if takes_transforms(call):
        return True
    return any(
        "datasets." in name or "transforms." in name or (name.startswith("torch.utils.data") and name[-7:] != "Sampler")
        for name in found
    )
