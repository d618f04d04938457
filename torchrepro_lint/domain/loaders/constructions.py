"""Constructions of DataLoaders, with their arguments in each calling context, and of splits and samplers without a generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from torchrepro_lint import limits
from torchrepro_lint.catalogue.conditions import Truth, evaluate
from torchrepro_lint.catalogue.libraries import LoaderKind, loader_kinds, loader_names
from torchrepro_lint.catalogue.rows import Signature
from torchrepro_lint.dataflow.arguments import read_arguments
from torchrepro_lint.dataflow.environment import (
    BoundArguments,
    Closure,
    Environment,
    ValueSources,
    argument_constants,
    argument_values,
    passes_value,
)
from torchrepro_lint.dataflow.feasibility import evaluate_test, implies_falsy, implies_none
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import paths_constructing
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.binding import UNKNOWN_ARGUMENT, known_argument, without_self
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation, Record, Ref
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    constructed_class,
    in_project,
    is_instance,
    path_of,
    qualifier_of,
    simple_name,
)
from torchrepro_lint.syntax.visitor import is_none, is_same_reference, subexpressions


class LoaderConstruction(Record, frozen=True):
    """The construction of a DataLoader in one calling context; ``label`` is its class as the code names it."""

    site: CallSite
    kind: LoaderKind
    label: str
    arguments: BoundArguments


class Loader(Record, frozen=True):
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
    given = arguments.named["sampler"]
    is_none_somewhere = any(map(is_none, samplers))
    if not is_none_somewhere and not any(isinstance(each, Ref) for each in samplers):
        return False
    shuffles = (*arguments.named.get("shuffle", ()), *argument_values(value_sources, arguments, "shuffle"))
    without = [each for sampler in given for each in _none_tests(value_sources, sampler)]
    return any(
        (is_none_somewhere and isinstance(each.value, Constant) and each.value.value is True)
        or any(_implies_none(value_sources, each, sampler) for sampler in given)
        or any(_is_same_test(each.value, test, negated) for test, negated in without)
        for each in shuffles
    )


def _implies_none(value_sources: ValueSources, test: Closure, sampler: Closure) -> bool:
    """Whether a test implies that a sampler is None, or a variable that holds it: ``options["sampler"] = sampler = ...``."""
    held = (each for each in subexpressions(test.value) if isinstance(each, Ref) and implies_none(test.value, each))
    return implies_none(test.value, sampler.value) or any(
        behind.value == sampler.value for each in held for behind in value_sources.step_back(test._replace(value=each))
    )


def _none_tests(value_sources: ValueSources, sampler: Closure) -> Iterator[tuple[Expression, bool]]:
    """The tests under which a sampler is None, each with whether it is negated: ``DistributedSampler(rows) if distributed else None``."""
    for each in (sampler, *value_sources.step_back(sampler)):
        match each.value:
            case Operation(op="if", operands=(test, value, other)) if is_none(value) != is_none(other):
                yield test, is_none(other)


def _is_same_test(one: Expression, other: Expression, negated: bool) -> bool:
    """Whether two tests read the same variable, one of them ``negated``: ``not distributed`` and ``distributed``."""
    match one, other:
        case Operation(op="not", operands=(tested,)), _:
            return _is_same_test(tested, other, not negated)
        case _, Operation(op="not", operands=(tested,)):
            return _is_same_test(one, tested, not negated)
    return not negated and is_same_reference(one, other)


def group_by_call(found: Iterable[Loader]) -> Iterator[list[Loader]]:
    """The loaders of each call together, one for each calling context."""
    return (list(each) for _, each in groupby(found, key=lambda loader: (loader.site.function, loader.site.call)))


@query()
def loader_paths(project: ValueFlow) -> tuple[str, ...]:
    """The files that may construct a DataLoader, sorted."""
    return paths_constructing(project.resolver, sorted(loader_names()))


def loaders(project: ValueFlow, path: str) -> list[Loader]:
    """The DataLoaders of a module, including those with arguments that cannot be read.

    A subclass whose constructor forwards ``**kwargs`` counts where it is constructed, another one in its constructor.
    """
    sources = project.value_sources
    return [Loader(each.site, each.kind, each.label, each.arguments, sources) for each in _constructions(project, path)]


def readable_loaders(project: ValueFlow, path: str) -> Iterator[Loader]:
    """The loaders of a module whose arguments can all be read, in the order of the text."""
    return (each for each in loaders(project, path) if each.arguments.complete)


@query()
def _constructions(project: ValueFlow, path: str) -> tuple[LoaderConstruction, ...]:
    return tuple(_find_constructions(project, path))


def _find_constructions(project: ValueFlow, path: str) -> Iterator[LoaderConstruction]:
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
                call.value == site.call or forwards_star_arguments(project, call.path, call.value)
            )
            if base in loader_kinds() and own and isinstance(call.value, Call):
                kind = loader_kinds()[base]
                calls.append(call if call.value == site.call else call._replace(value=without_self(call.value)))
    return (kind, calls) if kind is not None else None


def loader_kind(name: str) -> LoaderKind | None:
    """The kind of loader that an external class is."""
    return loader_kinds().get(name)


def calling_contexts(project: ValueFlow, site: CallSite) -> list[Environment]:
    """The argument environments of the function around a call, one for each caller; an empty one if no caller is known."""
    found = list(project.environments_of(site.function))
    return found if 0 < len(found) <= limits.MAX_LOADER_CALLERS else [Environment.of()]


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


_MODULES = ("torch.utils.data", "torch.utils.data.dataset", "torch.utils.data.sampler")
SPLIT_PARAMETERS = {
    "random_split": ("dataset", "lengths", "generator"),
    "RandomSampler": ("data_source", "replacement", "num_samples", "generator"),
    "WeightedRandomSampler": ("weights", "num_samples", "replacement", "generator"),
    "SubsetRandomSampler": ("indices", "generator"),
}
_SPLITS = {f"{place}.{word}": (word, parameters) for word, parameters in SPLIT_PARAMETERS.items() for place in _MODULES}


def splits_without_generator(project: ValueFlow, path: str) -> Iterator[tuple[CallSite, str]]:
    """The calls of a file that draw from the global generator, with torch's function or class that they lead to."""
    for site in project.calls(path):
        for name in site.names if all(_may_sample(project, each) for each in site.names) else ():
            if _is_split(project, name) and (found := _split_without_generator(project, path, site, name)) is not None:
                yield site, found
                break


