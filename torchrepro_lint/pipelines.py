"""Code that trains nothing: it prepares data, shows pictures, or exports a network. No gradient is kept of what it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Constant, parted, path_of
from torchrepro_lint.syntax.visitor import expressions, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex, Site
    from torchrepro_lint.syntax.nodes import Expression

# Short names of base classes, the project's or a library's. Modules among them belong to a network.
_PREPARING = ("Dataset", "Data", "DataModule", "Transform", "IterDataPipe", "MapDataPipe")
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module")
# What functions are called that make one layer of several, whose gradients nobody asks for any more.
_FOLDING = re.compile(r"_?(fuse|fold|merge|reparam\w*|switch_to_deploy|convert_to_deploy)(_\w+)?")
# What packages and modules are called that hold such code alone; networks among what prepares data are trained all the
# same, and those that are made to be exported are not.
_OF_DATA = re.compile(r"data|data_?sets?|data_?loaders?|loaders?|samplers?")
_OF_OUTPUT = re.compile(r"visuali[sz]\w*|plot(s|ting)?|export(er|ers|s|ing)?|export_\w+|\w+_export")
_STEPS = re.compile(r"_?(pre_?process\w*|collate\w*|load_(\w+_)?data(_?set|_?loader)?)")


def trains_nothing(project: ProgramIndex, function: str) -> bool:
    """Whether a function is a method of a dataset or transform, or stands in one, in a module for such things, or is
    called after such a step.
    """
    path, _, name = parted(function)
    outer = name.partition(".<locals>.")[0]
    words = path.removesuffix(".py").split("/")
    if _STEPS.fullmatch(outer.rpartition(".")[2]) or any(map(_OF_OUTPUT.fullmatch, words)):
        return True
    owner = project.resolver.owner(f"{path}:{outer}")
    ancestry = project.resolver.ancestry(owner) if owner else ()
    if set(_MODULES).intersection(ancestry):
        return False
    if any(_word(each).endswith(_PREPARING) for each in ancestry[1:]) or any(map(_OF_DATA.fullmatch, words)):
        return True
    return "transforms" in words[:-1] and path.rpartition("/")[0] in _transforming(project)


def _transforming(project: ProgramIndex) -> frozenset[str]:
    """The directories in which classes stand that are transforms of data: what they are made of is there, too."""
    known: frozenset[str] | None = project.kept.get("transforming")
    if known is None:
        resolver = project.resolver
        classes = [each for each in resolver.all_classes() if "transforms/" in path_of(each)]
        known = frozenset(
            path_of(each).rpartition("/")[0]
            for each in classes
            if any(_word(base).endswith("Transform") for base in resolver.ancestry(each)[1:])
        )
        project.kept["transforming"] = known
    return known


def made_for_inference(site: Site) -> bool:
    """Whether a layer is made without a gradient at once, or by a function that folds layers into one for inference."""
    if _FOLDING.fullmatch(_word(site.function)):
        return True
    return any(_is_switched_off(each, site.call) for value in expressions(site.statement) for each in within(value))


def _is_switched_off(each: Expression, made: Call) -> bool:
    """``nn.Conv2d(...).to(device).requires_grad_(False)``."""
    match each:
        case Call(func=Attribute(value=value, name="requires_grad_"), args=(Arg(value=Constant(value=False)),)):
            while isinstance(value, Call) and value is not made and isinstance(value.func, Attribute):
                value = value.func.value
            return value is made
    return False


def _word(name: str) -> str:
    return name.rpartition(".")[2].rpartition(":")[2]
