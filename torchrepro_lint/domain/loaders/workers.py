"""Worker initialisation: the functions that are passed as ``worker_init_fn``, and the provenance of their seeds.

Such a seed is bad where it changes between runs or is the same in every worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint import limits
from torchrepro_lint.catalogue.rows import NUMPY
from torchrepro_lint.dataflow.arguments import is_partial
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.domain.loaders.constructions import Loader, loader_kind, loader_paths, loaders
from torchrepro_lint.domain.programs import effects_in, worker_trace
from torchrepro_lint.domain.rng.seeders import nondeterministic_source, passed_seed, seeds_from_entropy
from torchrepro_lint.domain.rng.seeding import seeding_words
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.binding import receiving_parameters, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Constant,
    Lambda,
    Operation,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    enclosing_function,
    in_project,
    is_instance,
    local_symbol,
    path_of,
    simple_name,
    unbound_method,
)
from torchrepro_lint.syntax.scopes import functions_around
from torchrepro_lint.syntax.visitor import is_none, subexpressions
from torchrepro_lint.trace.contexts import CallingContexts
from torchrepro_lint.trace.traces import Traces

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Seeder
    from torchrepro_lint.trace.events import TraceEvent


WORKER_INIT = "worker_init_fn"
_WORKER_INIT_POSITION = 10


class WorkerFunction(Record, frozen=True):
    """A function of the project that workers run, its argument environment, and the parameters that get the worker's
    number.
    """

    function: str
    environment: Environment
    worker_ids: frozenset[str]


@query()
def worker_function_names(project: Traces) -> frozenset[str]:
    """The functions of the project that are passed as ``worker_init_fn``."""
    return frozenset(each.function for each in _worker_functions(project))


def _worker_functions(project: Traces) -> Iterator[WorkerFunction]:
    """Each function that is passed to a loader that may have workers, in the order of files and text."""
    seen = set[WorkerFunction]()
    for path in _passing_files(project):
        for given in _worker_init_arguments(project, path):
            for each in project.value_sources.of(given):
                for found in _resolve_callable(project, each):
                    if found not in seen:
                        seen.add(found)
                        yield found


@query()
def worker_function_words(project: Traces) -> frozenset[str]:
    """The identifiers of files that may pass functions to loaders' workers: a worker function or its class is among
    them.
    """
    summaries = [project.files[path].summary for path in _passing_files(project)]
    return frozenset(word for each in summaries for word in (*each.values, *each.calls))


def _passing_files(project: Traces) -> tuple[str, ...]:
    """The files that may pass functions to loaders' workers, sorted."""
    modules = project.resolver.modules
    modules.reads.record_word("keywords", WORKER_INIT)
    passing = {path for path, each in modules.summaries() if WORKER_INIT in each.keywords}
    return tuple(sorted(passing.union(loader_paths(project)))) if passing else ()


def _worker_init_arguments(project: Traces, path: str) -> Iterator[Closure]:
    if not any(_may_pass(site.call) for site in project.calls(path)):
        return
    known = set[Call]()
    for loader in loaders(project, path):
        known.add(loader.site.call)
        if loader.has_workers or not loader.arguments.complete:
            yield from loader.arguments.named.get(WORKER_INIT, ())
    for site in project.calls(path):
        if site.call not in known and not any(in_project(name) or loader_kind(name) for name in site.names):
            yield from (Closure(path, arg.value) for arg in site.call.args if arg.keyword == WORKER_INIT)


def _may_pass(call: Call) -> bool:
    return len(call.args) > _WORKER_INIT_POSITION or any(arg.keyword == WORKER_INIT or arg.star for arg in call.args)


