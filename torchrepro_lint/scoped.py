"""Expressions together with what is known of the variables in them: what one particular call passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchrepro_lint.syntax.nodes import Expression


class Scope(NamedTuple):
    """What parameters (``path:f.<locals>.x``) are given, what their ``*`` and ``**`` parameters collect, and the class of
    the object that ``self`` is (empty: not known).
    """

    given: Mapping[str, tuple[Scoped, ...]] = {}
    stars: Mapping[str, Arguments] = {}
    owner: str = ""


class Scoped(NamedTuple):
    """An expression of a file in a scope."""

    path: str
    value: Expression
    scope: Scope = Scope()


class Arguments(NamedTuple):
    """What a call passes, or a dictionary holds: by name, and by position beyond the parameters that have names.

    Where several values are possible all are given. ``complete`` is false where there may be more that is not known.
    """

    given: Mapping[str, tuple[Scoped, ...]] = {}
    spare: tuple[Scoped, ...] = ()
    complete: bool = True


UNKNOWN = Arguments(complete=False)


def over(one: Arguments, other: Arguments) -> Arguments:
    """Both, where the second's values replace those of the first."""
    return Arguments({**one.given, **other.given}, one.spare + other.spare, one.complete and other.complete)


def either(one: Arguments, other: Arguments) -> Arguments:
    """One of two."""
    words = dict.fromkeys((*one.given, *other.given))
    given = {word: distinct((*one.given.get(word, ()), *other.given.get(word, ()))) for word in words}
    return Arguments(given, one.spare or other.spare, one.complete and other.complete)


def distinct(values: Iterable[Scoped]) -> tuple[Scoped, ...]:
    """The values without repetitions, by identity: expressions are records that stay as long as the facts."""
    return tuple({(each.path, id(each.value), id(each.scope)): each for each in values}.values())
