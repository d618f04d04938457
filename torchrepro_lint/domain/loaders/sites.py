"""The DataLoaders that a module constructs, with what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.conditions import HIDDEN, Truth, evaluate
from torchrepro_lint.catalogue.loaders import LoaderKind, loader_kinds
from torchrepro_lint.catalogue.rows import Spelling
from torchrepro_lint.dataflow.arguments import constants, own_arguments, passes, read_arguments, values
from torchrepro_lint.dataflow.environment import Arguments, Scope, Scoped
from torchrepro_lint.dataflow.feasibility import is_off, truth
from torchrepro_lint.syntax.nodes import Call, Expression, Ref

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.program_index import Site

# A function that is called from more places is taken once, with whatever they pass.
_MOST_CALLERS = 24


class Loader(NamedTuple):
    """A DataLoader; ``label`` is its class as the code names it. Where what it is given depends on who calls the function
    that makes it, there is one for each caller.
    """

    site: Site
    kind: LoaderKind
    label: str
    arguments: Arguments
    origins: ValueSources

    def values(self, word: str) -> tuple[Scoped, ...]:
        """The expressions that may be given for a parameter."""
        return values(self.origins, self.arguments, word)

    def passes(self, word: str) -> bool:
        """Whether something other than None may be given for a parameter."""
        return passes(self.origins, self.arguments, word)

    def constants(self, word: str) -> list[object] | None:
        """The literal values that may be given for a parameter; None where one of them is no literal."""
        return constants(self.origins, self.arguments, word)

    @property
    def shuffles(self) -> bool:
        """Whether its order may be drawn."""
        given = next((arg.value for arg in self.site.call.args if arg.keyword == "shuffle"), None)
        tested = any(is_off(each, given) for each in self.site.guards)
        return not tested and shuffles(self.origins, self.kind, self.arguments)

    @property
    def has_workers(self) -> bool:
        """Whether ``num_workers`` is passed and not known to be 0."""
        known = self.constants("num_workers")
        return known is None or any(value != 0 for value in known)


def samples(loader: Loader) -> bool:
    """Whether a loader of a kind that draws to make a sample may do so with these arguments."""

    def argument(word: str) -> Expression | None:
        values = loader.values(word)
        return values[0].value if len(values) == 1 else (HIDDEN if values else None)

    return evaluate(loader.kind.when, Spelling(loader.kind.name), argument) is not Truth.FAILS


def shuffles(origins: ValueSources, kind: LoaderKind, arguments: Arguments) -> bool:
    """Whether the order of a loader may be drawn: ``shuffle`` not known to be false, and no sampler passed."""
    if passes(origins, arguments, "sampler") or passes(origins, arguments, "batch_sampler") or not kind.shuffles:
        return False
    given = arguments.given.get("shuffle", ())
    if given and all(truth(origins, each.path, each.value, each.scope) is False for each in given):
        return False  # ``shuffle=mode == "train"``
    known = constants(origins, arguments, "shuffle")
    return known is None or any(known)


def by_site(found: Iterable[Loader]) -> Iterator[list[Loader]]:
    """The loaders of each call together: those that its callers make."""
    return (list(each) for _, each in groupby(found, key=lambda loader: id(loader.site.call)))


def find_loaders(project: ValueFlow, path: str) -> Iterator[Loader]:
    """The DataLoaders of a module, also those that may be given more than can be read.

    A subclass whose constructor hands on ``**kwargs`` counts where it is constructed, another one in its constructor.
    """
    for site in project.calls(path):
        found = next(filter(None, (_construction(project, path, site, name) for name in site.names)), None)
        if found is not None:
            kind, calls = found
            label = _label(site.call.func, kind)
            for call in calls:
                arguments = read_arguments(project.origins, call, kind.parameters)
                yield Loader(site, kind, label, arguments, project.origins)


def _construction(project: ValueFlow, path: str, site: Site, name: str) -> tuple[LoaderKind, list[Scoped]] | None:
    """The kind of loader that calling ``name`` constructs, and the calls of its constructor, one for each caller."""
    kinds = loader_kinds()
    if name in kinds:
        return kinds[name], [Scoped(path, site.call, scope) for scope in scopes(project, site)]
    base = name.removesuffix(".__init__").removesuffix("()")
    if base in kinds and name.endswith("__init__"):
        if hands_on(project, path, site.call):
            return None
        return kinds[base], [Scoped(path, own_arguments(site.call), scope) for scope in scopes(project, site)]
    if project.resolver.classes(name) and not kinds.keys().isdisjoint(project.resolver.ancestry(name)):
        return _of_subclass(project, path, site, name)
    return None


def _of_subclass(project: ValueFlow, path: str, site: Site, name: str) -> tuple[LoaderKind, list[Scoped]] | None:
    calls: list[Scoped] = []
    kind: LoaderKind | None = None
    for scope in scopes(project, site):
        for base, call in project.origins.construct(Scoped(path, site.call, scope), name).outside:
            own = isinstance(call.value, Call) and (call.value is site.call or hands_on(project, call.path, call.value))
            if base in loader_kinds() and own and isinstance(call.value, Call):
                kind = loader_kinds()[base]
                calls.append(call if call.value is site.call else call._replace(value=own_arguments(call.value)))
    return (kind, calls) if kind is not None else None


def kind_of(name: str) -> LoaderKind | None:
    """The kind of loader that a class from outside is."""
    return loader_kinds().get(name)


def scopes(project: ValueFlow, site: Site) -> list[Scope]:
    """What the callers of the function around a call pass, one by one; nothing known where none is seen."""
    found = list(project.scopes_of(site.function))
    return found if 0 < len(found) <= _MOST_CALLERS else [Scope()]


def hands_on(project: ValueFlow, path: str, call: Call) -> bool:
    """Whether a constructor passes on what it collects as ``*args`` or ``**kwargs``."""
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