def _resolve_callable(
    project: Traces, each: Closure, positional: int = 0, bound: frozenset[str] = frozenset()
) -> Iterator[WorkerFunction]:
    """A function, lambda or method; for a partial or a callable object, the function that it runs."""
    value = each.value
    if isinstance(value, Call) and is_partial(project.value_sources, each):
        first, *rest = value.args
        words = frozenset(arg.keyword for arg in rest if arg.keyword)
        count = sum(arg.keyword is None and not arg.star for arg in rest)
        for inner in project.value_sources.of(each._replace(value=first.value)):
            for found in _resolve_callable(project, inner, count + positional, words | bound):
                yield found._replace(environment=_bind_partial(project, found, each, value))
        return
    names = project.names(each.path, value.func if isinstance(value, Call) else value)
    if isinstance(value, Lambda):
        names = (each.path + value.function,)
    for name in names:
        environment = each.environment
        targets = [name] if project.resolver.functions(name) and not isinstance(value, Call) else []
        if isinstance(value, Call) and project.resolver.classes(name):
            targets = list(project.resolver.call_methods(name))
            environment = project.value_sources.construct(each, name).environment
        elif isinstance(value, Ref) and in_project(name) and is_instance(name):
            targets = list(project.resolver.call_methods(name))
        for target in targets:
            ids, given = _worker_parameters(project, target, positional, bound)
            yield WorkerFunction(target, environment.with_arguments({**given, **environment.arguments}), ids)


def leaves_numpy(project: Traces, loader: Loader) -> bool:
    """Whether all worker functions of a loader are known, with all that they call, and none of them seeds NumPy."""
    sources = (
        each for given in loader.arguments.named.get(WORKER_INIT, ()) for each in project.value_sources.of(given)
    )
    resolved = [[*_resolve_callable(project, each)] for each in sources]
    effects = [effects_in(project, each.function) for found in resolved for each in found]
    return all(resolved) and not any(
        each.unknown_seeder
        or NUMPY.key in (*each.seeds, *each.entropic)
        or any(one.event.kind == "call" and _is_unknown(one.names) for one in each.run.trace_events)
        for each in effects
    )


def _is_unknown(names: tuple[str, ...]) -> bool:
    """Whether a call may seed anything, such as one of the dataset that a worker asks for."""
    return not names or any("get_worker_info()." in each for each in names)


def _bind_partial(project: Traces, found: WorkerFunction, each: Closure, partial: Call) -> Environment:
    """The arguments that a partial binds: by name, and in order."""
    given = dict(found.environment.arguments)
    for function in project.resolver.functions(found.function):
        rest, variables = partial._replace(args=partial.args[1:]), path_of(found.function) + function.name
        for arg, param in receiving_parameters(function, rest, bound=takes_receiver(function)):
            if not param.kind.startswith("*"):
                given[local_symbol(variables, param.name)] = (each._replace(value=arg.value),)
    return found.environment.with_arguments(given)


def _worker_parameters(
    project: Traces, target: str, positional: int, bound: frozenset[str]
) -> tuple[frozenset[str], dict[str, tuple[Closure, ...]]]:
    """The parameter that gets the worker's number, the first without an argument, and the others' defaults: nothing else is passed."""
    ids, defaults, path = set[str](), dict[str, tuple[Closure, ...]](), path_of(target)
    for function in project.resolver.functions(target):
        params = [each for each in function.params[takes_receiver(function) :] if each.name not in bound][positional:]
        free = {local_symbol(path + function.name, each.name): each.default for each in params}
        ids.update([*free][:1])
        defaults.update({name: (Closure(path, value),) for name, value in [*free.items()][1:] if value is not None})
    return frozenset(ids), defaults


_FAMILIES = frozenset({"torch", "numpy", "python"})
# Functions that return the same for the same arguments.
_PURE = frozenset(
    f"builtins.{word}" for word in ("int", "abs", "min", "max", "round", "str", "len", "float", "getattr", "pow")
)
_SETTINGS = frozenset({"os.getenv", "os.environ.get", "numpy.uint32", "numpy.int64", "numpy.int32", "numpy.uint64"})


class WorkerSeed(Record, frozen=True):
    """A call that seeds workers badly: ``name`` is the seeder, ``source`` what makes the seed change between runs
    (empty: all workers get the same one).

    ``direct`` is false where the call is of a helper of the project that seeds; ``passed`` is false where not all seeds
    there come from the call's arguments.
    """

    path: str
    call: Call
    name: str
    source: str
    direct: bool
    passed: bool


