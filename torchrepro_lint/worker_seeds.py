"""Seeds in worker functions that change from run to run, or are the same in every worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.dataflow.arguments import bind
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.entropy import changing_source
from torchrepro_lint.seeding import from_entropy, seed_given
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Constant, Expression, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import is_none, within
from torchrepro_lint.worker_functions import WORD, WorkerFunction, handed_words, worker_functions

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.rows import Seeder
    from torchrepro_lint.loader_queries import LoaderQueries
    from torchrepro_lint.trace.trace import Happening

_FAMILIES = frozenset({"torch", "numpy", "python"})
# What gives the same for the same arguments.
_PURE = frozenset(
    f"builtins.{word}" for word in ("int", "abs", "min", "max", "round", "str", "len", "float", "getattr", "pow")
)
_SETTINGS = frozenset({"os.getenv", "os.environ.get", "numpy.uint32", "numpy.int64", "numpy.int32", "numpy.uint64"})
_MOST = 12


class WorkerSeed(NamedTuple):
    """A call of a file that seeds workers badly: ``name`` is the seeder, ``source`` what makes the seed change from run to run
    (empty: all workers get the same one). ``direct`` is false where the call is of a helper of the project that seeds, and
    ``passed`` where not all seeds there come from what the call passes.
    """

    path: str
    call: Call
    name: str
    source: str
    direct: bool
    passed: bool


class WorkerSeedPlace(NamedTuple):
    """The same with the offsets of the call for the call itself."""

    path: str
    start: int
    end: int
    name: str
    source: str
    direct: bool
    passed: bool


def worker_seeds(project: LoaderQueries, catalogue: Catalogue) -> Iterator[WorkerSeedPlace]:
    """One for each call, in the order of the worker functions."""
    for each in _worker_seeds(project, catalogue):
        start, end = each.call.start, each.call.end
        yield WorkerSeedPlace(each.path, start, end, each.name, each.source, each.direct, each.passed)


def _worker_seeds(project: LoaderQueries, catalogue: Catalogue) -> Iterable[WorkerSeed]:
    seeds: dict[int, WorkerSeed] = {}
    for worker in worker_functions(project):
        reader = _Reader(project, worker)
        for happening in project.work_of((worker.function,)).run.happenings:
            call = happening.event.value
            if happening.event.kind != "call" or not isinstance(call, Call):
                continue
            for name in happening.names:
                seeder = catalogue.seeder(name.replace("().", ".")) if ":" not in name else None
                if seeder is None or not _FAMILIES.intersection(seeder.families):
                    continue
                found = reader.read(happening, call, name, seeder)
                if found is not None:
                    known = seeds.setdefault(id(found.call), found)
                    seeds[id(found.call)] = known._replace(passed=known.passed and found.passed)
    return seeds.values()


def may_seed_workers(project: LoaderQueries, path: str) -> bool:
    """Whether a seed of workers may stand in a file, as far as can be told without a look inside: it calls a seeder, or has
    a worker function that calls another's helper.
    """
    summary = project.files[path].summary
    if not project.seeding_words.isdisjoint(summary.calls) or not project.seeding_words.isdisjoint(summary.values):
        return True
    names = (*summary.functions, *(name for name, _ in summary.classes))
    return WORD in summary.keywords or not handed_words(project).isdisjoint(
        name.rpartition(".")[2].lstrip(":") for name in names
    )


class _Reader:
    """Tells what seeds are in one worker function."""

    def __init__(self, project: LoaderQueries, worker: WorkerFunction) -> None:
        self._project = project
        self._worker = worker
        self._functions = project.work_of((worker.function,)).run.functions
        # Whether torch.initial_seed() is the same in all workers, since they have been seeded alike.
        self._torch_is_same = False

    def read(self, happening: Happening, call: Call, name: str, seeder: Seeder) -> WorkerSeed | None:
        """What is wrong with a seed; None where nothing is known to be."""
        scope = self._scope(happening)
        seed = seed_given(seeder, call)
        source = self._source(happening, call, seeder, seed)
        direct = not happening.way
        if source:
            return WorkerSeed(happening.path, call, name, source, direct, passed=True)
        if seed is None or not self._is_same(Scoped(happening.path, seed, scope), 0):
            return None
        if "torch" in seeder.families:
            self._torch_is_same = True
        if direct:
            return WorkerSeed(happening.path, call, name, "", direct, passed=True)
        first = happening.way[0]
        outer = first.event.value
        if not isinstance(outer, Call):
            return None
        passed = self._comes_from(Scoped(happening.path, seed, scope), Scoped(first.path, outer), 0)
        return WorkerSeed(first.path, outer, name, "", direct, passed)

    def _comes_from(self, seed: Scoped, call: Scoped, depth: int) -> bool:
        """Whether a value is made of what a call passes."""
        value, outer = seed.value, call.value
        if seed.path == call.path and outer.start < value.start and value.end <= outer.end:
            return True
        return depth < _MOST and any(
            behind.value is not each and self._comes_from(behind, call, depth + 1)
            for each in within(value)
            if isinstance(each, Ref)
            for behind in self._project.origins.of(seed._replace(value=each))
        )

    def _source(self, happening: Happening, call: Call, seeder: Seeder, seed: Expression | None) -> str:
        """What makes the seed change from run to run, by itself or by None."""
        values = (
            [each.value for each in self._project.origins.of(Scoped(happening.path, seed, self._scope(happening)))]
            if seed is not None
            else []
        )
        absent = bool(values) and all(map(is_none, values)) and seeder.none == "entropy"
        if from_entropy(seeder, call) or absent:
            return "entropy"
        resolver = self._project.resolver
        return (seed is not None and changing_source(resolver, happening.path, seed)) or ""

    def _scope(self, happening: Happening) -> Scope:
        """What the parameters of the function are given on the way to it."""
        scope = self._worker.scope
        for step in happening.way:
            for function in self._project.resolver.functions(step.into):
                if isinstance(step.event.value, Call):
                    call = Scoped(step.path, step.event.value, scope)
                    scope = bind(
                        self._project.origins, call, step.into, function, skip=bool(function.owner), outer=scope
                    )
        return scope

    def _is_same(self, seed: Scoped, depth: int) -> bool:
        """Whether a value is known to be the same in all workers."""
        if depth > _MOST:
            return False
        match seed.value:
            case Constant(value=value):
                return value is not None
            case Operation(operands=parts) | Collection(items=parts):
                return all(self._is_same(seed._replace(value=each), depth + 1) for each in parts if each is not None)
            case Subscript(value=value, indices=indices):
                return all(self._is_same(seed._replace(value=each), depth + 1) for each in (value, *indices))
            case Attribute(value=value):
                return self._is_same(seed._replace(value=value), depth + 1)
            case Call():
                return self._call_is_same(seed, seed.value, depth)
            case Ref():
                return self._reference_is_same(seed, seed.value, depth)
        return False

    def _call_is_same(self, seed: Scoped, call: Call, depth: int) -> bool:
        names = self._project.names(seed.path, call.func)
        if not self._runs_in_worker(seed.path, call.start):
            return True  # made before the workers are
        if self._torch_is_same and set(names) & {"torch.initial_seed", "torch.random.initial_seed"}:
            return True
        if names and set(names) <= _PURE | _SETTINGS:
            return all(self._is_same(seed._replace(value=arg.value), depth + 1) for arg in call.args)
        behind = [each for each in self._project.origins.of(seed) if each.value is not call]
        return bool(behind) and all(self._is_same(each, depth + 1) for each in behind)

    def _reference_is_same(self, seed: Scoped, ref: Ref, depth: int) -> bool:
        if not any(self._is_local(seed.path, root) for root in ref.roots):
            return True  # a variable of the module, or of the function around
        if self._worker.numbers.intersection(seed.path + root for root in ref.roots):
            return False
        base = seed._replace(value=ref._replace(path=()))
        if any(self._is_self(seed.path, root) for root in ref.roots):
            return True
        behind = [each for each in self._project.origins.of(base) if each.value is not base.value]
        return bool(behind) and all(
            (not isinstance(each.value, Ref) and self._is_same(each, depth + 1))
            or (
                isinstance(each.value, Ref)
                and not self._is_number(each)
                and not any(self._is_local(each.path, r) for r in each.value.roots)
            )
            for each in behind
        )

    def _is_number(self, each: Scoped) -> bool:
        return isinstance(each.value, Ref) and bool(
            self._worker.numbers.intersection(each.path + root for root in each.value.roots)
        )

    def _is_local(self, path: str, root: str) -> bool:
        """Whether a variable belongs to a function that the workers run."""
        return f"{path}{root}".rpartition(".<locals>.")[0] in self._functions

    def _is_self(self, path: str, root: str) -> bool:
        found = self._project.resolver.parameter(path + root)
        return found is not None and found.position == 0 and bool(found.function.owner)

    def _runs_in_worker(self, path: str, offset: int) -> bool:
        inner = [each for each in self._project.files[path].functions if each.start <= offset < each.end]
        return any(path + each.name in self._functions for each in inner)
