"""The functions that loaders' workers run first: what is passed as ``worker_init_fn``.

Seeds in worker functions that change from run to run, or are the same in every worker.

Draws from numpy's global generator where a loader's workers fetch samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.dataflow.arguments import bind, is_partial
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.domain.loaders.callable_effects import own_draws
from torchrepro_lint.domain.loaders.sites import kind_of
from torchrepro_lint.domain.rng.seeders import changing_source, from_entropy, seed_given
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    Subscript,
    path_of,
)
from torchrepro_lint.syntax.visitor import is_none, within

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.rows import Seeder
    from torchrepro_lint.domain.loaders.queries import LoaderQueries
    from torchrepro_lint.trace.trace import Happening


WORD = "worker_init_fn"
_POSITION = 10


class WorkerFunction(NamedTuple):
    """A function of the project that workers run, what is known of its parameters, and those that are the worker's number."""

    function: str
    scope: Scope
    numbers: frozenset[str]


def worker_functions(project: LoaderQueries) -> Iterator[WorkerFunction]:
    """Each way in which a function is handed to a loader that may have workers, in the order of files and text."""
    seen = set()
    for path in _handing(project):
        for given in _given(project, path):
            for each in project.origins.of(given):
                for found in _functions(project, each):
                    if (key := (found.function, id(found.scope), found.numbers)) not in seen:
                        seen.add(key)
                        yield found


def handed_words(project: LoaderQueries) -> frozenset[str]:
    """The words that files mention which may hand functions to loaders' workers: a worker function's, or its class's."""
    return project.of_all("handed words", lambda: _find_handed_words(project))


def _find_handed_words(project: LoaderQueries) -> frozenset[str]:
    summaries = [project.files[path].summary for path in _handing(project)]
    return frozenset(word for each in summaries for word in (*each.values, *each.calls))


def _handing(project: LoaderQueries) -> tuple[str, ...]:
    """The files that may hand functions to loaders' workers, sorted."""
    modules = project.resolver.modules
    modules.reads.see_word("keywords", WORD)
    passing = {path for path, each in modules.summaries() if WORD in each.keywords}
    return tuple(sorted(passing.union(project.loader_paths))) if passing else ()


def _given(project: LoaderQueries, path: str) -> Iterator[Scoped]:
    if not any(_may_pass(site.call) for site in project.calls(path)):
        return
    known = set()
    for loader in project.loaders(path):
        known.add(id(loader.site.call))
        if loader.has_workers or not loader.arguments.complete:
            yield from loader.arguments.given.get(WORD, ())
    for site in project.calls(path):
        if id(site.call) not in known and not any(":" in name or kind_of(name) for name in site.names):
            yield from (Scoped(path, arg.value) for arg in site.call.args if arg.keyword == WORD)


def _may_pass(call: Call) -> bool:
    return len(call.args) > _POSITION or any(arg.keyword == WORD or arg.star for arg in call.args)


def _functions(
    project: LoaderQueries, each: Scoped, positional: int = 0, bound: frozenset[str] = frozenset()
) -> Iterator[WorkerFunction]:
    """A function, lambda or method; what a partial or a callable object runs."""
    value = each.value
    if isinstance(value, Call) and is_partial(project.origins, each):
        first, *rest = value.args
        words = frozenset(arg.keyword for arg in rest if arg.keyword)
        count = sum(arg.keyword is None and not arg.star for arg in rest)
        for inner in project.origins.of(each._replace(value=first.value)):
            for found in _functions(project, inner, count + positional, words | bound):
                yield found._replace(scope=_bound(project, found, each, value))
        return
    names = project.names(each.path, value.func if isinstance(value, Call) else value)
    if isinstance(value, Lambda):
        names = (each.path + value.function,)
    for name in names:
        scope = each.scope
        targets = [name] if project.resolver.functions(name) and not isinstance(value, Call) else []
        if isinstance(value, Call) and project.resolver.classes(name):
            targets = list(project.resolver.call_methods(f"{name}()"))
            scope = project.origins.construct(each, name).scope
        elif isinstance(value, Ref) and ":" in name and name.endswith("()"):
            targets = list(project.resolver.call_methods(name))
        for target in targets:
            yield WorkerFunction(target, scope, _numbers(project, target, positional, bound))


