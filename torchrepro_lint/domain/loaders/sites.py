"""DataLoader construction sites, with their arguments resolved in each calling context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.conditions import UNKNOWN_ARGUMENT, Truth, evaluate
from torchrepro_lint.catalogue.loaders import LoaderKind, loader_kinds
from torchrepro_lint.catalogue.rows import Signature
from torchrepro_lint.dataflow.arguments import (
    argument_constants,
    argument_values,
    passes_value,
    read_arguments,
    without_self,
)
from torchrepro_lint.dataflow.environment import BoundArguments, Closure, Environment
from torchrepro_lint.dataflow.feasibility import evaluate_test, implies_falsy
from torchrepro_lint.syntax.nodes import Call, Expression, Ref

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.program_index import CallSite

# With more callers, a function is analysed once, with unknown arguments.
_MOST_CALLERS = 24


class Loader(NamedTuple):
    """A DataLoader with its arguments in one calling context; ``label`` is its class as the code names it.

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
        given = next((arg.value for arg in self.site.call.args if arg.keyword == "shuffle"), None)
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
    if (
        passes_value(value_sources, arguments, "sampler")
        or passes_value(value_sources, arguments, "batch_sampler")
        or not kind.shuffles
    ):
        return False
    given = arguments.named.get("shuffle", ())
    if given and all(evaluate_test(value_sources, each.path, each.value, each.environment) is False for each in given):
        return False  # ``shuffle=mode == "train"``
    known = argument_constants(value_sources, arguments, "shuffle")
    return known is None or any(known)


def group_by_call(found: Iterable[Loader]) -> Iterator[list[Loader]]:
    """The loaders of each call together, one for each calling context."""
    return (list(each) for _, each in groupby(found, key=lambda loader: id(loader.site.call)))


def find_loaders(project: ValueFlow, path: str) -> Iterator[Loader]:
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
                yield Loader(site, kind, label, arguments, project.value_sources)


def _construction(project: ValueFlow, path: str, site: CallSite, name: str) -> tuple[LoaderKind, list[Closure]] | None:
    """The kind of loader that a call of ``name`` constructs, and the constructor's calls, one for each calling context."""
    kinds = loader_kinds()
    if name in kinds:
        return kinds[name], [Closure(path, site.call, environment) for environment in calling_contexts(project, site)]
    base = name.removesuffix(".__init__").removesuffix("()")
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
    return found if 0 < len(found) <= _MOST_CALLERS else [Environment()]


def forwards_star_arguments(project: ValueFlow, path: str, call: Call) -> bool:
    """Whether a constructor forwards its ``*args`` or ``**kwargs``."""
    for arg in call.args:
        for root in arg.value.roots if arg.star and isinstance(arg.value, Ref) and not arg.value.path else ():
            found = project.resolver.parameter(path + root)
            if found is not None and found.param.kind.startswith("*"):
                return True
    return False


def _label(func: Expression, kind: LoaderKind) -> str:
    word = kind.name.rpartition(".")[2]
    if isinstance(func, Ref) and func.path[-1:] != ("__init__",):
        return (func.path or (func.roots[0].rpartition(".")[2].rpartition(":")[2].lstrip("?"),))[-1]
    return word
