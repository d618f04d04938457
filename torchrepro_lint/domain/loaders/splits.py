"""Random splits and samplers without a generator, and unseeded worker draws.

The latter are what the workers of a loader draw from generators that none of the loader's arguments fixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.dataflow.arguments import passes_value, read_arguments, without_self
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.domain.loaders.queries import Loader, calling_contexts, forwards_star_arguments
from torchrepro_lint.domain.project import Project
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation, Ref
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    constructed_class,
    in_project,
    path_of,
    qualifier_of,
    simple_name,
)

_MODULES = ("torch.utils.data", "torch.utils.data.dataset", "torch.utils.data.sampler")
SPLIT_PARAMETERS = {
    "random_split": ("dataset", "lengths", "generator"),
    "RandomSampler": ("data_source", "replacement", "num_samples", "generator"),
    "WeightedRandomSampler": ("weights", "num_samples", "replacement", "generator"),
    "SubsetRandomSampler": ("indices", "generator"),
}
_SPLITS = {f"{place}.{word}": (word, parameters) for word, parameters in SPLIT_PARAMETERS.items() for place in _MODULES}


def splits_without_generator(project: Project, path: str) -> Iterator[tuple[CallSite, str]]:
    """The calls of a file that draw from the global generator, with torch's function or class that they lead to."""
    for site in project.calls(path):
        for name in site.names:
            if _is_split(project, name) and (found := _split_without_generator(project, path, site, name)) is not None:
                yield site, found
                break


def takes_generator(site: CallSite) -> bool:
    """Whether all known callees take a generator: ``DistributedSampler`` takes none."""
    return all(name in _SPLITS for name in site.names if name.startswith("torch."))


def _split_without_generator(project: Project, path: str, site: CallSite, name: str) -> str | None:
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


def _is_ruled_out(project: Project, path: str, site: CallSite, name: str) -> bool:
    """Whether a test around says that the callee is another: ``if kind == RandomSampler: … else: kind(dataset)``."""
    for guard in site.guards:
        match guard.value:
            case Operation(op=op, operands=(Ref() as asked, other)) if (guard.kind, op) in _INEQUALITIES:
                func = site.call.func
                same = isinstance(func, Ref) and (asked.roots, asked.path) == (func.roots, func.path)
                if same and name in project.names(path, other):
                    return True
    return False


_INEQUALITIES = frozenset({("else", "=="), ("else", "is"), ("if", "!="), ("if", "is not")})


def _has_own_order(project: Project, name: str) -> bool:
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
    return any(not (isinstance(value, Constant) and value.value is None) for _, _, value in assigned)


def _is_split(project: Project, name: str) -> bool:
    """Whether a name is one of torch's, or of a class of the project that inherits from one; most are neither."""
    if not in_project(name):
        return constructed_class(name) in _SPLITS
    resolver = project.resolver
    return bool(resolver.classes(name)) and not _SPLITS.keys().isdisjoint(resolver.ancestry(name))


def _constructor_calls(project: Project, call: Closure, name: str) -> Iterator[tuple[str, Closure]]:
    """The calls of torch's constructors that a call runs: directly, in a subclass, or through a subclass's constructor."""
    assert isinstance(call.value, Call)
    base = constructed_class(name)
    if base in _SPLITS and not (name.endswith("__init__") and forwards_star_arguments(project, call.path, call.value)):
        yield base, call._replace(value=without_self(call.value))
    elif project.resolver.classes(name) and not _SPLITS.keys().isdisjoint(project.resolver.ancestry(name)):
        for outside, inner in project.value_sources.construct(call, name).library_calls:
            own = isinstance(inner.value, Call) and (
                inner.value is call.value or forwards_star_arguments(project, inner.path, inner.value)
            )
            if outside in _SPLITS and own and isinstance(inner.value, Call):
                yield outside, inner._replace(value=without_self(inner.value))


# The generators that a loader with a generator does not fix, since workers seed NumPy and before that release.
_NOT_FIXED = {False: frozenset({"own"}), True: frozenset({"own", "numpy", "unknown"})}


def unseeded_worker_draws(project: Project, loader: Loader, *, before: bool) -> frozenset[str]:
    """The generators that workers may draw from and that the loader does not fix; ``before``: before workers seed
    NumPy.

    MONAI's loader seeds its own workers; Lightning's ``seed_everything(workers=True)`` those of all loaders of its program.
    """
    seeded = (
        loader.passes("worker_init_fn")
        or loader.kind.seeds_workers
        or (project.seeds_workers() and project.seeds_workers_of(loader.site.function))
    )
    if not loader.has_workers or seeded:
        return frozenset()
    draws = project.fetch_effects.of_loader(loader)
    return draws & _NOT_FIXED[before] if loader.passes("generator") else draws
