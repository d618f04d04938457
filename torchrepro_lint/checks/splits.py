"""TRL303: random splits and samplers that draw from the global generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.dataloader import seeded_first
from torchrepro_lint.constructions import own_arguments
from torchrepro_lint.facts import Call, span
from torchrepro_lint.loaders import hands_on, scopes
from torchrepro_lint.passing import passes, read_arguments
from torchrepro_lint.rule import Finding
from torchrepro_lint.scoped import Scoped

if TYPE_CHECKING:
    from torchrepro_lint.project import Site
    from torchrepro_lint.rule import Context

CODE = "TRL303"
_PLACES = ("torch.utils.data", "torch.utils.data.dataset", "torch.utils.data.sampler")
_PARAMETERS = {
    "random_split": ("dataset", "lengths", "generator"),
    "RandomSampler": ("data_source", "replacement", "num_samples", "generator"),
    "WeightedRandomSampler": ("weights", "num_samples", "replacement", "generator"),
    "SubsetRandomSampler": ("indices", "generator"),
}
_KNOWN = {f"{place}.{word}": (word, parameters) for word, parameters in _PARAMETERS.items() for place in _PLACES}


def check(context: Context) -> Iterator[Finding]:
    """Each call whose arguments can be read and that gets no generator of its own."""
    for site in context.project.calls(context.path):
        found = next((one for name in site.names if (one := _drawing(context, site, name))), None)
        if found is not None:
            word, seeded = found, seeded_first(context, site.function)
            what = "draws its split" if word == "random_split" else "draws its order"
            message = f"{word} {what} from the global generator; pass generator=torch.Generator().manual_seed(...)"
            if seeded:
                message += "; as it is, it repeats only while every earlier draw stays the same"
            yield Finding(CODE, span(site.call), message, severity="note" if seeded else "")


def _drawing(context: Context, site: Site, name: str) -> str | None:
    """The function or class that a call leads to without a generator."""
    project = context.project
    if not _is_known(context, name):
        return None
    for scope in scopes(project, site):
        call = Scoped(context.path, site.call, scope)
        for outside, inner in _reached(context, call, name):
            assert isinstance(inner.value, Call)
            word, parameters = _KNOWN[outside]
            given = read_arguments(project.origins, inner, parameters)
            if given.complete and not passes(project.origins, given, "generator"):
                return word
    return None


def _is_known(context: Context, name: str) -> bool:
    """Whether a name is one of torch's, or of a class of the project that inherits from one; most are neither."""
    if ":" not in name:
        return name.removesuffix(".__init__").removesuffix("()") in _KNOWN
    resolver = context.project.resolver
    return bool(resolver.classes(name)) and not _KNOWN.keys().isdisjoint(resolver.ancestry(name))


def _reached(context: Context, call: Scoped, name: str) -> Iterator[tuple[str, Scoped]]:
    """Torch's constructors that a call runs: by its own name, in a subclass, or through a subclass's constructor."""
    assert isinstance(call.value, Call)
    base = name.removesuffix(".__init__").removesuffix("()")
    if base in _KNOWN and not (name.endswith("__init__") and hands_on(context.project, call.path, call.value)):
        yield base, call._replace(value=own_arguments(call.value))
    elif context.project.resolver.classes(name) and not _KNOWN.keys().isdisjoint(
        context.project.resolver.ancestry(name)
    ):
        for outside, inner in context.project.origins.construct(call, name).outside:
            own = isinstance(inner.value, Call) and (
                inner.value is call.value or hands_on(context.project, inner.path, inner.value)
            )
            if outside in _KNOWN and own and isinstance(inner.value, Call):
                yield outside, inner._replace(value=own_arguments(inner.value))
