"""The DataLoaders of a module, and whether what their workers run may draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.facts import Call, Collection, Constant, Expression, Ref
from torchrepro_lint.passing import Arguments, read_arguments
from torchrepro_lint.project import Project, Site
from torchrepro_lint.runs import LOADERS

PARAMETERS = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory"),
    *("drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
)

# torchvision's transforms that draw nothing (v1 and v2), and those that hold others.
_DETERMINISTIC = frozenset(
    (
        *("ToTensor", "PILToTensor", "ConvertImageDtype", "ToPILImage", "ToImage", "ToDtype", "ToPureTensor"),
        *("ToCVImage", "Normalize", "Resize", "CenterCrop", "FiveCrop", "TenCrop", "Pad", "Grayscale"),
        *("LinearTransformation", "GaussianBlurFixed", "Identity", "Lambda", "SanitizeBoundingBoxes"),
        *("ConvertBoundingBoxFormat", "ClampBoundingBoxes", "UniformTemporalSubsample", "RGB"),
    )
)
_CONTAINERS = frozenset({"Compose", "Sequential"})
_WRAPPERS = frozenset(
    {
        "torch.utils.data.Subset",
        "torch.utils.data.ConcatDataset",
        "torch.utils.data.dataset.Subset",
        "torch.utils.data.random_split",
        "torch.utils.data.dataset.random_split",
        "torch.utils.data.dataset.ConcatDataset",
    }
)
_STILL = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})
_OWNED = frozenset(
    {"numpy.random.default_rng()", "numpy.random.RandomState()", "numpy.random.Generator()", "random.Random()"}
)
_TRANSFORM_ARGUMENTS = ("transform", "target_transform", "transforms")


class Loader(NamedTuple):
    """The construction of a DataLoader; ``label`` is its class as the code names it."""

    site: Site
    arguments: Arguments
    label: str

    @property
    def shuffles(self) -> bool:
        """Whether its order may be drawn: ``shuffle`` not known to be false, and no sampler passed."""
        given = self.arguments
        if given.passes("sampler") or given.passes("batch_sampler") or "shuffle" not in given.given:
            return False
        known = given.constants("shuffle")
        return known is None or any(known)

    @property
    def has_workers(self) -> bool:
        """Whether ``num_workers`` is passed and not known to be 0."""
        if "num_workers" not in self.arguments.given:
            return False
        known = self.arguments.constants("num_workers")
        return known is None or any(value != 0 for value in known)


def loaders(project: Project, path: str) -> Iterator[Loader]:
    """The DataLoaders that a module constructs whose arguments can be read: by the class, or by a subclass's super()."""
    for site in project.calls(path):
        kind = next((name for name in site.names if is_loader(project, name)), None)
        if kind is not None:
            arguments = read_arguments(project, path, site.call, PARAMETERS)
            if arguments.complete:
                yield Loader(site, arguments, _label(site.call.func, kind))


def is_loader(project: Project, name: str) -> bool:
    """Whether calling ``name`` passes its arguments to a DataLoader's constructor."""
    if name in LOADERS:
        return True
    if name.endswith("().__init__"):
        return name.removesuffix("().__init__") in LOADERS
    if ":" in name and project.resolver.classes(name):
        inits = project.resolver.methods(name, "__init__")
        own = any(project.resolver.functions(init) for init in inits)
        return not own and bool(LOADERS.intersection(project.resolver.ancestry(name)))
    return False


def _label(func: Expression, kind: str) -> str:
    if isinstance(func, Ref) and not kind.endswith("__init__"):
        return (func.path or (kind.rpartition(".")[2].rpartition(":")[2],))[-1]
    return "DataLoader"


def owns_generator(project: Project, path: str, expression: Expression) -> bool:
    """Whether a dataset keeps a generator of its own, which no worker seeds."""
    for name in _dataset_names(project, path, expression):
        if ":" in name and name.endswith("()"):
            for owner in project.resolver.ancestry(name[:-2]):
                for values in project.resolver.instance_attributes(owner).values() if ":" in owner else ():
                    for _, method, value in values:
                        if _OWNED.intersection(project.names(method.partition(":")[0], value)):
                            return True
    return False


