"""Which code says nothing of the object that it runs for, nor of what one call passes: it does the same in many scopes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Function, Ref
from torchrepro_lint.syntax.visitor import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.scoped import Scope, Scoped


class Unbound:
    """Places of a project that stand for the same in all scopes of which a key says the same."""

    def __init__(self, project: ProgramIndex) -> None:
        self._project = project
        # By the files and starts of functions.
        self._own: dict[tuple[str, int], bool] = {}

    def is_one(self, place: Scoped) -> bool:
        """Whether a place is one: the functions around it are given nothing by its scope, and do not name their object."""
        functions = self._project.files[place.path].functions
        around = [each for each in functions if each.start <= place.value.start < each.end]
        return not any(_is_given(place.path, each, place.scope) or self._is_own(place.path, each) for each in around)

    def _is_own(self, path: str, function: Function) -> bool:
        key = path, function.start
        if key not in self._own:
            self._own[key] = _names_object(function)
        return self._own[key]


def key_of(place: Scoped) -> Hashable:
    """What tells such a place from others: the class of the object decides which methods run, and the files that make it
    may set attributes from outside.
    """
    given = place.scope.given
    makers = frozenset(each.path for values in given.values() for each in values)
    return place.path, id(place.value), place.scope.owner, bool(given), makers


def _is_given(path: str, function: Function, scope: Scope) -> bool:
    own = f"{path}{function.name}.<locals>."
    return any(name.startswith(own) for name in (*scope.given, *scope.stars))


def _names_object(function: Function) -> bool:
    """Whether a method names its first parameter, or what it inherits."""
    if not function.owner or not function.params:
        return False
    first = f"{function.name}.<locals>.{function.params[0].name}"
    return any(
        isinstance(each, Ref) and any(root == first or root.endswith(".<super>") for root in each.roots)
        for statement in statements(function.body)
        for expression in expressions(statement)
        for each in within(expression)
    )
