"""Call targets, the edges of the call graph: the functions of a project that calling, iterating or indexing a value enters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import path_of

if TYPE_CHECKING:
    from torchrepro_lint.names import Names


def entered(names: Names, name: str, kind: str) -> Iterator[str]:
    """The functions of the project that calling, iterating or indexing a value of the project runs."""
    if kind == "call" and names.functions(name):
        yield from _wrappers(names, name)
        yield name
    elif kind == "call" and names.classes(name):
        yield from _methods(names, name, ("__new__", "__init__", "__post_init__"))
    elif kind == "call" and name.endswith("()"):
        yield from names.call_methods(name)
    elif kind == "enter" and name.endswith("()"):
        yield from _methods(names, name[:-2], ("__enter__", "__aenter__"))
    elif name.endswith("()"):
        words = ("__iter__", "__next__", "__getitem__", "__getitems__") if kind == "iterate" else ("__getitem__",)
        yield from _methods(names, name[:-2], words)


def _wrappers(names: Names, name: str) -> Iterator[str]:
    """What a decorator of the project puts in a function's place: what ``decorate`` or ``factory(7)`` returns."""
    path = path_of(name)
    for function in names.functions(name):
        for decorator in function.decorators:
            for target in names.names(path, decorator):
                if ":" in target and names.functions(target) and target != name:
                    yield from (each for each in names.returns(target) if names.functions(each) and each != name)


def _methods(names: Names, owner: str, words: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        yield from (target for target in names.methods(owner, word) if names.functions(target))
