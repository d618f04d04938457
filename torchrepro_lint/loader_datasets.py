"""What is read of a loader's dataset: ``loader.dataset.resample``."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.loaders import loader_kinds
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.nodes import Call, Expression, Ref

_WORD = "dataset"


def through_loader(names: Names, path: str, read: Ref) -> tuple[str, ...]:
    """What a reference means that goes through the dataset of a loader which the project makes; nothing for another."""
    if _WORD not in read.path[:-1]:
        return ()
    at = read.path.index(_WORD)
    loader = read._replace(path=read.path[:at])
    found: set[str] = set()
    for file, made in names.made(path, loader):
        for dataset in _datasets(names, file, made) if isinstance(made, Call) else ():
            for name in names.names(file, dataset):
                found.update(names.follow(name, read.path[at + 1 :]) if ":" in name else ())
    return tuple(sorted(found))


def _datasets(names: Names, path: str, made: Call) -> Iterator[Expression]:
    """What a call that makes a loader is given to load from."""
    for name in names.names(path, made.func):
        if (kind := loader_kinds().get(name)) is not None and kind.dataset:
            place = kind.parameters.index(kind.dataset) if kind.dataset in kind.parameters else -1
            plain = [arg.value for arg in made.args if arg.keyword is None and not arg.star]
            yield from plain[place : place + 1] if place >= 0 else ()
            yield from (arg.value for arg in made.args if arg.keyword == kind.dataset)