def _bound(project: LoaderQueries, found: WorkerFunction, each: Scoped, partial: Call) -> Scope:
    """The parameters that a partial gives: by their names, and in their order."""
    given = dict(found.scope.given)
    for function in project.resolver.functions(found.function):
        params = function.params[bool(function.owner) :]
        path = path_of(found.function)
        plain = iter(params)
        for arg in partial.args[1:]:
            word = arg.keyword or ("" if arg.star else next((param.name for param in plain), ""))
            if word:
                given[f"{path}{function.name}.<locals>.{word}"] = (each._replace(value=arg.value),)
    return found.scope._replace(given=given)


def _numbers(project: LoaderQueries, target: str, positional: int, bound: frozenset[str]) -> frozenset[str]:
    """The parameter that gets the worker's number: the first that nothing has been given for; all of a ``*args``."""
    found = set()
    for function in project.resolver.functions(target):
        params = [param for param in function.params[bool(function.owner) :] if param.name not in bound][positional:]
        path = path_of(target)
        if params:
            found.add(f"{path}{function.name}.<locals>.{params[0].name}")
    return frozenset(found)


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


_BASES = frozenset(
    f"torch.utils.data.{place}{word}"
    for place in ("", "dataset.")
    for word in ("Dataset", "IterableDataset", "MapDataPipe")
)
_DATASET_FETCH = ("__getitem__", "__getitems__", "__iter__", "__next__")


class WorkerDraw(NamedTuple):
    """A call that draws, by its public name, and the method of the dataset that leads to it (``Boxes.__getitem__``)."""

    label: str
    owner: str
    happening: Happening


def numpy_draws(project: LoaderQueries) -> Iterator[WorkerDraw]:
    """Each call once, by the first dataset that leads to it; not for datasets whose loaders all seed their workers."""
    seen: set[int] = set()
    tended = _tended(project)
    for owner in project.resolver.all_classes():
        if owner in tended or not _is_dataset(project, owner):
            continue
        for word in _DATASET_FETCH:
            for method in project.resolver.methods(owner, word):
                if not project.resolver.functions(method):
                    continue
                short = f"{owner.rpartition(':')[2]}.{word}"
                for draw in own_draws(project.work_of((method,))):
                    if draw.family == "numpy" and id(draw.happening.event.value) not in seen:
                        seen.add(id(draw.happening.event.value))
                        yield WorkerDraw(draw.label, short, draw.happening)


def _is_dataset(project: LoaderQueries, owner: str) -> bool:
    return any(base in _BASES or base.startswith("torchvision.datasets.") for base in project.resolver.ancestry(owner))


def _tended(project: LoaderQueries) -> set[str]:
    """The classes of datasets all of whose loaders, of which there are some, have no workers or a function for them."""
    good: set[str] = set()
    bad: set[str] = set()
    for path in project.loader_paths:
        for loader in project.loaders(path):
            known = not loader.has_workers or loader.passes("worker_init_fn") or loader.kind.seeds_workers
            kept = good if known or not loader.arguments.complete else bad
            for each in loader.values(loader.kind.dataset) if loader.kind.dataset else ():
                kept.update(_classes(project, each.path, each.value))
    return good - bad


def _classes(project: LoaderQueries, path: str, value: object) -> Iterator[str]:
    """The datasets that an expression makes, inside wrappers too."""
    if isinstance(value, Call):
        for name in project.names(path, value.func):
            if project.resolver.classes(name):
                yield from (each for each in project.resolver.ancestry(name) if ":" in each)
        for arg in value.args:
            for name in project.names(path, arg.value):
                if name.endswith("()") and project.resolver.classes(name[:-2]):
                    yield name[:-2]
