"""DataLoader construction sites, with their arguments in each calling context, and the effects of what their workers fetch.

A fetch effect is the set of generators that a loader's workers draw from, by its dataset, transforms and collate function:
``torch``, ``numpy``, ``python``; ``own`` for a generator that no worker seeds; ``unknown`` where it may be any. Empty means that
nothing is drawn, as far as all that runs is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.loaders import DatasetModel, LoaderKind, dataset_model, loader_kinds, loader_names
from torchrepro_lint.catalogue.rows import Signature
from torchrepro_lint.dataflow.arguments import (
    argument_constants,
    argument_values,
    passes_value,
    read_arguments,
    without_self,
)
from torchrepro_lint.dataflow.environment import BoundArguments, Closure, Environment, ValueSources
from torchrepro_lint.dataflow.feasibility import evaluate_test, implies_falsy, implies_none
from torchrepro_lint.dataflow.reaching_definitions import attribute_values
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.loaders.callable_effects import (
    ANY_GENERATOR,
    NO_GENERATORS,
    CallableEffects,
    GeneratorSet,
)
from torchrepro_lint.domain.program_effects import ProgramEffects
from torchrepro_lint.query import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.call_sites import paths_constructing
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    constructed_class,
    in_project,
    is_instance,
    simple_name,
    without_brackets,
)
from torchrepro_lint.syntax.visitor import UNKNOWN_ARGUMENT, is_none, known_argument, receiver_of


class LoaderConstruction(NamedTuple):
    """The construction of a DataLoader in one calling context; ``label`` is its class as the code names it."""

    site: CallSite
    kind: LoaderKind
    label: str
    arguments: BoundArguments


class Loader(NamedTuple):
    """A DataLoader with its arguments in one calling context (see ``LoaderConstruction``), whose values can be asked for.

    Where the arguments depend on the callers of the function, there is one Loader for each caller.
    """

    site: CallSite
    kind: LoaderKind
    label: str
    arguments: BoundArguments
    value_sources: ValueSources

    def values(self, word: str) -> tuple[Closure, ...]:
        """The expressions that may be passed for a parameter."""
        return argument_values(self.value_sources, self.arguments, word)

    def passes(self, word: str) -> bool:
        """Whether something other than None may be passed for a parameter."""
        return passes_value(self.value_sources, self.arguments, word)

    def constants(self, word: str) -> list[object] | None:
        """The literal values that may be passed for a parameter; None where one of them is no literal."""
        return argument_constants(self.value_sources, self.arguments, word)

    @property
    def shuffles(self) -> bool:
        """Whether its order may be random."""
        given = known_argument(self.site.call, None, "shuffle")
        tested = any(implies_falsy(each, given) for each in self.site.guards)
        return not tested and may_shuffle(self.value_sources, self.kind, self.arguments)

    @property
    def has_workers(self) -> bool:
        """Whether ``num_workers`` is passed and not known to be 0."""
        known = self.constants("num_workers")
        return known is None or any(value != 0 for value in known)


def may_draw_samples(loader: Loader) -> bool:
    """Whether a loader whose kind draws while it makes samples may do so with these arguments."""

    def argument(word: str) -> Expression | None:
        values = loader.values(word)
        return values[0].value if len(values) == 1 else (UNKNOWN_ARGUMENT if values else None)

    return evaluate(loader.kind.when, Signature(loader.kind.name), argument) is not Truth.FAILS


def may_shuffle(value_sources: ValueSources, kind: LoaderKind, arguments: BoundArguments) -> bool:
    """Whether the order of a loader may be random: ``shuffle`` not known to be false, and no sampler passed."""
    if passes_value(value_sources, arguments, "batch_sampler") or not kind.shuffles:
        return False
    if passes_value(value_sources, arguments, "sampler"):
        return _shuffles_without_sampler(value_sources, arguments)
    given = arguments.named.get("shuffle", ())
    if given and all(evaluate_test(value_sources, each.path, each.value, each.environment) is False for each in given):
        return False  # ``shuffle=mode == "train"``
    known = argument_constants(value_sources, arguments, "shuffle")
    return known is None or any(known)


def _shuffles_without_sampler(value_sources: ValueSources, arguments: BoundArguments) -> bool:
    """Whether ``shuffle`` is true where a sampler is None: ``shuffle=sampler is None``, unless it is known to be something else; or
    both may be so by literals (torch raises an error if there is a sampler).
    """
    samplers = [each.value for each in argument_values(value_sources, arguments, "sampler")]
    given = [each.value for each in arguments.named["sampler"]]
    is_none_somewhere = any(map(is_none, samplers))
    if not is_none_somewhere and not any(isinstance(each, Ref) for each in samplers):
        return False
    shuffles = (*arguments.named.get("shuffle", ()), *argument_values(value_sources, arguments, "shuffle"))
    return any(
        (is_none_somewhere and isinstance(each.value, Constant) and each.value.value is True)
        or any(implies_none(each.value, sampler) for sampler in given)
        for each in shuffles
    )


def group_by_call(found: Iterable[Loader]) -> Iterator[list[Loader]]:
    """The loaders of each call together, one for each calling context."""
    return (list(each) for _, each in groupby(found, key=lambda loader: (loader.site.function, loader.site.call)))


def find_loaders(project: ValueFlow, path: str) -> Iterator[LoaderConstruction]:
    """The DataLoaders of a module, including those with arguments that cannot be read.

    A subclass whose constructor forwards ``**kwargs`` counts where it is constructed, another one in its constructor.
    """
    for site in project.calls(path):
        found = next(filter(None, (_construction(project, path, site, name) for name in site.names)), None)
        if found is not None:
            kind, calls = found
            label = _label(site.call.func, kind)
            for call in calls:
                arguments = read_arguments(project.value_sources, call, kind.parameters)
                yield LoaderConstruction(site, kind, label, arguments)


def _construction(project: ValueFlow, path: str, site: CallSite, name: str) -> tuple[LoaderKind, list[Closure]] | None:
    """The kind of loader that a call of ``name`` constructs, and the constructor's calls, one for each calling context."""
    kinds = loader_kinds()
    if name in kinds:
        return kinds[name], [Closure(path, site.call, environment) for environment in calling_contexts(project, site)]
    base = constructed_class(name)
    if base in kinds and name.endswith("__init__"):
        if forwards_star_arguments(project, path, site.call):
            return None
        return kinds[base], [
            Closure(path, without_self(site.call), environment) for environment in calling_contexts(project, site)
        ]
    if project.resolver.classes(name) and not kinds.keys().isdisjoint(project.resolver.ancestry(name)):
        return _subclass_construction(project, path, site, name)
    return None