def _dataset_names(project: Project, path: str, expression: Expression) -> Iterator[str]:
    for file, value in _unwrapped(project, path, expression):
        yield from project.names(file, value)


def _unwrapped(project: Project, path: str, expression: Expression, depth: int = 0) -> Iterator[tuple[str, Expression]]:
    """The datasets inside ``Subset``, ``ConcatDataset`` and the parts of ``random_split``."""
    for file, value in project.values(path, expression):
        names = [name.replace("[]", "").removesuffix("()") for name in project.names(file, value)]
        call = _construction(project, file, value)
        if call is not None and depth < 8 and any(name in _WRAPPERS for name in names) and call[1].args:
            inner = call[1].args[0].value
            items = [item for item in inner.items if item] if isinstance(inner, Collection) else [inner]
            for item in items:
                yield from _unwrapped(project, call[0], item, depth + 1)
        elif isinstance(value, Ref) and value.path[-1:] == ("dataset",) and depth < 8:
            yield from _of_loader(project, file, value, depth)
        else:
            yield file, value


def _of_loader(project: Project, path: str, value: Ref, depth: int) -> Iterator[tuple[str, Expression]]:
    """The dataset of ``loader.dataset``."""
    found = False
    for file, made in project.resolver.made(path, value._replace(path=value.path[:-1])):
        if isinstance(made, Call) and any(is_loader(project, name) for name in project.names(file, made.func)):
            for owner, given in read_arguments(project, file, made, PARAMETERS).given.get("dataset", ()):
                found = True
                yield from _unwrapped(project, owner, given, depth + 1)
    if not found:
        yield path, value


def _construction(project: Project, path: str, value: Expression) -> tuple[str, Call] | None:
    """The call that made a value: itself, or for a part of an unpacked result, what was unpacked."""
    if isinstance(value, Call):
        return path, value
    if isinstance(value, Ref) and not value.path:
        for root in value.roots:
            for name in project.resolver.modules.resolve(path, root):
                for how, source in project.resolver.assigned(name):
                    if how == "[]" and isinstance(source, Call):
                        return name.partition(":")[0], source
    return None


def may_draw(project: Project, arguments: Arguments) -> bool:
    """Whether the dataset, its transforms or ``collate_fn`` may draw; false only where they are known not to."""
    collate = arguments.given.get("collate_fn", [])
    if any(_callable_draws(project, file, value) for file, value in collate):
        return True
    datasets = arguments.given.get("dataset", [])
    return not datasets or any(
        _dataset_draws(project, file, value)
        for given, expression in datasets
        for file, value in _unwrapped(project, given, expression)
    )


def _dataset_draws(project: Project, path: str, value: Expression) -> bool:
    found = project.names(path, value)
    call = _construction(project, path, value)
    if not found:
        return True
    for name in found:
        plain = name.removesuffix("()").replace("[]", "")
        if plain in _STILL:
            continue
        if ":" in name and name.endswith("()"):
            if _class_draws(project, name[:-2], call):
                return True
        elif not plain.startswith("torchvision.datasets.") or call is None or _transforms_draw(project, *call):
            return True
    return False


def _transforms_draw(project: Project, path: str, call: Call) -> bool:
    """Whether a torchvision dataset's transforms may draw; positions differ, so unnamed arguments are looked at too."""
    for arg in call.args:
        if arg.star or (arg.keyword in _TRANSFORM_ARGUMENTS and _callable_draws(project, path, arg.value)):
            return True
        if arg.keyword is None and not isinstance(arg.value, Constant):
            names = project.names(path, arg.value)
            if any("transform" in name for name in names) and _callable_draws(project, path, arg.value):
                return True
    return False


