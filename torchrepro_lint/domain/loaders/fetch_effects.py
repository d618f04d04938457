"""Fetch effects: what the workers of DataLoaders draw from while they fetch samples.

A fetch effect is the set of generators that a loader's workers draw from, by its dataset, transforms and collate function:
``torch``, ``numpy``, ``python``; ``own`` for a generator that no worker seeds; ``unknown`` where it may be any. Empty means that
nothing is drawn, as far as all that runs is known. Also here: worker draws from NumPy's global generator, which torch before 1.9 left
unseeded in workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import worker_seeding_identifiers
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.libraries import DatasetModel, LoaderKind, dataset_model, loader_kinds
from torchrepro_lint.catalogue.rows import Condition, Signature
from torchrepro_lint.dataflow.arguments import read_arguments
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.dataflow.reaching_definitions import attribute_values
from torchrepro_lint.domain.flags import WORKER_SEEDS
from torchrepro_lint.domain.loaders.callable_effects import (
    ANY_GENERATOR,
    NO_GENERATORS,
    CallableEffects,
    GeneratorSet,
)
from torchrepro_lint.domain.loaders.constructions import Loader, may_draw_samples, may_shuffle
from torchrepro_lint.domain.loaders.workers import WORKER_INIT
from torchrepro_lint.domain.programs import programs_reaching, state_effects
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.call_sites import call_candidates
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Constant,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    is_instance,
    is_module,
    path_of,
    unbound_method,
    without_brackets,
)
from torchrepro_lint.syntax.visitor import body_expressions, last_identifier, receiver_of
from torchrepro_lint.trace.traces import Traces

_FETCH_METHODS = ("__getitem__", "__getitems__", "__iter__", "__next__", "get")
_ABSTRACT_BASES = (
    "torch.utils.data.",
    "typing.",
    "abc.",
    "builtins.object",
    "collections.abc.",
    "torchvision.datasets.VisionDataset",
    "torchvision.datasets.vision.VisionDataset",
)
_SEQUENCES = frozenset(f"builtins.{word}" for word in ("list", "tuple", "range", "zip", "enumerate", "sorted", "dict"))


class FetchEffects:
    """The fetch effects of a project's loaders, datasets and callables."""

    def __init__(self, project: Traces) -> None:
        self._value_sources = project.value_sources
        self._project = project
        self._callables = CallableEffects(project, self._of_constructions)
        self._known: MemoTable[Closure, GeneratorSet] = MemoTable(project.database.reads)

    def of_loader(self, loader: Loader) -> GeneratorSet:
        """The generators that the workers of a loader draw from."""
        kind, given = loader.kind, loader.arguments.named
        found = {kind.draws} if kind.draws and may_draw_samples(loader) else set()
        if kind.dataset:
            found |= self._of_values(given[kind.dataset]) if given.get(kind.dataset) else ANY_GENERATOR
        collated = given.get("collate_fn", ()) if kind.dataset else ()
        return frozenset(found).union(*map(self._callables.draws, collated))

    def of_callable(self, given: Closure) -> GeneratorSet:
        """The generators that a call of a callable draws from."""
        return self._callables.draws(given)

    def _of_values(self, given: Iterable[Closure]) -> GeneratorSet:
        return NO_GENERATORS.union(*(self._known.of(each, partial(self.draws, each)) for each in given))

    def draws(self, given: Closure, depth: int = 0) -> GeneratorSet:
        """The generators that fetching a sample of a dataset draws from; any, where no value of it is found, as in a recursion."""
        if depth > limits.MAX_DATASET_NESTING:
            return ANY_GENERATOR
        values = [*self._value_sources.of(given)]
        return NO_GENERATORS.union(*(self._of_value(each, depth) for each in values)) if values else ANY_GENERATOR

    def _of_constructions(self, calls: Sequence[Closure]) -> GeneratorSet:
        """The generators that datasets draw from which calls create: each by its arguments, or many of one class by their class."""
        callees = [self._project.names(each.path, each.value.func) for each in calls if isinstance(each.value, Call)]
        found: set[str] = set()
        for each, names in zip(calls, callees, strict=True):
            are_many = callees.count(names) > limits.MAX_CONSTRUCTIONS_APART
            together = are_many and all(map(self._project.resolver.classes, names))
            found.update(*(self._of_instance(name, None) for name in names) if together else (self.draws(each),))
        return frozenset(found)

    def _of_value(self, each: Closure, depth: int) -> GeneratorSet:
        match each.value:
            case Constant() | Collection() | Comprehension():
                return NO_GENERATORS
            case Call(func=func):
                found = [self._of_call(each, name, depth) for name in self._callee_names(each._replace(value=func))]
                return NO_GENERATORS.union(*found) if found else ANY_GENERATOR
            case Subscript(value=value) | Operation(op="*", operands=(value,)):
                return self._of_part(each._replace(value=value), depth)
            case Operation(op="+" | "*", operands=operands):  # ``100 * rows + others``
                return NO_GENERATORS.union(*(self.draws(each._replace(value=one), depth + 1) for one in operands))
            case Ref(path=(*_, "dataset")) as ref:
                return self._of_loader(each._replace(value=ref._replace(path=ref.path[:-1])), depth)
            case Ref():
                names = self._project.names(each.path, each.value)
                return NO_GENERATORS.union(*(self._of_annotation(name) for name in names)) if names else ANY_GENERATOR
        return ANY_GENERATOR

    def _callee_names(self, called: Closure) -> tuple[str, ...]:
        """The names of a callee but modules, which a text may name, too; of a parameter those of what is passed, if all have any."""
        if names := self._project.names(called.path, called.value):
            return tuple(name for name in names if not is_module(name))
        found = [self._project.names(each.path, each.value) for each in self._value_sources.of(called)]
        return tuple(dict.fromkeys(name for names in found for name in names)) if all(found) else ()

    def _of_part(self, whole: Closure, depth: int) -> GeneratorSet:
        """A part that draws as its whole does: of a split, of a dataset of graphs that is indexed by many."""
        found: set[str] = set()
        for each in self._value_sources.of(whole) if depth <= limits.MAX_DATASET_NESTING else ():
            if isinstance(each.value, Subscript):
                found |= self._of_part(each._replace(value=each.value.value), depth + 1)
                continue
            names = self._project.names(each.path, each.value.func) if isinstance(each.value, Call) else ()
            known = bool(names) and all(self._has_parts(name) for name in names)
            found |= self._of_value(each, depth + 1) if known else ANY_GENERATOR
        return frozenset(found)

    def _has_parts(self, name: str) -> bool:
        if in_project(name):
            return any(
                dataset_model(base)
                for base in self._project.resolver.ancestry(name)
                if not base.startswith(_ABSTRACT_BASES)
            )
        return dataset_model(without_brackets(name)) is not None or name.startswith(("torch.", "numpy."))

    def _of_loader(self, loader: Closure, depth: int) -> GeneratorSet:
        """The dataset of ``loader.dataset``."""
        found: set[str] = set()
        for each in self._value_sources.of(loader):
            given = self._dataset_of(each) if isinstance(each.value, Call) else ()
            found |= NO_GENERATORS.union(*(self.draws(one, depth + 1) for one in given)) if given else ANY_GENERATOR
        return frozenset(found)

    def _dataset_of(self, loader: Closure) -> tuple[Closure, ...]:
        """The dataset argument of a loader's construction."""
        assert isinstance(loader.value, Call)
        for name in self._project.names(loader.path, loader.value.func):
            if (kind := loader_kinds().get(name)) is not None and kind.dataset:
                return read_arguments(self._value_sources, loader, kind.parameters).named.get(kind.dataset, ())
        return ()

    def _of_annotation(self, name: str) -> GeneratorSet:
        """A value that is only known to be an object of a class, by an annotation."""
        if not is_instance(name):
            return ANY_GENERATOR
        if self._project.resolver.classes(class_of(name)):
            return self._of_instance(class_of(name), None)
        row = dataset_model(without_brackets(name))
        return (
            NO_GENERATORS if row is not None and not row.calls and not row.wraps and not row.unless else ANY_GENERATOR
        )

    def _of_call(self, call: Closure, name: str, depth: int) -> GeneratorSet:
        """The value of a call: a dataset of a library or the project, tensors, a sequence."""
        if self._project.resolver.classes(name):
            return self._of_instance(name, call, depth)
        if (kind := loader_kinds().get(name)) is not None:
            return self._of_inner_loader(call, kind, depth)
        plain = without_brackets(name)
        row = dataset_model(plain)
        if row is not None:
            return self._of_row(call, row, depth)
        if plain in _SEQUENCES or (
            plain.startswith(("torch.", "numpy.")) and not plain.startswith(("torch.utils", "torch.load"))
        ):
            return NO_GENERATORS
        return ANY_GENERATOR

    def _of_inner_loader(self, call: Closure, kind: LoaderKind, depth: int) -> GeneratorSet:
        """A loader that a dataset iterates: what its samples draw, and the order, unless it has a generator."""
        passed = read_arguments(self._value_sources, call, kind.parameters)
        draws = may_shuffle(self._value_sources, kind, passed) and not passed.named.get("generator")
        samples = (self.draws(each, depth + 1) for each in passed.named.get(kind.dataset, ()))
        return frozenset({"torch"} if draws else ()).union(*samples)

    def _of_row(self, call: Closure, row: DatasetModel, depth: int) -> GeneratorSet:
        assert isinstance(call.value, Call)
        if any(self._project.is_called(word) for word in row.unless) or not self._holds(call, row):
            return ANY_GENERATOR
        if not row.wraps:
            return (
                row.draws | self._callables.of_arguments(call, row.calls) | self._of_later_attributes(call, row.calls)
            )
        first = next((arg.value for arg in call.value.args if not arg.star), None)
        if first is None:
            return ANY_GENERATOR
        inner = call._replace(value=first)
        items = self._value_sources.list_items(inner)
        parts = items.excess if items.complete and items.excess else (inner,)
        return NO_GENERATORS.union(*(self.draws(each, depth + 1) for each in parts))

    def _holds(self, call: Closure, row: DatasetModel) -> bool:
        """Whether a row is known to hold for the call that creates a dataset, or for those that its receiver comes from: in
        ``ds = ds.map(f)`` of a loop that may be the call itself.
        """
        if not row.when:
            return True
        left, seen, created = [call], set[tuple[str, Call]](), list[Call]()
        while left:
            each = left.pop()
            if not isinstance(each.value, Call) or (each.path, each.value) in seen:
                continue
            seen.add((each.path, each.value))
            made = [one for one in self._receivers(each) if isinstance(one.value, Call)]
            if made:
                left += made
            else:
                created.append(each.value)
        holds = (evaluate(row.when, row.signature, argument_reader(row.signature, each)) for each in created)
        return bool(created) and all(each is Truth.HOLDS for each in holds)

    def _receivers(self, call: Closure) -> Iterable[Closure]:
        """The sources of the object whose method a call runs."""
        receiver = receiver_of(call.value.func) if isinstance(call.value, Call) else None
        return () if receiver is None else self._value_sources.of(call._replace(value=receiver))

    def _of_later_attributes(self, call: Closure, words: Sequence[str]) -> GeneratorSet:
        """The generators of callables that a file sets as attributes of the dataset: ``dataset.transform = ...``."""
        later = self._value_sources.set_attributes(call.path, words, call)
        return NO_GENERATORS.union(*map(self._callables.draws, later))

    def _of_instance(self, owner: str, call: Closure | None, depth: int = 0) -> GeneratorSet:
        """A dataset of the project: its own methods, and what it inherits from classes of libraries."""
        resolver = self._project.resolver
        methods = [m for word in _FETCH_METHODS for m in resolver.methods(owner, word) if resolver.functions(m)]
        outer = [base for base in resolver.ancestry(owner) if not in_project(base)]
        bases = [base for base in outer if dataset_model(base) or not base.startswith(_ABSTRACT_BASES)]
        if not methods and not bases:
            return ANY_GENERATOR
        found = set(self._callables.of_methods(owner, call, methods)) if methods else set()
        outside = {} if call is None else dict(self._value_sources.construct(call, owner).library_calls)
        for base in bases:
            row = dataset_model(base)
            made = outside.get(base)
            if row is None or row.unless:
                return ANY_GENERATOR
            if row.wraps:
                found |= ANY_GENERATOR if made is None else self._of_row(made, row, depth + 1)
                continue
            found |= self._of_later_attributes(call, row.calls) if call is not None else NO_GENERATORS
            passed = self._callables.of_arguments(made, row.calls) if made is not None or not row.calls else None
            found |= row.draws | (self._of_own_attributes(owner, call, row.calls) if passed is None else passed)
        return frozenset(found)

    def _of_own_attributes(self, owner: str, call: Closure | None, words: Sequence[str]) -> GeneratorSet:
        """The generators of callables that an object sets itself as these attributes, if its base gets none."""
        if call is None:
            return ANY_GENERATOR
        environment = self._value_sources.construct(call, owner).environment
        kept = [each for word in words for each in attribute_values(self._value_sources, owner, word, environment)]
        return NO_GENERATORS.union(*map(self._callables.draws, kept)) if kept else ANY_GENERATOR


