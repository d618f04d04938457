"""TRL304: datasets that draw from numpy's global generator, which workers did not seed before torch 1.9."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import transform_models
from torchrepro_lint.checks.dataloader import WORKERS_SEED_NUMPY
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.domain.loaders.constructions import loader_paths, loaders
from torchrepro_lint.domain.loaders.fetch_effects import NOT_FIXED, fetch_effects
from torchrepro_lint.domain.loaders.workers import WORKER_INIT, leaves_numpy
from torchrepro_lint.domain.programs import worker_trace
from torchrepro_lint.query.database import query
from torchrepro_lint.source.files import release
from torchrepro_lint.syntax.nodes import Call, Collection, Expression, Record, Ref, span
from torchrepro_lint.syntax.qualified_names import class_of, in_project, is_instance, qualname_of
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.traces import Context, Traces

CODE = "TRL304"


def check(context: Context) -> Iterator[Finding]:
    """Each draw that a dataset of the project reaches, unless all its loaders seed their workers or have none."""
    if release(context.catalogue.version) >= WORKERS_SEED_NUMPY:
        return
    for draw in numpy_worker_draws(context.project):
        call = draw.trace_event.event.value
        if draw.trace_event.path == context.path and isinstance(call, Call):
            message = (
                f"{draw.label} in {draw.owner} draws from numpy's global generator, which all workers copy in torch "
                f"{context.catalogue.version}, so that each repeats the same numbers; draw from torch, or seed numpy in worker_init_fn"
            )
            yield Finding(CODE, span(call), message)


_DATASET_BASES = frozenset(
    f"torch.utils.data.{place}{word}"
    for place in ("", "dataset.")
    for word in ("Dataset", "IterableDataset", "MapDataPipe")
)
_DATASET_FETCH = ("__getitem__", "__getitems__", "__iter__", "__next__")


class WorkerDraw(Record, frozen=True):
    """A draw by its public name, and the dataset method that leads to it (``Boxes.__getitem__``)."""

    label: str
    owner: str
    trace_event: TraceEvent


@query()
def numpy_worker_draws(project: Traces) -> tuple[WorkerDraw, ...]:
    """The draws from NumPy's global generator that workers reach through the project's datasets: each once, by the first dataset that
    leads to it; without datasets whose loaders all seed their workers.
    """
    return tuple(_find_numpy_draws(project))


def _find_numpy_draws(project: Traces) -> Iterator[WorkerDraw]:
    seen: set[tuple[str, Expression | None]] = set()
    tended = _seeded_datasets(project)
    datasets = (each for each in project.resolver.all_classes() if each not in tended and _is_dataset(project, each))
    for owner in datasets:
        for word in _DATASET_FETCH:
            for method in project.resolver.methods(owner, word):
                if not project.resolver.functions(method):
                    continue
                short = f"{qualname_of(owner)}.{word}"
                functions = tuple(dict.fromkeys((method, *_composed(project, owner))))
                for draw in worker_trace(project, functions, owner).unseeded_draws():
                    place = draw.trace_event.path, draw.trace_event.event.value
                    if draw.family == "numpy" and place not in seen:
                        seen.add(place)
                        yield WorkerDraw(draw.label, short, draw.trace_event)


def _composed(project: Traces, owner: str) -> Iterator[str]:
    """What libraries' transforms run that a dataset is made with: ``Crop.__call__`` of ``Rows(Compose([Crop()]))``."""
    for path, made in project.resolver.call_graph.constructor_calls(owner):
        for arg in made.args:
            yield from _functions_within(project, Closure(path, arg.value), limits.MAX_CALLABLE_NESTING, inside=False)


def _functions_within(project: Traces, given: Closure, depth: int, *, inside: bool) -> Iterator[str]:
    for each in project.value_sources.of(given) if depth else ():
        match each.value:
            case Collection(items=items):
                parts, within = items, inside
            case Call(func=func, args=args):
                names = project.names(each.path, func)
                made = [method for name in names for method in project.resolver.call_methods(name)]
                yield from filter(in_project, made if inside else ())
                runs = any(row.inner for name in names for row in transform_models(name, project.libraries))
                parts, within = tuple(arg.value for arg in args if runs), True
            case Ref() if inside:
                names = project.names(each.path, each.value)
                yield from (name for name in names if project.resolver.functions(name))
                continue
            case _:
                continue
        for part in parts:
            if part is not None:
                yield from _functions_within(project, each._replace(value=part), depth - 1, inside=within)


def _is_dataset(project: Traces, owner: str) -> bool:
    bases = project.resolver.ancestry(owner)
    return any(base in _DATASET_BASES or base.startswith("torchvision.datasets.") for base in bases)


def _seeded_datasets(project: Traces) -> set[str]:
    """The dataset classes that have loaders, all of them without workers, with a function that may seed NumPy, or over objects that do not draw."""
    good, bad = set[str](), set[str]()
    for path in loader_paths(project):
        for loader in loaders(project, path):
            seeds = loader.passes(WORKER_INIT) and not leaves_numpy(project, loader)
            known = not loader.has_workers or seeds or loader.kind.seeds_workers
            known = known or fetch_effects(project).of_loader(loader).isdisjoint(NOT_FIXED[True])
            kept = good if known or not loader.arguments.complete else bad
            for each in loader.values(loader.kind.dataset) if loader.kind.dataset else ():
                kept.update(_dataset_classes(project, each.path, each.value))
    return good - bad


def _dataset_classes(project: Traces, path: str, value: object) -> Iterator[str]:
    """The datasets that an expression creates, inside wrappers too."""
    if isinstance(value, Call):
        for name in project.names(path, value.func):
            if project.resolver.classes(name):
                yield from filter(in_project, project.resolver.ancestry(name))
        for arg in value.args:
            for name in project.names(path, arg.value):
                if is_instance(name) and project.resolver.classes(class_of(name)):
                    yield class_of(name)