class WorkerSeedSpan(NamedTuple):
    """A ``WorkerSeed`` with the offsets of the call instead of the call, so that it can be stored."""

    path: str
    start: int
    end: int
    name: str
    source: str
    direct: bool
    passed: bool


def worker_seeds(project: Traces, path: str) -> Iterator[WorkerSeed]:
    """The bad worker seeds in a file."""
    for each in map(WorkerSeedSpan._make, worker_seed_spans(project)):
        if each.path == path:
            yield from (
                WorkerSeed(path, called.call, each.name, each.source, each.direct, each.passed)
                for called in project.calls_between(path, each.start, each.end)
            )


@query()
def worker_seed_spans(project: Traces) -> tuple[WorkerSeedSpan, ...]:
    """The bad worker seeds of the project by their places, one for each call, in the order of the worker functions."""
    return tuple(
        WorkerSeedSpan(each.path, each.call.start, each.call.end, each.name, each.source, each.direct, each.passed)
        for each in _worker_seeds(project)
    )


def _worker_seeds(project: Traces) -> Iterable[WorkerSeed]:
    seeds: dict[tuple[str, Call], WorkerSeed] = {}
    for worker in _worker_functions(project):
        provenance = _SeedProvenance(project, worker)
        for trace_event in worker_trace(project, (worker.function,)).run.trace_events:
            call = trace_event.event.value
            if trace_event.event.kind != "call" or not isinstance(call, Call):
                continue
            for name in trace_event.names:
                seeder = project.catalogue.seeder(unbound_method(name)) if not in_project(name) else None
                if seeder is None or not _FAMILIES.intersection(seeder.families):
                    continue
                found = provenance.fault(trace_event, call, name, seeder)
                if found is not None:
                    known = seeds.setdefault((found.path, found.call), found)
                    seeds[found.path, found.call] = known._replace(passed=known.passed and found.passed)
    return seeds.values()


def may_seed_workers(project: Traces, path: str) -> bool:
    """Whether a file may seed workers: a prefilter by identifiers.

    The file calls a seeder, or has a worker function that calls a helper of another file.
    """
    summary = project.files[path].summary
    words = seeding_words(project)
    if not words.isdisjoint(summary.calls) or not words.isdisjoint(summary.values):
        return True
    names = (*summary.functions, *(name for name, _ in summary.classes))
    return WORKER_INIT in summary.keywords or not worker_function_words(project).isdisjoint(
        simple_name(name) for name in names
    )