def _subclass_construction(
    project: ValueFlow, path: str, site: CallSite, name: str
) -> tuple[LoaderKind, list[Closure]] | None:
    calls: list[Closure] = []
    kind: LoaderKind | None = None
    for environment in calling_contexts(project, site):
        for base, call in project.value_sources.construct(Closure(path, site.call, environment), name).library_calls:
            own = isinstance(call.value, Call) and (
                call.value is site.call or forwards_star_arguments(project, call.path, call.value)
            )
            if base in loader_kinds() and own and isinstance(call.value, Call):
                kind = loader_kinds()[base]
                calls.append(call if call.value is site.call else call._replace(value=without_self(call.value)))
    return (kind, calls) if kind is not None else None


def loader_kind(name: str) -> LoaderKind | None:
    """The kind of loader that an external class is."""
    return loader_kinds().get(name)


def calling_contexts(project: ValueFlow, site: CallSite) -> list[Environment]:
    """The argument environments of the function around a call, one for each caller; an empty one if no caller is known."""
    found = list(project.environments_of(site.function))
    return found if 0 < len(found) <= limits.MAX_LOADER_CALLERS else [Environment()]


def forwards_star_arguments(project: ValueFlow, path: str, call: Call) -> bool:
    """Whether a constructor forwards its ``*args`` or ``**kwargs``."""
    for arg in call.args:
        for root in arg.value.roots if arg.star and isinstance(arg.value, Ref) and not arg.value.path else ():
            found = project.resolver.parameter(path + root)
            if found is not None and found.param.kind.startswith("*"):
                return True
    return False


