"""Random splits and samplers that get no generator of their own.

What the workers of a loader draw that nothing of the loader's own fixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.arguments import own_arguments, passes, read_arguments
from torchrepro_lint.dataflow.environment import Scoped
from torchrepro_lint.domain.loaders.sites import hands_on, scopes
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation, Ref, path_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.loaders.sites import Loader
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.program_index import Site


_PLACES = ("torch.utils.data", "torch.utils.data.dataset", "torch.utils.data.sampler")
PARAMETERS = {
    "random_split": ("dataset", "lengths", "generator"),
    "RandomSampler": ("data_source", "replacement", "num_samples", "generator"),
    "WeightedRandomSampler": ("weights", "num_samples", "replacement", "generator"),
    "SubsetRandomSampler": ("indices", "generator"),
}
_KNOWN = {f"{place}.{word}": (word, parameters) for word, parameters in PARAMETERS.items() for place in _PLACES}


def random_splits(project: Project, path: str) -> Iterator[tuple[Site, str]]:
    """The calls of a file that draw from the global generator, with the function or class of torch that they lead to."""
    for site in project.calls(path):
        for name in site.names:
            if _is_known(project, name) and (found := _drawing(project, path, site, name)) is not None:
                yield site, found
                break


def takes_generator(site: Site) -> bool:
    """Whether all that may be called takes a generator, as far as it is known: ``DistributedSampler`` takes none."""
    return all(name in _KNOWN for name in site.names if name.startswith("torch."))


def _drawing(project: Project, path: str, site: Site, name: str) -> str | None:
    """The function or class that a call leads to without a generator, where what it calls is known."""
    made = project.resolver.owner(site.function) if name.endswith(".__init__") else name
    if _orders_itself(project, made) or _is_ruled_out(project, path, site, name):
        return None
    for scope in scopes(project, site):
        call = Scoped(path, site.call, scope)
        for outside, inner in _reached(project, call, name):
            assert isinstance(inner.value, Call)
            word, parameters = _KNOWN[outside]
            given = read_arguments(project.origins, inner, parameters)
            if given.complete and not passes(project.origins, given, "generator"):
                return word
    return None


def _is_ruled_out(project: Project, path: str, site: Site, name: str) -> bool:
    """Whether a test around says that what is called is another: ``if kind == RandomSampler: … else: kind(dataset)``."""
    for guard in site.guards:
        match guard.value:
            case Operation(op=op, operands=(Ref() as asked, other)) if (guard.kind, op) in _OTHERS:
                func = site.call.func
                same = isinstance(func, Ref) and (asked.roots, asked.path) == (func.roots, func.path)
                if same and name in project.names(path, other):
                    return True
    return False


_OTHERS = frozenset({("else", "=="), ("else", "is"), ("if", "!="), ("if", "is not")})


def _orders_itself(project: Project, name: str) -> bool:
    """Whether a subclass gives itself a generator (``self.generator = …``), or goes along in an order of its own.

    torch's samplers draw from ``self.generator`` where it is there, whatever their constructor was given.
    """
    own = [each for each in project.resolver.ancestry(name) if ":" in each]
    if any(_is_given(project.resolver.instance_attributes(each).get("generator", ())) for each in own):
        return True
    iterating = next((word for each in own for word in project.resolver.methods(each, "__iter__") if ":" in word), None)
    return iterating is not None and not any(
        each.endswith(".__iter__") and each.removesuffix(".__iter__").removesuffix("()") in _KNOWN
        for site in project.calls(path_of(iterating))
        if site.function == iterating
        for each in site.names
    )


def _is_given(assigned: Iterable[tuple[str, str, Expression]]) -> bool:
    return any(not (isinstance(value, Constant) and value.value is None) for _, _, value in assigned)


def _is_known(project: Project, name: str) -> bool:
    """Whether a name is one of torch's, or of a class of the project that inherits from one; most are neither."""
    if ":" not in name:
        return name.removesuffix(".__init__").removesuffix("()") in _KNOWN
    resolver = project.resolver
    return bool(resolver.classes(name)) and not _KNOWN.keys().isdisjoint(resolver.ancestry(name))


def _reached(project: Project, call: Scoped, name: str) -> Iterator[tuple[str, Scoped]]:
    """Torch's constructors that a call runs: by its own name, in a subclass, or through a subclass's constructor."""
    assert isinstance(call.value, Call)
    base = name.removesuffix(".__init__").removesuffix("()")
    if base in _KNOWN and not (name.endswith("__init__") and hands_on(project, call.path, call.value)):
        yield base, call._replace(value=own_arguments(call.value))
    elif project.resolver.classes(name) and not _KNOWN.keys().isdisjoint(project.resolver.ancestry(name)):
        for outside, inner in project.origins.construct(call, name).outside:
            own = isinstance(inner.value, Call) and (
                inner.value is call.value or hands_on(project, inner.path, inner.value)
            )
            if outside in _KNOWN and own and isinstance(inner.value, Call):
                yield outside, inner._replace(value=own_arguments(inner.value))


# What a generator of the loader leaves as it is: from the release on in which workers seed numpy, and before it.
_LEFT = {False: frozenset({"own"}), True: frozenset({"own", "numpy", "unknown"})}


def loose_draws(project: Project, loader: Loader, *, before: bool) -> frozenset[str]:
    """The generators that workers may draw from and that the call does not fix; ``before`` that release or not.

    MONAI's loader seeds its own workers; Lightning's ``seed_everything(workers=True)`` those of all loaders.
    """
    seeded = loader.passes("worker_init_fn") or loader.kind.seeds_workers or project.seeds_workers
    if not loader.has_workers or seeded:
        return frozenset()
    draws = project.fetching.of_loader(loader)
    return draws & _LEFT[before] if loader.passes("generator") else draws
