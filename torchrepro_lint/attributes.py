"""What the attributes of an object of the project are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.scoped import Scope, Scoped
from torchrepro_lint.syntax.nodes import Expression, parted

if TYPE_CHECKING:
    from torchrepro_lint.value_context import ValueSources


def attribute_values(origins: ValueSources, owner: str, word: str, scope: Scope) -> Iterator[Scoped]:
    """What an attribute of an object is given: in the methods of its classes, in their bodies, as a dataclass's field.

    A property is what it returns.
    """
    resolver = origins.project.resolver
    for each in resolver.ancestry(owner):
        path, colon, _ = parted(each)
        name = f"{each}.{word}"
        if not colon:
            continue
        for how, method, value in resolver.instance_attributes(each).get(word, ()):
            if how in ("=", "[]") and all(
                origins.runs(path, function, value.start, scope) for function in resolver.functions(method)
            ):
                yield Scoped(path, value, scope)
        if name in scope.given:
            yield from scope.given[name]
            return
        yield from (Scoped(path, value, scope) for how, value in resolver.assigned(name) if how == "=")
        yield from (Scoped(path, value, scope) for value in _property(origins, name))


def _property(origins: ValueSources, name: str) -> Iterator[Expression]:
    if origins.project.resolver.is_property(name):
        yield from origins.project.resolver.return_expressions(name)