def _label(func: Expression, kind: LoaderKind) -> str:
    word = simple_name(kind.name)
    if isinstance(func, Ref) and func.path[-1:] != ("__init__",):
        return (func.path or (simple_name(func.roots[0]),))[-1]
    return word


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

    def __init__(self, project: ProgramEffects) -> None:
        self._value_sources = project.value_sources
        self._project = project
        self._callables = CallableEffects(project, self.draws)
        self._known: MemoTable[Closure, GeneratorSet] = MemoTable(project.database.reads)

    def of_loader(self, loader: Loader) -> GeneratorSet:
        """The generators that the workers of a loader draw from."""
        kind, given = loader.kind, loader.arguments.named
        found = {kind.draws} if kind.draws and may_draw_samples(loader) else set()
        if kind.dataset:
            found |= self._of_values(given[kind.dataset]) if given.get(kind.dataset) else ANY_GENERATOR
        for each in given.get("collate_fn", ()) if kind.dataset else ():
            found |= self._callables.draws(each)
        return frozenset(found)

    def of_callable(self, given: Closure) -> GeneratorSet:
        """The generators that a call of a callable draws from."""
        return self._callables.draws(given)

    def _of_values(self, given: Iterable[Closure]) -> GeneratorSet:
        return NO_GENERATORS.union(*(self._known.of(each, partial(self.draws, each)) for each in given))

    def draws(self, given: Closure, depth: int = 0) -> GeneratorSet:
        """The generators that fetching a sample of a dataset draws from."""
        if depth > limits.MAX_DATASET_NESTING:
            return ANY_GENERATOR
        return NO_GENERATORS.union(*(self._of_value(each, depth) for each in self._value_sources.of(given)))

    def _of_value(self, each: Closure, depth: int) -> GeneratorSet:
        match each.value:
            case Constant() | Collection() | Comprehension():
                return NO_GENERATORS
            case Call(func=func):
                names = self._project.names(each.path, func) or self._callee_names(each._replace(value=func))
                return (
                    NO_GENERATORS.union(*(self._of_call(each, name, depth) for name in names))
                    if names
                    else ANY_GENERATOR
                )
            case Subscript(value=value) | Operation(op="*", operands=(value,)):
                return self._of_part(each._replace(value=value), depth)
            case Operation(op="+", operands=operands):
                return NO_GENERATORS.union(*(self.draws(each._replace(value=one), depth + 1) for one in operands))
            case Ref(path=(*_, "dataset")) as ref:
                return self._of_loader(each._replace(value=ref._replace(path=ref.path[:-1])), depth)
            case Ref():
                names = self._project.names(each.path, each.value)
                return NO_GENERATORS.union(*(self._of_annotation(name) for name in names)) if names else ANY_GENERATOR
        return ANY_GENERATOR

    def _callee_names(self, called: Closure) -> tuple[str, ...]:
        """The names of a callee that is a parameter, if every value passed for it has a name."""
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
            return self._of_instance(name, call)
        plain = without_brackets(name)
        row = dataset_model(plain)
        if row is not None:
            return self._of_row(call, row, depth)
        if plain in _SEQUENCES or (
            plain.startswith(("torch.", "numpy.")) and not plain.startswith(("torch.utils", "torch.load"))
        ):
            return NO_GENERATORS
        return ANY_GENERATOR

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
        found: set[str] = set()
        for each in self._value_sources.set_attributes(call.path, words, call):
            found |= self._callables.draws(each)
        return frozenset(found)

    def _of_instance(self, owner: str, call: Closure | None) -> GeneratorSet:
        """A dataset of the project: its own methods, and what it inherits from classes of libraries."""
        resolver = self._project.resolver
        methods = [m for word in _FETCH_METHODS for m in resolver.methods(owner, word) if resolver.functions(m)]
        bases = [
            base for base in resolver.ancestry(owner) if not in_project(base) and not base.startswith(_ABSTRACT_BASES)
        ]
        if not methods and not bases:
            return ANY_GENERATOR
        found = set(self._callables.of_methods(owner, call, methods)) if methods else set()
        outside = {} if call is None else dict(self._value_sources.construct(call, owner).library_calls)
        for base in bases:
            row = dataset_model(base)
            if row is None or row.wraps or row.unless:
                return ANY_GENERATOR
            made = outside.get(base)
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


class LoaderQueries(ProgramEffects):
    """A project with queries about its loaders."""

    @query()
    def loader_paths(self) -> tuple[str, ...]:
        """The files that may construct a DataLoader, sorted."""
        return paths_constructing(self.resolver, sorted(loader_names()))

    def loaders(self, path: str) -> list[Loader]:
        """The DataLoaders that a module constructs."""
        return [Loader(*each, self.value_sources) for each in self._loaders(path)]

    @query()
    def _loaders(self, path: str) -> tuple[LoaderConstruction, ...]:
        return tuple(find_loaders(self, path))

    def readable_loaders(self, path: str) -> Iterator[Loader]:
        """The loaders of a module whose arguments can all be read, in the order of the text."""
        yield from (each for each in self.loaders(path) if each.arguments.complete)

    @property
    def fetch_effects(self) -> FetchEffects:
        """The fetch effects of the project's loaders."""
        return self.part(FetchEffects)
