"""Call targets: the functions of a project that a call, iteration, index or read enters in a trace.

A callable that is passed to a call is entered at once, or its entry is deferred until it is seen to be called or iterated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.catalogue.libraries import (
    METHODS_WITHOUT_FORWARD,
    loader_kinds,
    loader_names,
    module_wrapper,
    samplers_of,
    takes_transforms,
)
from torchrepro_lint.dataflow.alternative_arguments import with_expanded_keywords
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.computed_names import ANY_GLOBAL, EVALUATED
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.resolve.registries import MAKING_DECORATORS
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation, Record, Ref, fields
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    class_of,
    in_project,
    is_instance,
    local_symbol,
    path_of,
    simple_name,
)
from torchrepro_lint.syntax.use_def import passed_values, receiver_or_container
from torchrepro_lint.syntax.visitor import body_expressions, last_identifier
from torchrepro_lint.trace.bodies import (
    CACHED_BODIES,
    COMMAND_LINES,
    MODULE_CONTAINERS,
    EnteringEvent,
    ResolvedBodies,
    Step,
)
from torchrepro_lint.trace.events import CallFrame, DeferralKey, DeferredCall, ResolvedEvent, Target, TraceMemoTables
from torchrepro_lint.trace.library_models import keeper, makes_loader, stores_callables


class Frame(Record, frozen=True):
    """A stack frame of the trace builder: a target that is being run, ``main`` as ``__main__``, and the rest of its steps, the next one
    last.
    """

    target: Target
    main: bool
    path: str
    rest: list[Step]
    call_path: tuple[CallFrame, ...]


class CallTargets:
    """The call targets of the events of one trace, and its deferred calls."""

    def __init__(self, names: Names, tables: TraceMemoTables) -> None:
        self._names = names
        self._events = names.events
        self._tables = tables
        self._bodies = names.database.part(ResolvedBodies)
        self._deferred: dict[DeferralKey, DeferredCall] = {}

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

    def _is_other_use(self, waiting: DeferredCall, event: Event) -> bool:
        """Whether what waits are methods of objects, and another one is used that these have: ``DataParallel(net).encode()``; or what
        only a container has: ``if isinstance(x, dict): x.items()``, where a network may come, too.
        """
        used = _used_by(event)
        word, owners = last_identifier(used), [self._names.owner(each.function) for each in waiting.targets]
        if (event.kind != "call" or word in _OF_MAPPINGS) and self._is_made_parallel(waiting):
            return True
        return isinstance(used, Ref) and all(
            owner and any(map(self._names.functions, self._names.methods(owner, word))) for owner in owners
        )

    def _is_made_parallel(self, waiting: DeferredCall) -> bool:
        """Whether what waits is a network in a wrapper for several devices."""
        made = waiting.step.event.value
        names = self._names.names(waiting.step.path, made.func) if isinstance(made, Call) else ()
        return bool(names) and all(each.startswith(_PARALLEL) for each in names)

    def _defers_values(self) -> bool:
        """Whether the use of some value would release a deferred call; a hot path."""
        for key in self._deferred:  # noqa: SIM110  a generator takes twice as long
            if type(key) is tuple:
                return True
        return False

    def _higher_order_targets(
        self, path: str, call: Call, found: tuple[str, ...], given: Sequence[str], mode: str, waiting: DeferredCall
    ) -> Iterator[Target]:
        """The targets of a higher-order call: functions, generators and callable objects that are passed as arguments.

        A function from outside is assumed to call them at once, an object of a class from outside when it is used, and a loader's
        workers when the loader is iterated. A function of the project calls them where its body does.
        """
        if "functools.partial" in found:
            return  # a partial stands for its function
        if found and all(_runs_nothing(name) for name in found):
            return
        if not given and COMMAND_LINES.isdisjoint(found) and not makes_loader(found):
            return
        inside = "worker" if runs_in_worker(self._names, path, call, found) else mode
        followed, holds = any(map(in_project, found)), bool(found) and _HOLDING.issuperset(found)
        ordering = self._ordering(path, call, found)
        passed = self._wrapped(path, call, inside, mode) if makes_loader(found) else []
        if not call.args and COMMAND_LINES.intersection(found):
            passed += (Target(name, inside) for name in self._names.defined_in(path))
        kept = uncaptured_values(self._names, path, call, found)
        for name in (each for each in given if kept is None or each in kept):
            if is_instance(name) and class_of(name) in self._deferred and not followed:
                yield from self._deferred.pop(class_of(name)).targets
            elif self._names.functions(name) and not holds:
                passed.append(Target(name, inside))
            elif (
                not followed or all(map(is_instance, found)) or ANY_GLOBAL in found or EVALUATED in found
            ) and not holds:
                # What is passed to ``forward`` of an object, or to what a computed name means, is bound to no parameter.
                where = mode if name in ordering else inside
                where = "" if where == "loaded" else where  # its weights are loaded, but it runs after that
                passed += (Target(target, where) for target in self._run_from_outside(name, found, where))
        if followed:
            for target in passed:
                self._deferred.setdefault(":".join(fields(target)), waiting._replace(targets=[target]))
        else:
            yield from self._now_or_later(path, call, found, passed, waiting)

    def _now_or_later(
        self, path: str, call: Call, found: tuple[str, ...], passed: list[Target], waiting: DeferredCall
    ) -> Iterable[Target]:
        """What a call from outside runs of its arguments at once; the rest is deferred until what keeps them is used."""
        stored = keeper(found, call)
        if not stored and not any(map(_constructs, found)):
            return passed
        if stored != "receiver":
            self._deferred.setdefault((path, call), waiting._replace(targets=passed))
            return ()
        for made in self._makers_of_receiver(path, call):
            before = self._deferred[made].targets if made in self._deferred else []
            self._deferred[made] = waiting._replace(targets=[*passed, *before])
        return ()

    def _makers_of_receiver(self, path: str, call: Call) -> list[tuple[str, Expression]]:
        """The calls, with their files, that make the object whose method is called; if none is known, the call itself."""
        receiver = receiver_or_container(call.func)
        found = self._names.values_through_calls(path, receiver) if receiver is not None else ()
        return [each for each in found if isinstance(each[1], Call)] or [(path, call)]

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
                mode = outside if any(each == sampler for sampler in ordering) else inside
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
        if COMMAND_LINES.intersection(found):
            yield from self._names.public_methods(name)
        elif is_instance(name):
            yield from self._names.call_methods(name)
            if mode == "worker" or makes_loader(found):
                yield from entered_functions(self._names, name, "iterate")

    def _class_of(self, name: str) -> str:
        """The project's class of an object (``f.py:Net()``) or of a method; empty for other names."""
        if is_instance(name):
            return class_of(name) if self._names.classes(class_of(name)) else ""
        return "" if name.endswith(".__init__") or self._names.classes(name) else self._names.owner(name)


