"""The fixes of TRL301 that need a worker function: for torch before 1.9, and for datasets with a generator of their own."""

from __future__ import annotations

from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.generators import generator_edits
from torchrepro_lint.checks.fixes.helpers import Helper, provide_helper
from torchrepro_lint.domain.loaders.constructions import Loader
from torchrepro_lint.domain.loaders.workers import WORKER_INIT
from torchrepro_lint.source.text import Edit, Fix, NoFix, join_insertions
from torchrepro_lint.syntax.qualified_names import class_of, in_project, is_instance, path_of
from torchrepro_lint.syntax.scopes import control_flow_position
from torchrepro_lint.trace.traces import Traces

_TORCH, _NUMPY, _RANDOM = ("torch", "torch"), ("numpy", "np"), ("random", "random")

SEED_WORKER = Helper(
    "seed_worker",
    '''\
def seed_worker(worker_id):
    """Seed NumPy and Python's random from the seed that torch gives each worker."""
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)''',
    modules=(_RANDOM, _NUMPY, _TORCH),
)
# For each generator that a dataset may own: the expression that recreates it, and its module.
_REMADE = {
    "numpy.random.default_rng()": ("np.random.default_rng(torch.initial_seed())", _NUMPY),
    "numpy.random.RandomState()": ("np.random.RandomState(torch.initial_seed() % 2**32)", _NUMPY),
    "random.Random()": ("random.Random(torch.initial_seed())", _RANDOM),
}


def fix_workers(project: Traces, path: str, loader: Loader, *, owns: bool) -> Fix | NoFix:
    """Pass a function that seeds each worker, and a seeded generator, from which the workers get their seeds."""
    call, text = loader.site.call, project.text(path)
    helper = _dataset_helper(project, loader) if owns else SEED_WORKER
    if helper is None:
        return NoFix("it is not known which attribute of the dataset holds its generator")
    given = provide_helper(project, path, text, helper, _first_caller(project, path, call.start))
    if given is None:
        return NoFix("there is no place above the loader for a function that seeds the workers")
    word, function = given
    generator = () if loader.passes("generator") else generator_edits(project, path, call)
    if isinstance(generator, NoFix):
        return generator
    named = next((arg for arg in call.args if arg.keyword == WORKER_INIT), None)
    init = replace_argument(named, word) if named else append_argument(call, text, f"{WORKER_INIT}={word}")
    return Fix(
        "Seed each worker",
        _joined_edits((*function, *generator[:-1], init, *generator[-1:])),
        safe=False,
        takes_seed=True,
    )


def _joined_edits(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits, joined where they insert at one place; an import that two need is written once."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.span == each.span and _lines(edit) <= _lines(each) for each in kept):
            kept.append(edit)
    return join_insertions(kept)


def _lines(edit: Edit) -> set[str]:
    return set(edit.text.splitlines())


def _dataset_helper(project: Traces, loader: Loader) -> Helper | None:
    """The helper for the one generator that the dataset itself owns."""
    found: set[tuple[str, str]] = set()
    for each in loader.values("dataset"):
        for name in project.names(each.path, each.value):
            if not in_project(name) or not is_instance(name):
                return None
            for owner in project.resolver.ancestry(class_of(name)):
                for word, values in project.resolver.instance_attributes(owner).items() if in_project(owner) else ():
                    for _, method, value in values:
                        kinds = project.names(path_of(method), value)
                        found.update((word, kind) for kind in kinds if kind in _REMADE)
    if len(found) != 1:
        return None
    word, kind = found.pop()
    made, module = _REMADE[kind]
    source = f'''\
def seed_worker(worker_id):
    """Give the dataset of each worker a generator that is seeded from torch's."""
    torch.utils.data.get_worker_info().dataset.{word} = {made}'''
    return Helper("seed_worker", source, modules=(module, _TORCH))


def _first_caller(project: Traces, path: str, offset: int) -> int:
    """The start of the first top-level statement that may call the function."""
    position = control_flow_position(project.files[path], offset)
    return position.spots[0].statement.start if position and position.function is None else len(project.text(path))
