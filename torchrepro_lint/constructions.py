"""Constructions of the project's objects: what their constructors are given, and so their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.passing import bind, read_arguments
from torchrepro_lint.resolve.registries import fields
from torchrepro_lint.scoped import Scope, Scoped
from torchrepro_lint.syntax.nodes import Call, Expression, Ref, path_of
from torchrepro_lint.value_context import Construction

if TYPE_CHECKING:
    from torchrepro_lint.value_context import ValueSources

_MOST_BASES = 8


def construct(origins: ValueSources, call: Scoped, owner: str) -> Construction:
    """What a call that constructs ``owner`` passes on through the constructors of the class and its bases."""
    scope = Scope({}, {}, owner)
    outside: list[tuple[str, Scoped]] = []
    queue = [(call, name) for name in origins.project.resolver.methods(owner, "__init__")]
    if not any(":" in name for _, name in queue):
        scope = _of_dataclass(origins, call, scope)
    for _ in range(_MOST_BASES):
        if not queue:
            break
        each, name = queue.pop(0)
        for function in origins.project.resolver.functions(name):
            scope = bind(origins, each, name, function, skip=not passes_self(each.value), outer=scope)
            path = path_of(name)
            queue += [(Scoped(path, inner, scope), target) for inner, target in _next(origins, name)]
        if ":" not in name:
            outside.append((name.removesuffix(".__init__").removesuffix("()"), each))
    return Construction(scope, tuple(outside))


def _next(origins: ValueSources, name: str) -> Iterator[tuple[Call, str]]:
    """The calls of other constructors in a constructor: ``super().__init__(...)``, ``Base.__init__(self, ...)``."""
    for site in origins.project.calls(path_of(name)):
        if site.function == name:
            yield from ((site.call, target) for target in site.names if target.endswith(".__init__") and target != name)


def passes_self(call: Expression) -> bool:
    """Whether a call is ``Base.__init__(self, ...)``."""
    match call:
        case Call(func=Ref(path=(*_, "__init__")), args=(first, *_)):
            return first.keyword is None and not first.star
    return False


def own_arguments(call: Call) -> Call:
    """The call without the ``self`` that it passes by hand."""
    return call._replace(args=call.args[1:]) if passes_self(call) else call


def _of_dataclass(origins: ValueSources, call: Scoped, scope: Scope) -> Scope:
    """The fields of a dataclass are given by name or in their order; they are known as the class's variables."""
    names = fields(origins.project.resolver, scope.owner)
    words = list(dict.fromkeys(name.rpartition(".")[2] for name in names))
    if not names:
        return scope
    passed = read_arguments(origins, call, words)
    given = {name: passed.given[word] for name in names if (word := name.rpartition(".")[2]) in passed.given}
    return scope._replace(given=given)