@query(lru=CACHED_BODIES, bounded_when_watched=False)
def uncaptured_values(names: Names, path: str, call: Call, found: tuple[str, ...]) -> frozenset[str] | None:
    """The values that a call passes to functions of the project for more than what nested functions call, as a decorator's are: those run
    where these do. None where it calls no function of the project.
    """
    definitions = [(name, function) for name in found for function in names.functions(name)]
    values = (
        arg.value
        for name, function in definitions
        for arg, param in names.call_graph.receiving(path, call, function)
        if local_symbol(name, param.name) not in captured_parameters(names, name)
    )
    return frozenset(each for value in values for each in names.names(path, value)) if definitions else None


@query()
def captured_parameters(names: Names, function: Symbol) -> frozenset[Symbol]:
    """The parameters of a function of the project that it only captures: the functions inside it use them, it does not itself."""
    path, found = path_of(function), set[Symbol]()
    for definition in names.functions(function):
        inside = list(body_expressions(definition.body))
        calls = [each for each in inside if isinstance(each, Call)]
        naming = [each for each in calls if any(map(_NAMING.fullmatch, names.names(path, each.func)))]
        named = {arg.value for each in naming for arg in each.args}
        tests = (each for each in inside if isinstance(each, Operation) and each.op in _TESTING)
        named.update(operand for each in tests for operand in each.operands)
        refs = [each for each in inside if isinstance(each, Ref) and each not in named]
        used = {root for each in refs if not (each.path and each.path[-1][:2] == "__") for root in each.roots}
        own = {local_symbol(definition.name, each.name) for each in definition.params}
        found.update(path + root for root in own - used)
    return frozenset(found)


# Operators that ask whether a function is given.
_TESTING = frozenset({"is", "is not", "==", "!=", "not"})
# Functions that copy what a function is called, or read it.
_NAMING = lazy_pattern(
    r"functools\.(wraps|update_wrapper)|inspect\.\w+|builtins\.(getattr|hasattr|callable|isinstance)"
)

# Methods of a dictionary, and modules that have none of them, and can be neither iterated nor indexed.
_OF_MAPPINGS = frozenset({"items", "keys", "values", "get"})
_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.")

# The kinds of events that use an object.
_USES = frozenset({"call", "iterate", "index"})


@query(lru=CACHED_BODIES, bounded_when_watched=False)
def uses_of_calls(names: Names, target: Target, main: bool) -> Mapping[int, Mapping[int, tuple[DeferralKey, ...]]]:
    """The events of a body that use what calls return, each with these calls: by the number of steps that follow, and in a step by the
    number of events that follow.
    """
    path, steps = path_of(target.function), names.database.part(ResolvedBodies).of(names, target, main=main)
    found: dict[int, dict[int, tuple[DeferralKey, ...]]] = {}
    for number, step in enumerate(steps, 1):
        events = [step.resolved] if isinstance(step, EnteringEvent) else step if isinstance(step, tuple) else ()
        used = [(len(events) - at, tuple(_calls_used(names, path, each))) for at, each in enumerate(events, 1)]
        if uses := {follow: calls for follow, calls in used if calls}:
            found[len(steps) - number] = uses
    return found