def fetch_effects(project: Traces) -> FetchEffects:
    """The fetch effects of the project's loaders."""
    return project.part(FetchEffects)


# The generators that a loader with a generator does not fix, since workers seed NumPy and before that release.
NOT_FIXED = {False: frozenset({"own"}), True: frozenset({"own", "numpy", "unknown"})}


def unseeded_worker_draws(project: Traces, loader: Loader, *, before: bool) -> frozenset[str]:
    """The generators that workers may draw from and that the loader does not fix; ``before``: before workers seed NumPy.

    MONAI's loader seeds its own workers; Lightning's ``seed_everything(workers=True)`` those of all loaders of its program.
    """
    seeded = (
        loader.passes(WORKER_INIT)
        or loader.kind.seeds_workers
        or (seeds_workers(project) and seeds_workers_of(project, loader.site.function))
    )
    if not loader.has_workers or seeded or _fetches_by_itself(project, loader):
        return frozenset()
    draws = fetch_effects(project).of_loader(loader)
    return draws & NOT_FIXED[before] if loader.passes("generator") else draws


def _fetches_by_itself(project: Traces, loader: Loader) -> bool:
    """Whether a class of the project fetches by an ``__iter__`` that never asks torch's for workers."""
    names = project.resolver
    owners = [each for each in loader.site.names if names.classes(each)]
    if not any(in_project(found) for each in owners for found in names.methods(each, "__iter__")[:1]):
        return False
    bases = [base for owner in owners for base in filter(in_project, names.ancestry(owner))]
    methods = (path_of(base) + method for base in bases for each in names.classes(base) for _, method in each.methods)
    bodies = (function.body for method in methods for function in names.functions(method))
    calls = (each for body in bodies for each in body_expressions(body) if isinstance(each, Call))
    words = [last_identifier(each.func) for each in calls]
    return not any(word in ("__iter__", "_get_iterator") or word.endswith("Iter") for word in words)


@query()
def seeds_workers(project: Traces) -> bool:
    """Whether a framework seeds workers somewhere in the project: ``seed_everything(workers=True)``."""
    seeders = call_candidates(project.resolver, worker_seeding_identifiers(project.resolver.modules.mentions))
    return any(
        setting.flag == WORKER_SEEDS and setting.value is True and _sets(site.call, form, setting.when)
        for path in seeders.paths
        for site in project.calls_by(path, seeders.words)
        for name in site.names
        for form, setting in project.catalogue.settings(unbound_method(name))
    )


def _sets(call: Call, form: Signature, when: tuple[Condition, ...]) -> bool:
    return evaluate(when, form, argument_reader(form, call)) is not Truth.FAILS


def seeds_workers_of(project: Traces, function: str) -> bool:
    """Whether a framework seeds the workers of loaders in every program that reaches a function."""
    return all(
        any(each.what == WORKER_SEEDS and each.value is not False for each in state_effects(project, program))
        for program in programs_reaching(project, function)
    )
