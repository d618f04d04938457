"""Calls that list a directory in the order that the file system gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.infer.kinds import kinds_of
from torchrepro_lint.order.shapes import LISTING, WALK, Shape
from torchrepro_lint.syntax.nodes import Attribute, Expression, Ref
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.value_flow import ValueFlow

_FUNCTIONS = {
    "os.listdir": "os.listdir",
    "os.scandir": "os.scandir",
    "os.walk": "os.walk",
    "os.fwalk": "os.fwalk",
    "glob.glob": "glob.glob",
    "glob.iglob": "glob.iglob",
}
_METHODS = frozenset({"iterdir", "glob", "rglob", "walk"})
_LISTS = frozenset({"os.listdir", "glob.glob"})


class Listing(NamedTuple):
    """A listing: how people write it, what it holds, and whether it is a list (else an iterator)."""

    site: Site
    label: str
    shape: Shape
    is_list: bool


def listings(project: ValueFlow, path: str) -> Iterator[Listing]:
    """The listings of a module."""
    for site in project.calls(path):
        label = _label(project, path, site)
        if label:
            walks = label.rpartition(".")[2] in ("walk", "fwalk")
            yield Listing(site, label, WALK if walks else LISTING, label in _LISTS)


def _label(project: ValueFlow, path: str, site: Site) -> str:
    for name in site.names:
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
    return _of_path(project, path, site) if last_word(site.call.func) in _METHODS else ""


def _of_path(project: ValueFlow, path: str, site: Site) -> str:
    match site.call.func:
        case Ref(path=(*words, word)):
            receiver: Expression = site.call.func._replace(path=tuple(words))
        case Attribute(value=value, name=word):
            receiver = value
        case _:
            return ""
    return f"Path.{word}" if _is_path(project, path, receiver) else ""


def _is_path(project: ValueFlow, path: str, receiver: Expression) -> bool:
    """Whether inference knows a path, or where it knows nothing, whether something of the project passes one."""
    kinds = kinds_of(project)
    known = kinds.of(path, receiver).kind
    if known or not isinstance(receiver, Ref):
        return known == "path"
    found = project.resolver.values(path, receiver)
    return any(kinds.of(file, value).kind == "path" for file, value in found if value != receiver)
