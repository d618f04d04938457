"""Effect analysis of callables that workers run: which generators transforms and collate functions draw from.

It is interprocedural and context-sensitive: a method is summarised for the attributes and arguments of its object.
Recursion is solved as a fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.libraries import dataset_model, loader_names, transform_models
from torchrepro_lint.dataflow.environment import (
    Closure,
    ContextInsensitivity,
    Environment,
    context_insensitive_key,
)
from torchrepro_lint.domain.programs import WorkerTrace, worker_trace
from torchrepro_lint.domain.rng.consumers import called_variable
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.query.tabling import TablingSolver
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.control_flow import EventIdentity, event_key
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    instance_value,
    is_instance,
    qualifier_of,
    simple_name,
    without_brackets,
)
from torchrepro_lint.syntax.scopes import functions_around
from torchrepro_lint.trace.contexts import CallingContexts
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.traces import Traces

GeneratorSet: TypeAlias = frozenset[str]
NO_GENERATORS: GeneratorSet = frozenset()
ANY_GENERATOR: GeneratorSet = frozenset({"unknown"})
_OWN_GENERATOR: GeneratorSet = frozenset({"own"})
_WRAPPED_PARAMETERS = ("transforms", "transform", "lambd", "func")
# A variable of unknown value is taken for a transform by its name.
_TRANSFORM_WORD = lazy_pattern(r"(?i).*(transf|trans$|tfm|tsfm|aug|preproc)")
_GENERATORS = lazy_pattern(
    r"(numpy\.random\.(default_rng|RandomState|Generator)|random\.Random|torch\.Generator)\(\)(\..*)?"
)
_HOOKS = lazy_pattern(r"(?!__init__$).*")
# Conversions of a table to an array, whatever the table was read from.
_ARRAYS = (".values", ".to_numpy()", ".numpy()", ".to_pandas()")
# Classes whose items are no fetched samples: containers, and libraries' records of one sample or a batch.
_RECORDS = lazy_pattern(
    r"builtins\.(dict|list|tuple|str|bytes)|collections\.(UserDict|UserList|OrderedDict|defaultdict|Counter|deque|ChainMap)|"
    r"typing\.(NamedTuple|TypedDict)|torch\.(Tensor|nn\.\w+)|numpy\.ndarray|tensordict\.\w+|"
    r"torch_geometric\.data\.(\w+\.)*(Data|HeteroData|Batch|TemporalData)|dgl\.\w*Graph|"
    r"transformers\.(\w+\.)*(BatchEncoding|BatchFeature)"
)
# A method of a transform's result: ``Compose()().clone``.
_METHOD_OF_RESULT = lazy_pattern(r"(\(\)\(\)|(^|\.)[a-z_]\w*\(\))\.\w+$")
# Kinds of events with effects that the trace may not show.
_USES = frozenset({"call", "index", "iterate"})
_DISPLAYS = (Collection, Comprehension, Constant)


class CallableEffects:
    """The effect analysis for the callables of a project; ``datasets`` gives the effects of those that calls create."""

    def __init__(self, project: Traces, datasets: Callable[[Sequence[Closure]], GeneratorSet]) -> None:
        self._value_sources = project.value_sources
        self._project = project
        self._datasets = datasets
        self._depth = 0
        self._open: set[Closure] = set()  # the callables whose draws are being asked for
        # The effects of methods in equal environments; and the questions in progress, by class, methods and construction.
        self._solver = TablingSolver(project.database.reads)
        self._summaries = self._solver.table()
        self._in_progress: dict[tuple[str, tuple[str, ...], tuple[str, Expression] | None], Hashable] = {}
        self._unbound = ContextInsensitivity(project)
        # Values that are no dataset in any environment.
        self._no_datasets: MemoTable[Hashable, GeneratorSet | None] = MemoTable(project.database.reads)

    def draws(self, given: Closure) -> GeneratorSet:
        """The generators that a call of a callable draws from."""
        if self._depth > limits.MAX_CALLABLE_NESTING or given in self._open:
            self._solver.mark_provisional()  # ``self.steps = Compose(self.steps)`` draws nothing more
            return NO_GENERATORS if given in self._open else ANY_GENERATOR
        self._depth += 1
        self._open.add(given)
        try:
            return NO_GENERATORS.union(*(self._of_value(each) for each in self._value_sources.of(given)))
        finally:
            self._depth -= 1
            self._open.discard(given)

    def of_arguments(self, call: Closure | None, words: Sequence[str]) -> GeneratorSet:
        """The generators of the callables that a call passes for parameters ``words``, by name or position."""
        found: set[str] = set()
        assert call is None or isinstance(call.value, Call)
        for arg in call.value.args if call is not None and words else ():  # type: ignore[union-attr]
            value = call._replace(value=arg.value)  # type: ignore[union-attr]
            if arg.star:
                found |= ANY_GENERATOR
            elif arg.keyword in words:
                found |= self.draws(value)
            elif arg.keyword is None and not isinstance(arg.value, Constant):
                drawn = self.draws(value)
                found |= drawn if drawn != ANY_GENERATOR or _is_named_transform(arg.value) else NO_GENERATORS
        return frozenset(found)

    def _of_value(self, each: Closure) -> GeneratorSet:
        match each.value:
            case Constant():
                return NO_GENERATORS
            case Collection(kind=kind, items=items):
                values = items[1::2] if kind == "dict" else items
                return self._all(each._replace(value=item) for item in values if item is not None)
            case Comprehension(elements=elements):
                return self.draws(each._replace(value=elements[-1]))
            case Operation(op="*", operands=(value,)):
                return self.draws(each._replace(value=value))
            case Operation(op="+", operands=operands):
                return self._all(each._replace(value=one) for one in operands)
            case Lambda(function=function):
                return self.of_methods("", each, [each.path + function])
            case Call():
                return self._of_call(each, each.value)
        return self._of_reference(each)

    def _all(self, each: Iterable[Closure]) -> GeneratorSet:
        return NO_GENERATORS.union(*(self.draws(one) for one in each))

    def _of_call(self, each: Closure, call: Call) -> GeneratorSet:
        """A callable that a call creates: an object of the project or a library, a partial."""
        found: set[str] = set()
        names = self._project.names(each.path, call.func)
        for name in names:
            if name == "functools.partial" and call.args:
                found |= self.draws(each._replace(value=call.args[0].value))
            elif self._project.resolver.classes(name):
                found |= self._of_object(name, each)
            else:
                found |= self._of_rows(without_brackets(name), each)
        return frozenset(found) if names else ANY_GENERATOR

    def _of_reference(self, each: Closure) -> GeneratorSet:
        """A function, a method, or an object of which only the class is known."""
        found: set[str] = set()
        resolver = self._project.resolver
        names = resolver.names(each.path, each.value) or resolver.object_names(each.path, each.value)
        for name in names:
            if resolver.functions(name):
                found |= self.of_methods(resolver.owner(name), None, [name], environment=each.environment)
            elif resolver.classes(name):
                return ANY_GENERATOR
            elif in_project(name) and is_instance(name):
                found |= self._of_object(class_of(name), None)
            else:
                found |= self._of_rows(without_brackets(name), None)
        return frozenset(found) if names else ANY_GENERATOR

    def _of_object(self, owner: str, made: Closure | None) -> GeneratorSet:
        """An object of a class of the project: its own call, or a library's that draws nothing, and may run any method of it."""
        resolver = self._project.resolver
        methods = resolver.call_methods(owner)
        outside = [base for base in resolver.ancestry(owner) if not in_project(base)] if not methods else []
        if any(self._of_rows(base, None) == NO_GENERATORS for base in outside):
            hooks = tuple(resolver.methods_like(owner, _HOOKS))
            return self.of_methods(owner, made, hooks) if hooks else NO_GENERATORS
        return self.of_methods(owner, made, methods)

    def _of_rows(self, name: str, made: Closure | None) -> GeneratorSet:
        """The generators that a library's transform draws from, by the first row that holds for its construction."""
        found: set[str] = set()
        for row in transform_models(name, self._project.libraries):
            call = made.value if made is not None and isinstance(made.value, Call) else None
            argument = argument_reader(row.signature, call) if call is not None else lambda _: None
            truth = evaluate(row.when, row.signature, argument) if call is not None or not row.when else Truth.UNKNOWN
            if truth is Truth.FAILS:
                continue
            found |= row.draws
            if row.inner:
                found |= self._inner(made) if made is not None and call is not None else ANY_GENERATOR
            if truth is Truth.HOLDS:
                return frozenset(found)
        return frozenset(found) or ANY_GENERATOR

    def _inner(self, made: Closure) -> GeneratorSet:
        assert isinstance(made.value, Call)
        kept = [arg for arg in made.value.args if arg.keyword is None or arg.keyword in _WRAPPED_PARAMETERS]
        if any(arg.star == "**" for arg in kept):
            return ANY_GENERATOR
        later = self._value_sources.appended_to(made, _WRAPPED_PARAMETERS)
        return self._all(made._replace(value=arg.value) for arg in kept) | self._all(later)

    # --- code of the project -----------------------------------------------------------------------------------------

    def of_methods(
        self, owner: str, call: Closure | None, methods: Sequence[str], environment: Environment | None = None
    ) -> GeneratorSet:
        """The generators that functions of the project draw from, as methods of an object that ``call`` creates."""
        if not methods:
            return ANY_GENERATOR if owner else NO_GENERATORS
        if environment is None:
            environment = (
                self._value_sources.construct(call, owner).environment
                if call is not None and owner
                else Environment.of(receiver_class=owner)
            )
            environment = call.environment if call is not None and not owner else environment
        asked = (owner, tuple(methods), (call.path, call.value) if call is not None else None)
        if asked in self._in_progress:
            self._summaries.of(self._in_progress[asked], tuple)  # the current answer depends on that one
            return NO_GENERATORS  # recursion draws nothing more
        question = self._in_progress[asked] = tuple(methods), environment
        try:
            return frozenset(self._summaries.of(question, lambda: self._summarise(methods, environment)))
        finally:
            del self._in_progress[asked]

    def _summarise(self, methods: Sequence[str], environment: Environment) -> GeneratorSet:
        work = worker_trace(self._project, tuple(methods), environment.receiver_class)
        contexts = CallingContexts(self._project, work.run, methods, environment)
        names, found = self._project.resolver, set[str]()
        known: set[EventIdentity] = set()
        free: frozenset[str] = frozenset()
        remaining = [each for each in enumerate(work.run.trace_events) if each[1].event.kind in _USES]
        while remaining:
            skipped = []
            for order, trace_event in remaining:
                if _is_covered(trace_event, known, free):
                    skipped.append((order, trace_event))
                elif (seen := self._hidden_effects(work, trace_event, contexts)) is not None:
                    found.update(each for each in seen if not work.is_seeded(names, each, trace_event, order))
                    known.add(event_key(trace_event.path, trace_event.event))
            free = contexts.reached_without(known) if skipped else free
            remaining = skipped if len(skipped) < len(remaining) else []
        drawn = (
            each
            for each in work.unseeded_draws()
            if not _is_covered(each.trace_event, known, free) and contexts.is_reached(each.trace_event)
        )
        return frozenset(found) | frozenset(each.family for each in drawn)

    def _hidden_effects(
        self, work: WorkerTrace, trace_event: TraceEvent, contexts: CallingContexts
    ) -> GeneratorSet | None:
        """The generators of an event that the trace does not show; None where the trace shows all, or no call path leads to it.

        First for whatever the project passes for parameters; where that draws, for what is passed on each call path.
        """
        seen = self._event_effects(work, trace_event, contexts.scope)
        assumes = trace_event.assumed and any(map(in_project, trace_event.names))
        if not (seen or assumes):
            return seen  # whether a call path leads to it is asked last: that costs most
        if not contexts.is_reached(trace_event):
            return None
        if not trace_event.call_path:
            return seen
        found: set[str] = set()
        for environment in contexts.scopes(trace_event.function):
            one = self._event_effects(work, trace_event, environment)
            if one is None and not (assumes and self._is_no_dataset(trace_event, environment)):
                return seen
            found |= one or NO_GENERATORS
        return frozenset(found)

    def _event_effects(
        self, work: WorkerTrace, trace_event: TraceEvent, environment: Environment
    ) -> GeneratorSet | None:
        value = trace_event.event.value
        if value is None:
            return None
        if trace_event.event.kind != "call":
            return self._fetch_effects(Closure(trace_event.path, value, environment))
        assert isinstance(value, Call)
        if any(_GENERATORS.fullmatch(name) for name in trace_event.names) and self._is_existing_generator(
            work, trace_event, value, environment
        ):
            return _OWN_GENERATOR
        if self._passes_existing_generator(work, trace_event, value, environment):
            return _OWN_GENERATOR
        return self._call_effects(trace_event, Closure(trace_event.path, value, environment), value.func)

    def _call_effects(self, trace_event: TraceEvent, call: Closure, func: Expression) -> GeneratorSet | None:
        known = [
            name
            for name in trace_event.names
            if not in_project(name)
            and not _METHOD_OF_RESULT.search(name)
            and any(transform_models(without_brackets(name)))
        ]
        objects = [name for name in trace_event.names if in_project(name) and is_instance(name)]
        if known and not any(map(is_instance, known)):
            return NO_GENERATORS.union(*(self._of_rows(without_brackets(name), call) for name in known))
        if known or objects or ((not trace_event.names or trace_event.assumed) and _calls_variable(func)):
            drawn = self.draws(call._replace(value=func))
            return None if drawn == ANY_GENERATOR and trace_event.names and not known else drawn
        return None

    def _fetch_effects(self, holder: Closure) -> GeneratorSet | None:
        """Samples that are fetched from another dataset: ``self.dataset[index]``."""
        if not self._unbound.is_one(holder):
            return self._of_dataset(holder)
        key = context_insensitive_key(holder)
        found: GeneratorSet | None = self._no_datasets.run(
            key, lambda: ((found := self._of_dataset(holder)), found is None), tells=True
        )
        return found

    def _of_dataset(self, holder: Closure) -> GeneratorSet | None:
        made = [
            each
            for each in self._value_sources.of(holder, limits.MAX_INDEXED_STEPS)
            if isinstance(each.value, Call)
            and any(self._is_dataset(name) for name in self._project.names(each.path, each.value.func))
        ]
        return self._datasets(made) if made else None

    def _is_no_dataset(self, trace_event: TraceEvent, environment: Environment) -> bool:
        """Whether what is indexed or iterated is known, and no object of the project."""
        if trace_event.event.kind == "call" or trace_event.event.value is None:
            return False
        for each in self._value_sources.of(
            Closure(trace_event.path, trace_event.event.value, environment), limits.MAX_INDEXED_STEPS
        ):
            names = self._project.names(each.path, each.value.func) if isinstance(each.value, Call) else ()
            if not isinstance(each.value, _DISPLAYS) and not (names and not any(map(in_project, names))):
                return False
        return True

    def _is_dataset(self, name: str) -> bool:
        if self._project.resolver.classes(name):
            methods = self._project.resolver.methods(name, "__getitem__")
            return any(in_project(each) or not _RECORDS.fullmatch(class_of(qualifier_of(each))) for each in methods)
        known = dataset_model(without_brackets(name)) is not None or name in loader_names()
        return known and not name.endswith(_ARRAYS)

    # --- generators that exist before the workers --------------------------------------------------------------------

    def _is_existing_generator(
        self, work: WorkerTrace, trace_event: TraceEvent, call: Call, environment: Environment
    ) -> bool:
        """Whether a generator whose method is called was created before the workers' code runs."""
        match call.func:
            case Ref(path=(*before, word)) as func if word not in ("seed", "manual_seed", "set_state"):
                return self._is_made_before(
                    work, Closure(trace_event.path, func._replace(path=tuple(before)), environment)
                )
        return False

    def _passes_existing_generator(
        self, work: WorkerTrace, trace_event: TraceEvent, call: Call, environment: Environment
    ) -> bool:
        """Whether an external function draws from a generator argument that was created before."""
        if not any(name.startswith(("torch.", "scipy.", "numpy.")) for name in trace_event.names):
            return False
        given = [arg.value for arg in call.args if arg.keyword in ("generator", "random_state", "rng")]
        return any(self._is_made_before(work, Closure(trace_event.path, each, environment)) for each in given)

    def _is_made_before(self, work: WorkerTrace, generator: Closure) -> bool:
        for each in self._value_sources.of(generator):
            if isinstance(each.value, Call):
                names = self._project.names(each.path, each.value.func)
                if any(_GENERATORS.fullmatch(instance_value(name)) for name in names):
                    around = functions_around(self._project.files[each.path], each.value.start)
                    return all(each.path + function.name not in work.run.functions for function in around)
        return False


def _is_covered(trace_event: TraceEvent, known: set[EventIdentity], free: frozenset[str]) -> bool:
    """Whether the generators of an event are known, or those of an event on its call path where nothing else enters the function."""
    if event_key(trace_event.path, trace_event.event) in known:
        return True
    return trace_event.function not in free and any(
        event_key(step.path, step.event) in known for step in trace_event.call_path
    )


def _calls_variable(func: Expression) -> bool:
    """Whether a variable, an attribute of ``self``, or an element of one is called."""
    return bool(called_variable(func)) or (isinstance(func, Subscript) and bool(called_variable(func.value)))


def _is_named_transform(value: Expression) -> bool:
    word = (value.path or (simple_name(value.roots[0]),))[-1] if isinstance(value, Ref) else ""
    return bool(_TRANSFORM_WORD.fullmatch(word))
