"""TRL305 and TRL306: loaders whose batches depend on timing, or on the machine's number of processors."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.loaders.constructions import Loader, group_by_call, readable_loaders
from torchrepro_lint.domain.loaders.fetch_effects import fetch_effects
from torchrepro_lint.source.text import Fix, NoFix
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, If, Ref, span
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import subexpressions
from torchrepro_lint.trace.traces import Context

_PROCESSOR_COUNTS = frozenset(
    {
        *("os.cpu_count", "os.process_cpu_count", "os.sched_getaffinity", "multiprocessing.cpu_count"),
        *("torch.multiprocessing.cpu_count", "psutil.cpu_count", "joblib.cpu_count", "torch.get_num_threads"),
        *("torch.cuda.device_count", "multiprocess.cpu_count", "loky.cpu_count"),
    }
)


def out_of_order(context: Context) -> Iterator[Finding]:
    """TRL305: ``in_order=False`` with more than one worker."""
    for each in group_by_call(readable_loaders(context.project, context.path)):
        loader = next(filter(_is_out_of_order, each), None)
        if loader is not None:
            message = f"{loader.label}(in_order=False) returns batches as workers finish them; write in_order=True"
            yield Finding("TRL305", span(loader.site.call), message, _in_order(loader))


def _is_out_of_order(loader: Loader) -> bool:
    orders, workers = loader.constants("in_order"), loader.constants("num_workers")
    return bool(orders) and not any(orders or ()) and (workers is None or any(count not in (0, 1) for count in workers))


def _in_order(loader: Loader) -> Fix | NoFix:
    arg = next((arg for arg in loader.site.call.args if arg.keyword == "in_order"), None)
    if arg is None or not isinstance(arg.value, Constant):
        return NoFix("the value is written elsewhere, and other calls may use it, too")
    from torchrepro_lint.checks.fixes.arguments import replace_argument

    return Fix("Return batches in order", (replace_argument(arg, "True"),), safe=False)


def machine_dependent(context: Context) -> Iterator[Finding]:
    """TRL306: a number of workers that depends on the machine, where workers draw, or split a stream of samples."""
    for each in group_by_call(readable_loaders(context.project, context.path)):
        found = next(((loader, source) for loader in each if (source := _processor_count(context, loader))), None)
        if found is not None:
            loader, source = found
            message = (
                f"{loader.label} has as many workers as {source} says, so the random numbers of a sample depend on "
                "the machine; write a number"
            )
            yield Finding("TRL306", span(_place(loader)), message)


def _processor_count(context: Context, loader: Loader) -> str:
    """The function that counts processors for a loader, where the number of workers makes a difference."""
    there = context.project.uses.spots(context.path).of(loader.site.call)
    source = next(
        filter(None, (_count_source(context.project, loader, there, each, 0) for each in loader.values("num_workers"))),
        "",
    )
    return (
        source if source and (_is_iterable_dataset(loader) or fetch_effects(context.project).of_loader(loader)) else ""
    )


def _count_source(
    project: ValueFlow, loader: Loader, there: ExpressionPosition | None, count: Closure, depth: int
) -> str:
    """The function that counts processors, in a value or behind a variable in it, for a loader at ``there``."""
    for each in subexpressions(count.value) if depth < limits.MAX_COUNT_DEPTH else ():
        if isinstance(each, Call):
            for name in project.names(count.path, each.func):
                if name in _PROCESSOR_COUNTS and not _is_in_other_branch(project, there, count.path, each):
                    return name
        elif each != count.value:
            for behind in loader.value_sources.of(count._replace(value=each)):
                if behind.place != (count.path, each) and (
                    found := _count_source(project, loader, there, behind, depth + 1)
                ):
                    return found
    return ""


def _is_in_other_branch(project: ValueFlow, there: ExpressionPosition | None, path: str, call: Call) -> bool:
    """Whether the value is set in one branch of a test of an attribute, and the loader is in the other branch."""
    position = project.uses.spots(path).of(call)
    if position is None or there is None:
        return False
    tests = dict(_attribute_tests(there))
    return any(tests.get(words, number) != number for words, number in _attribute_tests(position))


def _attribute_tests(position: ExpressionPosition) -> Iterator[tuple[tuple[str, ...], int]]:
    """The attributes of ``self`` that the ``if`` statements around a position test, with the branch."""
    for block in position.blocks:
        match block.owner:
            case If(test=Ref(roots=(root,), path=words)) if words and root.endswith(".self"):
                yield words, block.number


def _is_iterable_dataset(loader: Loader) -> bool:
    """Whether the dataset is iterated, so that each worker gets a part of the stream."""
    resolver = loader.value_sources.project.resolver
    for each in loader.values(loader.kind.dataset) if loader.kind.dataset else ():
        if isinstance(each.value, Call):
            for name in loader.value_sources.project.names(each.path, each.value.func):
                if any(base.endswith(".IterableDataset") for base in resolver.ancestry(name)):
                    return True
    return False


def _place(loader: Loader) -> Arg | Call:
    return next((arg for arg in loader.site.call.args if arg.keyword == "num_workers"), loader.site.call)