def _calls_used(names: Names, path: str, resolved: ResolvedEvent) -> Iterator[DeferralKey]:
    """The calls, each with its file, whose result an event uses, other than to store what it calls later."""
    event = resolved.event
    if event.value is None or event.kind not in _USES or keeper(resolved.names, event.value) == "receiver":
        return
    used = _used_by(event)
    still = isinstance(used, Ref) and not METHODS_WITHOUT_FORWARD.isdisjoint(used.path[-1:])
    for each in (used, None if still else receiver_or_container(used)):
        if isinstance(each, Call) or (isinstance(each, Ref) and len(each.path) < 2):
            yield from (made for made in names.values_through_calls(path, each) if isinstance(made[1], Call))
        elif isinstance(each, Ref):
            yield from _modules_within(names, path, each)


def _modules_within(names: Names, path: str, attribute: Ref) -> Iterator[tuple[str, Call]]:
    """The calls, with their files, that make what a container of modules has under an attribute: ``for block in self.blocks.deep``."""
    holder = attribute._replace(path=attribute.path[:-1])
    if "torch.nn.ModuleDict()" in names.names_of(path, holder):
        for file, made in names.elements(path, holder, (attribute.path[-1],)):
            if isinstance(made, Call):
                yield file, made


def _used_by(event: Event) -> Expression:
    """What an event calls, iterates or indexes."""
    assert event.value is not None
    return event.value.func if isinstance(event.value, Call) and event.kind == "call" else event.value


# Functions that neither call nor iterate their arguments.
_INSPECTING = frozenset(
    {"builtins.hasattr", "builtins.isinstance", "builtins.issubclass", "builtins.id", "builtins.type", "builtins.len"}
    | {"builtins.callable", "builtins.super", "builtins.setattr", "builtins.getattr", "builtins.delattr"}
    | {"builtins.repr", "builtins.print", "builtins.vars", "builtins.dir"}
    # Samplers that only measure the dataset that they get.
    | {f"torch.utils.data.{each}Sampler" for each in ("Random", "Sequential", "Distributed", "distributed.Distributed")}
)

# Functions that put what they get into a container, or iterate over it, and call none of it.
_HOLDING = frozenset(f"builtins.{word}" for word in ("dict", "list", "tuple", "set", "frozenset", "enumerate", "zip"))

# Modules whose functions only display their arguments.
_DISPLAYING = ("inspect.", "logging.", "warnings.", "loguru.")

# Functions that return a function or dataset that they get, to be run later, beside those that wrap a module.
_WRAPPERS = frozenset({"copy.copy", "copy.deepcopy"}) | {
    f"torch.utils.data.{each}random_split" for each in ("", "dataset.")
}


def _runs_nothing(name: str) -> bool:
    """Whether a function neither calls nor iterates its arguments while it runs, as far as is known."""
    return name in _INSPECTING or name in MAKING_DECORATORS or name.startswith(_DISPLAYING) or _is_registry(name)


def _is_registry(name: str) -> bool:
    """Whether a name stores a function under a key: a function of the project that says so, or an outer object's ``register``."""
    if in_project(name):
        return simple_name(name).startswith(("register", "_register"))
    return name.endswith("().register") and not stores_callables((name,))


def _constructs(name: str) -> bool:
    """Whether calling a name from outside makes an object, by naming convention, or wraps one."""
    makes = simple_name(name)[:1].isupper() and name not in COMMAND_LINES
    return makes or name in _WRAPPERS or module_wrapper(name) is not None


def runs_in_worker(names: Names, path: str, call: Call, found: tuple[str, ...]) -> bool:
    """Whether the callables that a call gets run where samples are fetched: in a loader's workers, as far as is known."""
    if kind := next((loader_kinds()[name] for name in found if name in loader_names()), None):
        words = kind.parameters
        spelled_out = with_expanded_keywords(names, path, call) if any(arg.star for arg in call.args) else call
        workers = passing_argument(
            spelled_out, words.index("num_workers") if "num_workers" in words else None, "num_workers"
        )
        if workers is None or workers.star:
            return workers is not None
        return any(
            not (isinstance(value, Constant) and value.value == 0) for _, value in names.values(path, workers.value)
        )
    if takes_transforms(call):
        return not _lists_modules(names, path, call)
    return any(
        "datasets." in name or "transforms." in name or (name.startswith("torch.utils.data") and name[-7:] != "Sampler")
        for name in found
    )


def _lists_modules(names: Names, path: str, call: Call) -> bool:
    """Whether a call adds to a list of which the file makes a container of modules, which runs where the model does:
    ``Sequential(*augmentations)``.
    """
    added = receiver_or_container(call.func)
    return isinstance(added, Ref) and any(
        arg.star == "*"
        and isinstance(arg.value, Ref)
        and arg.value.access_path == added.access_path
        and not MODULE_CONTAINERS.isdisjoint(names.names(path, each.func))
        for _, each in names.call_graph.in_file(path)
        for arg in each.args
    )