def _may_sample(project: ValueFlow, name: str) -> bool:
    """Whether a callee may be one for samplers and splits: a registry of layers and samplers alike calls neither in particular."""
    resolver = project.resolver
    return (in_project(name) and not resolver.classes(name)) or any(
        base.startswith("torch.utils.data.") or constructed_class(base).endswith("Sampler")
        for base in resolver.ancestry(name)
    )


def takes_generator(site: CallSite) -> bool:
    """Whether all known callees take a generator: ``DistributedSampler`` takes none."""
    return all(name in _SPLITS for name in site.names if name.startswith("torch."))


def _split_without_generator(project: ValueFlow, path: str, site: CallSite, name: str) -> str | None:
    """The function or class that a call leads to without a generator, if its callee is known."""
    made = project.resolver.owner(site.function) if name.endswith(".__init__") else name
    if _has_own_order(project, made) or _is_ruled_out(project, path, site, name):
        return None
    for environment in calling_contexts(project, site):
        call = Closure(path, site.call, environment)
        for outside, inner in _constructor_calls(project, call, name):
            assert isinstance(inner.value, Call)
            word, parameters = _SPLITS[outside]
            given = read_arguments(project.value_sources, inner, parameters)
            if given.complete and not passes_value(project.value_sources, given, "generator"):
                return word
    return None


def _is_ruled_out(project: ValueFlow, path: str, site: CallSite, name: str) -> bool:
    """Whether a test around says that the callee is another: ``if kind == RandomSampler: … else: kind(dataset)``."""
    for guard in site.guards:
        match guard.value:
            case Operation(op=op, operands=(Ref() as asked, other)) if (guard.kind, op) in _INEQUALITIES:
                if is_same_reference(asked, site.call.func) and name in project.names(path, other):
                    return True
    return False


_INEQUALITIES = frozenset({("else", "=="), ("else", "is"), ("if", "!="), ("if", "is not")})


def _has_own_order(project: ValueFlow, name: str) -> bool:
    """Whether a subclass gives itself a generator (``self.generator = …``), or iterates in an order of its own.

    torch's samplers draw from ``self.generator`` if it is set, whatever their constructor was given.
    """
    own = [*filter(in_project, project.resolver.ancestry(name))]
    if any(_is_given(project.resolver.instance_attributes(each).get("generator", ())) for each in own):
        return True
    iterating = next(
        (word for each in own for word in project.resolver.methods(each, "__iter__") if in_project(word)), None
    )
    return iterating is not None and not any(
        simple_name(each) == "__iter__" and class_of(qualifier_of(each)) in _SPLITS
        for site in project.calls(path_of(iterating))
        if site.function == iterating
        for each in site.names
    )


def _is_given(assigned: Iterable[tuple[str, str, Expression]]) -> bool:
    return any(not is_none(value) for _, _, value in assigned)


def _is_split(project: ValueFlow, name: str) -> bool:
    """Whether a name is one of torch's, or of a class of the project that inherits from one; most are neither."""
    if not in_project(name):
        return not is_instance(name) and constructed_class(name) in _SPLITS
    resolver = project.resolver
    return bool(resolver.classes(name)) and not _SPLITS.keys().isdisjoint(resolver.ancestry(name))


def _constructor_calls(project: ValueFlow, call: Closure, name: str) -> Iterator[tuple[str, Closure]]:
    """The calls of torch's constructors that a call runs: directly, in a subclass, or through a subclass's constructor."""
    assert isinstance(call.value, Call)
    base = constructed_class(name)
    if base in _SPLITS and not (name.endswith("__init__") and forwards_star_arguments(project, call.path, call.value)):
        yield base, call._replace(value=without_self(call.value))
    elif project.resolver.classes(name) and not _SPLITS.keys().isdisjoint(project.resolver.ancestry(name)):
        for outside, inner in project.value_sources.construct(call, name).library_calls:
            own = isinstance(inner.value, Call) and (
                inner.value == call.value or forwards_star_arguments(project, inner.path, inner.value)
            )
            if outside in _SPLITS and own and isinstance(inner.value, Call):
                yield outside, inner._replace(value=without_self(inner.value))
