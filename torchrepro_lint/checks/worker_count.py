"""TRL305 and TRL306: loaders whose batches depend on timing, or on how many processors a machine has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.arguments import replace_argument
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.loaders.sites import by_site
from torchrepro_lint.source.text import Fix
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, If, Ref, span
from torchrepro_lint.syntax.visitor import within

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import Scoped
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.domain.loaders.sites import Loader
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.syntax.use_def import Spot

_COUNTS = frozenset(
    {
        *("os.cpu_count", "os.process_cpu_count", "os.sched_getaffinity", "multiprocessing.cpu_count"),
        *("torch.multiprocessing.cpu_count", "psutil.cpu_count", "joblib.cpu_count", "torch.get_num_threads"),
        *("torch.cuda.device_count", "multiprocess.cpu_count", "loky.cpu_count"),
    }
)


def out_of_order(context: Context) -> Iterator[Finding]:
    """TRL305: ``in_order=False`` with more than one worker."""
    for each in by_site(context.project.readable_loaders(context.path)):
        loader = next(filter(_overtakes, each), None)
        if loader is not None:
            message = f"{loader.label}(in_order=False) returns batches as workers finish them; write in_order=True"
            yield Finding("TRL305", span(loader.site.call), message, _in_order(loader))


def _overtakes(loader: Loader) -> bool:
    orders, workers = loader.constants("in_order"), loader.constants("num_workers")
    return bool(orders) and not any(orders or ()) and (workers is None or any(count not in (0, 1) for count in workers))


def _in_order(loader: Loader) -> Fix | None:
    arg = next((arg for arg in loader.site.call.args if arg.keyword == "in_order"), None)
    if arg is None or not isinstance(arg.value, Constant):
        return None
    return Fix("return batches in order", (replace_argument(arg, "True"),), safe=False)


def machine_dependent(context: Context) -> Iterator[Finding]:
    """TRL306: a number of workers that is the machine's, where they draw, or share a stream of samples."""
    for each in by_site(context.project.readable_loaders(context.path)):
        found = next(((loader, source) for loader in each if (source := _counted(context, loader))), None)
        if found is not None:
            loader, source = found
            message = (
                f"{loader.label} has as many workers as {source} says, and how random numbers are shared out among them "
                "depends on that; write a number"
            )
            yield Finding("TRL306", span(_place(loader)), message)


def _counted(context: Context, loader: Loader) -> str:
    """The function that counts processors for a loader, where it matters how many workers there are."""
    there = context.project.uses.spots(context.path).of(loader.site.call)
    source = next(
        filter(None, (_source(context.project, loader, there, each, 0) for each in loader.values("num_workers"))), ""
    )
    return source if source and (_streams(loader) or context.project.fetching.of_loader(loader)) else ""


def _source(project: ValueFlow, loader: Loader, there: Spot | None, count: Scoped, depth: int) -> str:
    """The function that counts processors, in a value or behind a variable in it, for a loader that stands ``there``."""
    for each in within(count.value) if depth < 6 else ():
        if isinstance(each, Call):
            for name in project.names(count.path, each.func):
                if name in _COUNTS and not _is_apart(project, there, count.path, each):
                    return name
        elif each is not count.value:
            for behind in loader.origins.of(count._replace(value=each)):
                if behind.value is not each and (found := _source(project, loader, there, behind, depth + 1)):
                    return found
    return ""


def _is_apart(project: ValueFlow, there: Spot | None, path: str, call: Call) -> bool:
    """Whether a value stands in one branch of a test of an attribute, and the loader in the other branch of the same test."""
    spot = project.uses.spots(path).of(call)
    if spot is None or there is None:
        return False
    tests = dict(_tests(there))
    return any(tests.get(words, number) != number for words, number in _tests(spot))


def _tests(spot: Spot) -> Iterator[tuple[tuple[str, ...], int]]:
    """The attributes of ``self`` that the ``if`` statements around a place ask for, with the branch that it is in."""
    for block in spot.blocks:
        match block.owner:
            case If(test=Ref(roots=(root,), path=words)) if words and root.endswith(".self"):
                yield words, block.number


def _streams(loader: Loader) -> bool:
    """Whether the dataset is iterated, so that each worker goes along a part of it."""
    resolver = loader.origins.project.resolver
    for each in loader.values(loader.kind.dataset) if loader.kind.dataset else ():
        if isinstance(each.value, Call):
            for name in loader.origins.project.names(each.path, each.value.func):
                if any(base.endswith(".IterableDataset") for base in resolver.ancestry(name)):
                    return True
    return False


def _place(loader: Loader) -> Arg | Call:
    return next((arg for arg in loader.site.call.args if arg.keyword == "num_workers"), loader.site.call)
