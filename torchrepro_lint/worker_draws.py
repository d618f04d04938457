"""Draws from numpy's global generator where a loader's workers fetch samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.transforming import own_draws

if TYPE_CHECKING:
    from torchrepro_lint.loader_queries import LoaderQueries
    from torchrepro_lint.trace.trace import Happening

_BASES = frozenset(
    f"torch.utils.data.{place}{word}"
    for place in ("", "dataset.")
    for word in ("Dataset", "IterableDataset", "MapDataPipe")
)
_FETCH = ("__getitem__", "__getitems__", "__iter__", "__next__")


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
        for word in _FETCH:
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
