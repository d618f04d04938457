"""Value sources as the modules of that analysis see it: the questions that they ask of the whole, and what it answers.

Expressions together with what is known of the variables in them: what one particular call passes.

Which scopes say the same: they are made anew for each question, so their identity tells nothing.

Which code says nothing of the object that it runs for, nor of what one call passes: it does the same in many scopes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from torchrepro_lint.syntax.nodes import Expression, Function, Ref
from torchrepro_lint.syntax.visitor import expressions, statements, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchrepro_lint.query.fixpoint import Allowance
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.definitions import Assignments, Change, Mutations
    from torchrepro_lint.syntax.nodes import Operation


class Construction(NamedTuple):
    """An object of a class of the project: the scope of its methods, and the calls of constructors from outside that its
    own leads to, each with the constructor's class.
    """

    scope: Scope
    outside: tuple[tuple[str, Scoped], ...]


class Step(NamedTuple):
    """A value that is given, or a change of it in place, in a file; ``certain`` if it happens always."""

    path: str
    certain: bool
    value: Scoped | Arguments | None = None
    change: Change | None = None


class ValueSources(Protocol):
    """Where values come from: what ``origins`` answers."""

    project: ProgramIndex
    certain: dict[tuple[int, int], bool]
    choices: dict[int, tuple[Operation, ...]]
    dictionaries: Allowance

    def of(self, scoped: Scoped, steps: int = ...) -> tuple[Scoped, ...]:
        """The expressions that an expression may stand for; itself where nothing is behind it."""
        ...

    def assignments(self, path: str) -> Assignments:
        """What the variables of a file are given."""
        ...

    def mutations(self, path: str) -> Mutations:
        """What the statements of a file do to dictionaries and lists."""
        ...

    def history(self, scoped: Scoped, *, changes: bool = True) -> Iterator[Step]:
        """What a variable or an attribute is given before a place, and with ``changes`` the statements that may change it."""
        ...

    def set_attributes(self, path: str, words: Sequence[str], made: Scoped | None = None) -> list[Scoped]:
        """What a file sets as attributes of these names."""
        ...

    def added_to(self, made: Scoped, words: Sequence[str]) -> Iterator[Scoped]:
        """What a file adds to lists that are attributes of these names of what a call has made."""
        ...

    def runs(self, path: str, function: Function, offset: int, scope: Scope) -> bool:
        """Whether a place of a function can be reached with what a scope passes."""
        ...

    def construct(self, call: Scoped, owner: str) -> Construction:
        """The object of a class of the project that a call makes."""
        ...

    def collected(self, scoped: Scoped) -> Arguments:
        """The items of a list or tuple, those that are added later among them, as spare arguments."""
        ...


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
