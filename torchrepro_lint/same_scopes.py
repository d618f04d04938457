"""Which scopes say the same: they are made anew for each question, so their identity tells nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

from torchrepro_lint.scoped import Scope, Scoped
from torchrepro_lint.syntax.nodes import Ref

_Numbers: TypeAlias = dict[int, int]


class SameScopes:
    """Numbers of scopes, one for all that say the same."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        # One scope of each number: what is in it stays, so that nothing else gets its identity.
        self._kept: list[Scope] = []

    def number(self, scope: Scope) -> int:
        """The number of a scope."""
        return self._number(scope, {})

    def _number(self, scope: Scope, known: _Numbers) -> int:
        """``known`` are the numbers of those inside the same one: many values have one scope."""
        if (number := known.get(id(scope))) is not None:
            return number
        stars = frozenset(
            (name, self._values(each.given, known), self._places(each.spare, known), each.complete)
            for name, each in scope.stars.items()
        )
        says = scope.owner, self._values(scope.given, known), stars
        number = known[id(scope)] = self._numbers.setdefault(says, len(self._kept))
        if number == len(self._kept):
            self._kept.append(scope)
        return number

    def _values(self, given: Mapping[str, tuple[Scoped, ...]], known: _Numbers) -> Hashable:
        return frozenset((name, self._places(values, known)) for name, values in given.items())

    def _places(self, values: tuple[Scoped, ...], known: _Numbers) -> Hashable:
        return tuple([(each.path, _what(each), self._number(each.scope, known)) for each in values])


def _what(each: Scoped) -> Hashable:
    """References are made up for questions, so they are known by what they say; other expressions stay."""
    value = each.value
    return (value.roots, value.path, value.start) if isinstance(value, Ref) else id(value)
