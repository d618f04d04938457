"""Path feasibility: whether some call path reaches a draw, or the arguments on each path rule out a branch on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.dataflow.arguments import read_arguments
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.dataflow.feasibility import test_of_flags
from torchrepro_lint.domain.loaders.constructions import loader_kind, may_shuffle
from torchrepro_lint.domain.loaders.liveness import draws_later, is_dead, loader_modes
from torchrepro_lint.query.memo_tables import LruTable
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Lambda, Operation, Ref
from torchrepro_lint.syntax.qualified_names import in_project, is_self, path_of, simple_name
from torchrepro_lint.syntax.scopes import evaluation_start
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.call_paths import is_another_picked
from torchrepro_lint.trace.contexts import CallEdgeContexts
from torchrepro_lint.trace.dead_initialisation import loads_on_condition
from torchrepro_lint.trace.events import tested_references
from torchrepro_lint.trace.library_models import calls_method
from torchrepro_lint.trace.traces import may_change

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.domain.rng.effects import Draw
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.control_flow import Event
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.events import CallEdge, TraceEvent


# Methods of a sampler that the main process runs, before the workers.
_SAMPLER_METHODS = frozenset({"__iter__", "__next__", "__len__"})
# The analyses of so many traces are kept from one rule to the next.
_CACHED_TRACES = 8


def first_feasible_draw(project: ValueFlow, run: Trace, draws: Iterable[Draw]) -> Draw | None:
    """The first draw that some call path reaches, as far as literal arguments and defaults tell.

    A call that passes unknown arguments may turn on options that it does not name; among the first draws, one that
    needs no such option is preferred.
    """

    def reached(draw: Draw, likely: bool) -> bool:
        # Torch's draws do not count where the weights that they are for are replaced.
        return is_feasible(project, run, draw.trace_event, likely=likely, weights=draw.family == "torch")

    found = (each for each in draws if reached(each, likely=False))
    if (first := next(found, None)) is None:
        return None
    among = chain((first,), islice(found, limits.MAX_COMPARED_DRAWS))
    return next((each for each in among if reached(each, likely=True)), first)


def is_reachable(project: ValueFlow, run: Trace, trace_event: TraceEvent) -> bool:
    """Whether some call path leads to an event, as far as literal arguments and defaults tell.

    Only a test of a parameter of the event's own function is asked, or of an attribute of ``self`` that only its methods set: it is what
    such arguments decide.
    """
    if not _hangs_on_parameter(project, run, trace_event):
        return True
    return _analysis(project, run, trace_event, calls=limits.MAX_NAMED_CALLS, depth=limits.MAX_NAMED_DEPTH).is_feasible(
        trace_event.function, trace_event.event, 0
    )


def _hangs_on_parameter(project: ValueFlow, run: Trace, trace_event: TraceEvent) -> bool:
    asked = [*tested_references(trace_event.event.guards)]
    plain = (trace_event.path + root for each in asked if not each.path for root in each.roots)
    if any(map(project.resolver.parameter, plain)):
        return True
    owner = project.resolver.owner(trace_event.function)
    words = (
        {each.path[0] for each in asked if len(each.path) == 1 and any(map(is_self, each.roots))} if owner else set()
    )
    return any(not may_change(project, owner, word, run.paths) for word in sorted(words))


def is_feasible(
    project: ValueFlow, run: Trace, trace_event: TraceEvent, *, likely: bool = False, weights: bool = False
) -> bool:
    """Whether some call path reaches an event; with ``likely`` a parameter whose argument is unknown has its default."""
    found = _analysis(project, run, trace_event, likely=likely, weights=weights)
    return found.is_feasible(trace_event.function, trace_event.event, 0)


def is_path_feasible(project: ValueFlow, run: Trace, trace_event: TraceEvent) -> bool:
    """Whether the very call path of an event leads to it: another one may be taken later, with other arguments."""
    return _analysis(project, run, trace_event).leads_to(trace_event)


def _analysis(
    project: ValueFlow,
    run: Trace,
    trace_event: TraceEvent,
    *,
    likely: bool = False,
    weights: bool = False,
    calls: int = limits.MAX_FEASIBLE_CALLS,
    depth: int = limits.MAX_FEASIBLE_DEPTH,
) -> PathFeasibility:
    """The analysis of an event's function: several rules ask about one trace, and about many draws of one function."""
    caches = project.part(_feasibility_caches)
    cache: _FeasibilityCache | None = caches.get(run)
    if cache is None:
        cache = caches[run] = {}
    key = trace_event.function, trace_event.mode, likely, weights, calls
    if key not in cache:
        cache[key] = PathFeasibility(
            project, run, trace_event.mode, likely=likely, weights=weights, calls=calls, depth=depth
        )
    return cache[key]