class _SeedProvenance:
    """The provenance of the seeds that one worker function sets."""

    def __init__(self, project: Traces, worker: WorkerFunction) -> None:
        self._project = project
        self._worker = worker
        run = worker_trace(project, (worker.function,)).run
        self._functions = run.functions
        self._contexts = CallingContexts(project, run, (worker.function,), worker.environment)
        # Whether torch.initial_seed() is the same in all workers, after they were given the same seed.
        self._torch_seed_is_same = False

    def fault(self, trace_event: TraceEvent, call: Call, name: str, seeder: Seeder) -> WorkerSeed | None:
        """The fault of a seed; None where none is known."""
        # The first call path is the one that is told.
        environment = next(iter(self._contexts.scopes(trace_event.function)), self._worker.environment)
        value = passed_seed(seeder, call)
        seed = Closure(trace_event.path, value, environment) if value is not None else None
        source = self._source(trace_event, call, seeder, seed)
        direct = not trace_event.call_path
        if source:
            return WorkerSeed(trace_event.path, call, name, source, direct, passed=True)
        if seed is None or not self._is_worker_independent(seed, 0):
            return None
        if "torch" in seeder.families:
            self._torch_seed_is_same = True
        if direct:
            return WorkerSeed(trace_event.path, call, name, "", direct, passed=True)
        first = trace_event.call_path[0]
        outer = first.event.value
        if not isinstance(outer, Call):
            return None
        passed = self._comes_from(seed, Closure(first.path, outer), 0)
        return WorkerSeed(first.path, outer, name, "", direct, passed)

    def _comes_from(self, seed: Closure, call: Closure, depth: int) -> bool:
        """Whether a value is computed from a call's arguments."""
        value, outer = seed.value, call.value
        if seed.path == call.path and outer.start < value.start and value.end <= outer.end:
            return True
        return depth < limits.MAX_WORKER_SEED_DEPTH and any(
            behind.place != (seed.path, each) and self._comes_from(behind, call, depth + 1)
            for each in subexpressions(value)
            if isinstance(each, Ref)
            for behind in self._project.value_sources.of(seed._replace(value=each))
        )

    def _source(self, trace_event: TraceEvent, call: Call, seeder: Seeder, seed: Closure | None) -> str:
        """The nondeterministic source of a seed; ``entropy`` where the seed is missing or None."""
        values = [each.value for each in self._project.value_sources.of(seed)] if seed is not None else []
        absent = bool(values) and all(map(is_none, values)) and seeder.none == "entropy"
        if seeds_from_entropy(seeder, call) or absent:
            return "entropy"
        resolver = self._project.resolver
        return (seed is not None and nondeterministic_source(resolver, trace_event.path, seed.value)) or ""

    def _is_worker_independent(self, seed: Closure, depth: int) -> bool:
        """Whether a value is known to be the same in all workers."""
        if depth > limits.MAX_WORKER_SEED_DEPTH:
            return False
        match seed.value:
            case Constant(value=value):
                return value is not None
            case Operation(operands=parts) | Collection(items=parts):
                given = (seed._replace(value=each) for each in parts if each is not None)
                return all(self._is_worker_independent(each, depth + 1) for each in given)
            case Subscript(value=value, indices=indices):
                return all(
                    self._is_worker_independent(seed._replace(value=each), depth + 1) for each in (value, *indices)
                )
            case Attribute(value=value):
                return self._is_worker_independent(seed._replace(value=value), depth + 1)
            case Call():
                return self._call_is_worker_independent(seed, seed.value, depth)
            case Ref():
                return self._reference_is_worker_independent(seed, seed.value, depth)
        return False

    def _call_is_worker_independent(self, seed: Closure, call: Call, depth: int) -> bool:
        names = self._project.names(seed.path, call.func)
        if not self._runs_in_worker(seed.path, call.start):
            return True  # made before the workers are
        if self._torch_seed_is_same and set(names) & {"torch.initial_seed", "torch.random.initial_seed"}:
            return True
        if names and set(names) <= _PURE | _SETTINGS:
            return all(self._is_worker_independent(seed._replace(value=arg.value), depth + 1) for arg in call.args)
        behind = [each for each in self._project.value_sources.of(seed) if each.place != seed.place]
        return bool(behind) and all(self._is_worker_independent(each, depth + 1) for each in behind)

    def _reference_is_worker_independent(self, seed: Closure, ref: Ref, depth: int) -> bool:
        if not any(self._is_local(seed.path, root) for root in ref.roots):
            return True  # a variable of the module, or of the function around
        if self._worker.worker_ids.intersection(seed.path + root for root in ref.roots):
            return False
        base = seed._replace(value=ref._replace(path=()))
        if self._project.resolver.starts_at_receiver(seed.path, ref):
            return True
        behind = [each for each in self._project.value_sources.of(base) if each.place != base.place]
        return bool(behind) and all(
            (not isinstance(each.value, Ref) and self._is_worker_independent(each, depth + 1))
            or (
                isinstance(each.value, Ref)
                and not self._is_number(each)
                and not any(self._is_local(each.path, r) for r in each.value.roots)
            )
            for each in behind
        )

    def _is_number(self, each: Closure) -> bool:
        return isinstance(each.value, Ref) and bool(
            self._worker.worker_ids.intersection(each.path + root for root in each.value.roots)
        )

    def _is_local(self, path: str, root: str) -> bool:
        """Whether a variable belongs to a function that the workers run."""
        return enclosing_function(path + root) in self._functions

    def _runs_in_worker(self, path: str, offset: int) -> bool:
        around = functions_around(self._project.files[path], offset)
        return any(path + each.name in self._functions for each in around)
