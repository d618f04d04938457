"""TRL301: a function that seeds each worker, for torch before 1.9 and for datasets with a generator of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.edits import append_argument, replace_argument
from torchrepro_lint.helpers import Helper, provide
from torchrepro_lint.rewrites.fix_generator import generator_edits
from torchrepro_lint.source.text import Edit, Fix, joined
from torchrepro_lint.syntax.control_flow import level_of
from torchrepro_lint.syntax.nodes import path_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.loaders.sites import Loader
    from torchrepro_lint.domain.project import Project

_WORD = "worker_init_fn"
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
# For each generator that a dataset may own: how it is made anew, and the module for that.
_AGAIN = {
    "numpy.random.default_rng()": ("np.random.default_rng(torch.initial_seed())", _NUMPY),
    "numpy.random.RandomState()": ("np.random.RandomState(torch.initial_seed() % 2**32)", _NUMPY),
    "random.Random()": ("random.Random(torch.initial_seed())", _RANDOM),
}


def fix_workers(project: Project, path: str, loader: Loader, *, owns: bool) -> Fix | None:
    """Pass a function that seeds each worker, and a seeded generator, from which the workers' seeds come."""
    call, text = loader.site.call, project.text(path)
    helper = _of_dataset(project, loader) if owns else SEED_WORKER
    if helper is None:
        return None
    given = provide(project, path, text, helper, _first(project, path, call.start))
    if given is None:
        return None
    word, function = given
    generator = () if loader.passes("generator") else generator_edits(project, path, call)
    if not generator and not loader.passes("generator"):
        return None
    named = next((arg for arg in call.args if arg.keyword == _WORD), None)
    init = replace_argument(named, word) if named else append_argument(call, text, f"{_WORD}={word}")
    return Fix("seed each worker", _together((*function, *generator[:-1], init, *generator[-1:])), safe=False)


def _together(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Both arguments go to one place; what is written at one place is one edit, and an import that both need is one line."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.span == each.span and _lines(edit) <= _lines(each) for each in kept):
            kept.append(edit)
    return joined(kept)


def _lines(edit: Edit) -> set[str]:
    return set(edit.text.splitlines())


def _of_dataset(project: Project, loader: Loader) -> Helper | None:
    """For the one generator that the dataset itself owns."""
    found: set[tuple[str, str]] = set()
    for each in loader.values("dataset"):
        for name in project.names(each.path, each.value):
            if ":" not in name or not name.endswith("()"):
                return None
            for owner in project.resolver.ancestry(name[:-2]):
                for word, values in project.resolver.instance_attributes(owner).items() if ":" in owner else ():
                    for _, method, value in values:
                        kinds = project.names(path_of(method), value)
                        found.update((word, kind) for kind in kinds if kind in _AGAIN)
    if len(found) != 1:
        return None
    word, kind = found.pop()
    made, module = _AGAIN[kind]
    source = f'''\
def seed_worker(worker_id):
    """Give the dataset of each worker a generator that is seeded from torch's."""
    torch.utils.data.get_worker_info().dataset.{word} = {made}'''
    return Helper("seed_worker", source, modules=(module, _TORCH))


def _first(project: Project, path: str, offset: int) -> int:
    """The start of the top-level statement that may call the function first."""
    level = level_of(project.files[path], offset)
    return level.spots[0].statement.start if level and level.function is None else len(project.text(path))