# The analyses of one trace, by function, mode, likeliness, whether draws are for weights, and limit.
_FeasibilityCache: TypeAlias = "dict[tuple[str, str, bool, bool, int], PathFeasibility]"


def _feasibility_caches(_: ProgramIndex) -> LruTable[Trace, _FeasibilityCache]:
    """The analyses of the traces that were asked about last."""
    return LruTable(_CACHED_TRACES)


class PathFeasibility:
    """Path feasibility over all calling contexts of a trace, within limits; beyond those, anything may be passed."""

    def __init__(
        self,
        project: ValueFlow,
        run: Trace,
        mode: str,
        *,
        likely: bool,
        weights: bool = False,
        calls: int = limits.MAX_FEASIBLE_CALLS,
        depth: int = limits.MAX_FEASIBLE_DEPTH,
    ) -> None:
        self._project, self._run, self._mode, self._weights = project, run, mode, weights
        self._budget, self._most_depth = calls, depth
        self._call_edges = CallEdgeContexts(project, run, likely=likely)
        # By function, the environments found so far, and the iterator over the others.
        self._environments_found: dict[tuple[str, bool], tuple[list[Environment], Iterator[Environment]]] = {}
        # The loaders asked for so far, and what draws with them, each with whether no samples are taken.
        self._dead: dict[tuple[str, Call], bool] = {}
        # What was read so far: the environments found are used again, so each answer depends on all of it.
        self._dependencies = 0

    def is_feasible(self, function: str, event: Event, depth: int) -> bool:
        """Whether a function reaches an event in some calling context, and the event may draw there."""
        reads = self._project.database.reads
        with reads.apart() as total:
            try:
                found = self._environments_at(function, event, depth)
                return any(self._may_draw(path_of(function), event, environment) for environment in found)
            finally:
                self._dependencies |= total()
                reads.dependencies = self._dependencies

    def leads_to(self, trace_event: TraceEvent) -> bool:
        """Whether the arguments on the call path of an event let each of its calls and itself run."""
        found, caller = [Environment.of()], ""
        for step in trace_event.call_path:
            at, definitions = caller or step.path, self._project.resolver.functions(step.into)
            ways = [
                each
                for each in found
                if self._runs(at, step.event, each)
                and not is_another_picked(self._project, path_of(at), step.event.value, each, step.into)
            ]
            found, caller = [Environment.of()] if ways else [], step.into
            if len(definitions) == 1 and step.into not in self._run.cycles:
                scopes = (self._call_edges.scopes(caller, definitions[0], at, step.event, each) for each in ways)
                some = list(islice(chain.from_iterable(scopes), limits.MAX_CONTEXTS + 1))
                found = some if 0 < len(some) <= limits.MAX_CONTEXTS else found
        return any(self._runs(caller or trace_event.path, trace_event.event, each) for each in found)

    def _may_draw(self, path: str, event: Event, environment: Environment) -> bool:
        """Whether the iterated or created value is no loader, or may be one that shuffles."""
        if event.value is None or event.kind not in ("iterate", "call"):
            return True
        used = Closure(path, event.value, environment)
        if event.kind == "call":
            return not self._is_on_other(used) and self._may_shuffle(used) and not self._is_dead(path, event)
        return not (behind := self._project.value_sources.of(used)) or any(map(self._may_shuffle, behind))

    def _is_dead(self, path: str, event: Event) -> bool:
        """Whether an event only makes a loader, or what draws where a loader takes samples, and the run takes none."""
        made = event.value
        if event.kind != "call" or not isinstance(made, Call):
            return False
        if (path, made) not in self._dead:
            later = draws_later(self._project.names(path, made.func))
            self._dead[path, made] = later and is_dead(self._project, self._run, path, made)
        return self._dead[path, made]

    def _is_on_other(self, used: Closure) -> bool:
        """Whether a call is on a parameter for which another object is passed than its default: ``rng=random``."""
        func = used.value.func if isinstance(used.value, Call) else None
        if not isinstance(func, Ref) or not func.path:
            return False
        name = used.path + func.roots[0]
        given = used.environment.arguments.get(name, ())
        found = self._project.resolver.parameter(name) if given else None
        default = found.param.default if found is not None else None
        if default is None or any(each.value == default for each in given):
            return False
        passed = {known for each in given for known in self._names(each, each.value)}
        return bool(passed) and passed.isdisjoint(self._project.names(used.path, default))

    def _may_shuffle(self, made: Closure) -> bool:
        names = self._names(made, made.value.func) if isinstance(made.value, Call) else ()
        kind = next(filter(None, map(loader_kind, names)), None)
        if kind is None:
            return True
        passed = read_arguments(self._project.value_sources, made, kind.parameters)
        return not passed.complete or may_shuffle(self._project.value_sources, kind, passed)

    def _environments_at(self, function: str, event: Event, depth: int, *, made: bool = False) -> Iterator[Environment]:
        """The argument environments in which a function reaches one of its events, which with ``made`` only makes what runs later."""
        yield from (
            environment
            for environment in self._environments(function, depth, made=made)
            if self._runs(function, event, environment)
            and not (self._weights and self._is_replaced(function, event, environment))
        )

    def _is_replaced(self, function: str, event: Event, environment: Environment) -> bool:
        """Whether an event makes weights that are loaded later, in this environment: ``if pretrained: net.load_state_dict(...)``."""
        path = path_of(function)
        ways = loads_on_condition(self._project.resolver, function) if environment.arguments or self._run.flags else {}
        return any(
            all(self._truth(Closure(path, each.value, environment)) is (each.kind == "if") for each in guards)
            for guards in ways.get(event.statement, ())
            if guards and all(each.kind in ("if", "else") for each in guards)
        )

    def _runs(self, function: str, event: Event, environment: Environment) -> bool:
        found = self._project.resolver.functions(function)
        offset = evaluation_start(event.value or event.statement)
        return len(found) != 1 or self._project.value_sources.is_feasible(
            path_of(function), found[0], offset, environment
        )

    def _truth(self, test: Closure) -> bool | None:
        known = test_of_flags(self._run.flags, test.value)
        return self._project.value_sources.truth(test) if known is None else known

    def _environments(self, function: str, depth: int, *, made: bool) -> Iterator[Environment]:
        """The argument environments of a function, one for each way to enter it; for recursion, an empty one."""
        component = self._run.cycles.get(function, frozenset())
        yield from self._entering_component(function, component, depth, made=made)
        if component and self._continues_inside(component, depth):
            yield Environment.of()

    def _entering_component(
        self, function: str, component: frozenset[str], depth: int, *, made: bool = False
    ) -> Iterator[Environment]:
        """The environments from outside a strongly connected component, computed once and on demand."""
        key = function, made
        if key not in self._environments_found:
            self._environments_found[key] = [], self._find_environments(function, component, depth, made=made)
        found, rest = self._environments_found[key]
        index = 0
        while True:
            if index == len(found):
                if (new := next(rest, None)) is None:
                    return
                found.append(new)
            yield found[index]
            index += 1

    def _find_environments(
        self, function: str, component: frozenset[str], depth: int, *, made: bool
    ) -> Iterator[Environment]:
        entries = self._run.call_edges.get(function, ())
        definitions = self._project.resolver.functions(function)
        if not entries or depth >= self._most_depth or len(definitions) != 1 or function in self._run.starts:
            yield Environment.of()
            return
        for each in entries:
            caller, event = each.caller, each.event
            if caller in component or self._is_in_other_mode(each, made=made) or self._is_dead(path_of(caller), event):
                continue
            self._budget -= 1
            later = made or self._runs_later(each)
            for index, outer in enumerate(self._environments_at(caller, event, depth + 1, made=later)):
                self._budget -= index > 0
                if self._budget < 0:
                    break
                if self._is_not_picked(function, caller, event, outer):
                    continue
                yield from self._call_edges.scopes(function, definitions[0], caller, event, outer)
            if self._budget < 0:
                yield Environment.of()
                return

    def _is_not_picked(self, function: str, caller: str, event: Event, outer: Environment) -> bool:
        """Whether the calls of an event pass the function only as one of several, of which a test picks another
        (``noisy if train else plain``), or call a parameter for which something else is passed.
        """
        if event.value is None:
            return False
        used = Closure(path_of(caller), event.value, outer)
        if event.kind == "call" and self._calls_another(function, used):
            return True
        calls = (used,) if event.kind == "call" else self._project.value_sources.of(used)
        given = [
            call._replace(value=arg.value)
            for call in calls
            if isinstance(call.value, Call)
            for arg in call.value.args
            if self._is_named(function, call._replace(value=arg.value))
        ]
        return bool(given) and not any(self._is_named(function, one) for each in given for one in self._picked(each))

    def _calls_another(self, function: str, used: Closure) -> bool:
        """Whether a call runs a parameter for which only other functions or constants are passed: ``default(x, 1)``."""
        func = used.value.func if isinstance(used.value, Call) else None
        if not isinstance(func, Ref) or func.path:
            return False
        given = used.environment.arguments
        passed = (
            self._project.value_sources.of(used._replace(value=func)) if given.get(used.path + func.roots[0]) else ()
        )
        return bool(passed) and all(self._is_another(function, each) for each in passed)

    def _is_another(self, function: str, value: Closure) -> bool:
        match value.value:
            case Constant():
                return True
            case Lambda(function=name):
                return function != value.path + name
            case Ref():
                names = self._names(value, value.value)
                functions = all(self._project.resolver.functions(name) for name in names if in_project(name))
                return bool(names) and functions and function not in names
        return False

    def _picked(self, given: Closure) -> Iterable[Closure]:
        return self._project.value_sources.of(given) if isinstance(given.value, Operation) else (given,)

    def _is_named(self, function: str, value: Closure) -> bool:
        return function in self._names(value, value.value)

    def _continues_inside(self, component: frozenset[str], depth: int) -> bool:
        """Whether an environment from outside a strongly connected component continues inside it."""
        ways = (self._continuing_in_component(function, component, depth) for function in sorted(component))
        return any(True for way in ways for _ in way)

    def _continuing_in_component(self, function: str, component: frozenset[str], depth: int) -> Iterator[Environment]:
        definitions = self._project.resolver.functions(function)
        for each in self._run.call_edges.get(function, ()):
            caller, event = each.caller, each.event
            if caller not in component or self._is_in_other_mode(each):
                continue
            for outer in self._entering_component(caller, component, depth):
                if len(definitions) != 1:
                    yield Environment.of()
                elif self._runs(caller, event, outer):
                    yield from self._call_edges.scopes(function, definitions[0], caller, event, outer)

    def _runs_later(self, edge: CallEdge) -> bool:
        """Whether the event of an edge only makes the object whose method runs later: ``nn.ModuleList(Block() for _ in range(3))``."""
        value = edge.event.value
        return not edge.mode and isinstance(value, Call) and not self._is_called(edge.function, edge.caller, value)

    def _is_in_other_mode(self, edge: CallEdge, *, made: bool = False) -> bool:
        """Whether a call only makes weights that are loaded afterwards, and the draw is sought elsewhere; or its loader fetches in
        workers, and the draw is sought in the main process, or the reverse.
        """
        function, caller, event = edge.function, edge.caller, edge.event
        if edge.mode == "loaded" and self._mode != "loaded" and not made:
            return True
        if event.value is None or self._mode not in ("", "worker") or self._is_called(function, caller, event.value):
            return False
        modes = loader_modes(self._project, path_of(caller), event.value)
        orders = not self._mode and simple_name(function) in _SAMPLER_METHODS and "orders" in modes
        return not orders and modes - {"orders"} == {self._mode != "worker"}

    def _is_called(self, function: str, caller: str, value: Expression) -> bool:
        """Whether an expression calls the function, or a framework does there; and not a loader that the call is about."""
        if not isinstance(value, Call):
            return False
        word = simple_name(function)
        names = self._names(Closure(path_of(caller), value), value.func)
        return last_identifier(value.func) == word or any(map(in_project, names)) or calls_method(names, word)

    def _names(self, closure: Closure, called: Expression) -> tuple[str, ...]:
        return self._project.names(closure.path, called)