def _class_draws(project: Project, owner: str, call: tuple[str, Call] | None) -> bool:
    """Whether fetching a sample from a project's dataset may draw: it draws, or calls what it was given."""
    words = ("__getitem__", "__getitems__", "__iter__", "__next__")
    methods = [m for word in words for m in project.resolver.methods(owner, word) if project.resolver.functions(m)]
    outside = [base for base in project.resolver.ancestry(owner) if ":" not in base and not _plain_base(base)]
    if any(not base.startswith("torchvision.datasets.") for base in outside) or not (methods or outside):
        return True
    if outside and (call is None or _transforms_draw(project, *call)):
        return True  # a subclass of torchvision's datasets applies the transforms that it is given
    effects = project.effects_of(methods)
    if effects.draws:
        return True
    return any(_given_draws(project, owner, word, call) for word in effects.unknown_calls)


def _plain_base(base: str) -> bool:
    return base.startswith(("torch.utils.data.", "typing.", "abc.")) or base in (
        "builtins.object",
        "torchvision.datasets.VisionDataset",
        "torchvision.datasets.vision.VisionDataset",
    )


def _given_draws(project: Project, owner: str, word: str, call: tuple[str, Call] | None) -> bool:
    """Whether what ``self.word`` was given at the construction may draw; nothing given is nothing called."""
    if call is None:
        return True
    file, construction = call
    inits = [m for m in project.resolver.methods(owner, "__init__") if project.resolver.functions(m)]
    for init in inits:
        params = project.resolver.functions(init)[0].params[1:]
        by_name = read_arguments(project, file, construction, [param.name for param in params])
        sources = _sources(project, owner, word, {param.name for param in params})
        if not by_name.complete or not sources:
            return True
        for source in sorted(sources):
            values = by_name.given.get(source)
            if values is None:
                default = next(param.default for param in params if param.name == source)
                values = [] if default is None else [(init.partition(":")[0], default)]
            if any(_callable_draws(project, path, value) for path, value in values):
                return True
    return not inits


def _sources(project: Project, owner: str, word: str, params: set[str]) -> set[str]:
    """The constructor's parameters that ``self.word`` is assigned from."""
    found: set[str] = set()
    for each in project.resolver.ancestry(owner):
        for _, _, value in project.resolver.instance_attributes(each).get(word, ()) if ":" in each else ():
            if isinstance(value, Ref) and not value.path:
                found |= {root.rpartition(".")[2] for root in value.roots} & params
    return found


def _callable_draws(project: Project, path: str, expression: Expression) -> bool:
    """Whether a transform, ``collate_fn`` or the like may draw when called."""
    if isinstance(expression, Constant):
        return False
    return any(_one_draws(project, file, value) for file, value in project.values(path, expression))


def _one_draws(project: Project, path: str, value: Expression) -> bool:
    if isinstance(value, Constant):
        return False
    if isinstance(value, Collection):
        return any(item is not None and _callable_draws(project, path, item) for item in value.items)
    names = project.names(path, value)
    if not names:
        return True
    for name in names:
        if ":" in name:
            functions = [name] if project.resolver.functions(name) else []
            functions += project.resolver.call_methods(name) if name.endswith("()") else ()
            effects = project.effects_of(functions)
            if not functions or effects.draws or effects.unknown_calls:
                return True
        elif not _known_still(project, path, name, value):
            return True
    return False


def _known_still(project: Project, path: str, name: str, value: Expression) -> bool:
    parts = name.removesuffix("()").split(".")
    if parts[0] == "torchvision" and "transforms" in parts and isinstance(value, Call):
        inner = (arg.value for arg in value.args)
        if parts[-1] in _CONTAINERS or parts[-1] == "Lambda":
            return not any(_callable_draws(project, path, each) for each in inner)
        return parts[-1] in _DETERMINISTIC
    return name.startswith(("torch.utils.data.default_collate", "torch.utils.data.dataloader.default_collate"))
