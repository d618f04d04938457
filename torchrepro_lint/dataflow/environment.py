"""Closures: an expression together with the argument environment in which it is evaluated.

An environment is the calling context that value analysis works with: what one particular call passes, and the class
of its receiver. Environments are made anew for each question, so they are hash-consed before they are compared.
Code that reads neither its arguments nor its receiver is context-insensitive: it means the same in all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from torchrepro_lint.syntax.nodes import Expression, Function, Ref
from torchrepro_lint.syntax.visitor import expressions, statements, subexpressions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchrepro_lint.query.fixpoint import Budget
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.definitions import Assignments, ContainerUpdate, MutationSites
    from torchrepro_lint.syntax.nodes import Operation


class Construction(NamedTuple):
    """An object of a class of the project: the scope of its methods, and the calls of constructors from outside that its
    own leads to, each with the constructor's class.
    """

    environment: Environment
    outside: tuple[tuple[str, Closure], ...]


class ReachingDefinition(NamedTuple):
    """A value that is given, or a change of it in place, in a file; ``certain`` if it happens always."""

    path: str
    certain: bool
    value: Closure | BoundArguments | None = None
    change: ContainerUpdate | None = None


class ValueSources(Protocol):
    """Where values come from: what ``origins`` answers."""

    project: ProgramIndex
    certain: dict[tuple[int, int], bool]
    choices: dict[int, tuple[Operation, ...]]
    dictionaries: Budget

    def of(self, closure: Closure, steps: int = ...) -> tuple[Closure, ...]:
        """The expressions that an expression may stand for; itself where nothing is behind it."""
        ...

    def assignments(self, path: str) -> Assignments:
        """What the variables of a file are given."""
        ...

    def mutations(self, path: str) -> MutationSites:
        """What the statements of a file do to dictionaries and lists."""
        ...

    def reaching_definitions(self, closure: Closure, *, changes: bool = True) -> Iterator[ReachingDefinition]:
        """What a variable or an attribute is given before a place, and with ``changes`` the statements that may change it."""
        ...

    def set_attributes(self, path: str, words: Sequence[str], made: Closure | None = None) -> list[Closure]:
        """What a file sets as attributes of these names."""
        ...

    def appended_to(self, made: Closure, words: Sequence[str]) -> Iterator[Closure]:
        """What a file adds to lists that are attributes of these names of what a call has made."""
        ...

    def is_feasible(self, path: str, function: Function, offset: int, environment: Environment) -> bool:
        """Whether a place of a function can be reached with what a scope passes."""
        ...

    def construct(self, call: Closure, owner: str) -> Construction:
        """The object of a class of the project that a call makes."""
        ...

    def list_items(self, closure: Closure) -> BoundArguments:
        """The items of a list or tuple, those that are added later among them, as spare arguments."""
        ...


class Environment(NamedTuple):
    """What parameters (``path:f.<locals>.x``) are given, what their ``*`` and ``**`` parameters collect, and the class of
    the object that ``self`` is (empty: not known).
    """

    arguments: Mapping[str, tuple[Closure, ...]] = {}
    star_arguments: Mapping[str, BoundArguments] = {}
    receiver_class: str = ""


class Closure(NamedTuple):
    """An expression of a file in a scope."""

    path: str
    value: Expression
    environment: Environment = Environment()


class BoundArguments(NamedTuple):
    """What a call passes, or a dictionary holds: by name, and by position beyond the parameters that have names.

    Where several values are possible all are given. ``complete`` is false where there may be more that is not known.
    """

    named: Mapping[str, tuple[Closure, ...]] = {}
    excess: tuple[Closure, ...] = ()
    complete: bool = True


UNKNOWN_ARGUMENTS = BoundArguments(complete=False)


def override(one: BoundArguments, other: BoundArguments) -> BoundArguments:
    """Both, where the second's values replace those of the first."""
    return BoundArguments({**one.named, **other.named}, one.excess + other.excess, one.complete and other.complete)


def join_arguments(one: BoundArguments, other: BoundArguments) -> BoundArguments:
    """One of two."""
    words = dict.fromkeys((*one.named, *other.named))
    given = {word: distinct((*one.named.get(word, ()), *other.named.get(word, ()))) for word in words}
    return BoundArguments(given, one.excess or other.excess, one.complete and other.complete)


def distinct(values: Iterable[Closure]) -> tuple[Closure, ...]:
    """The values without repetitions, by identity: expressions are records that stay as long as the facts."""
    return tuple({(each.path, id(each.value), id(each.environment)): each for each in values}.values())


_Numbers: TypeAlias = dict[int, int]


class HashConsing:
    """Numbers of scopes, one for all that say the same."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        # One scope of each number: what is in it stays, so that nothing else gets its identity.
        self._kept: list[Environment] = []

    def number(self, environment: Environment) -> int:
        """The number of a scope."""
        return self._number(environment, {})

    def _number(self, environment: Environment, known: _Numbers) -> int:
        """``known`` are the numbers of those inside the same one: many values have one scope."""
        if (number := known.get(id(environment))) is not None:
            return number
        star_arguments = frozenset(
            (name, self._values(each.named, known), self._places(each.excess, known), each.complete)
            for name, each in environment.star_arguments.items()
        )
        says = environment.receiver_class, self._values(environment.arguments, known), star_arguments
        number = known[id(environment)] = self._numbers.setdefault(says, len(self._kept))
        if number == len(self._kept):
            self._kept.append(environment)
        return number

    def _values(self, given: Mapping[str, tuple[Closure, ...]], known: _Numbers) -> Hashable:
        return frozenset((name, self._places(values, known)) for name, values in given.items())

    def _places(self, values: tuple[Closure, ...], known: _Numbers) -> Hashable:
        return tuple([(each.path, _identity(each), self._number(each.environment, known)) for each in values])


def _identity(each: Closure) -> Hashable:
    """References are made up for questions, so they are known by what they say; other expressions stay."""
    value = each.value
    return (value.roots, value.path, value.start) if isinstance(value, Ref) else id(value)


class ContextInsensitivity:
    """Places of a project that stand for the same in all scopes of which a key says the same."""

    def __init__(self, project: ProgramIndex) -> None:
        self._project = project
        # By the files and starts of functions.
        self._own: dict[tuple[str, int], bool] = {}

    def is_one(self, place: Closure) -> bool:
        """Whether a place is one: the functions around it are given nothing by its scope, and do not name their object."""
        functions = self._project.files[place.path].functions
        around = [each for each in functions if each.start <= place.value.start < each.end]
        return not any(
            _binds_any(place.path, each, place.environment) or self._is_own(place.path, each) for each in around
        )

    def _is_own(self, path: str, function: Function) -> bool:
        key = path, function.start
        if key not in self._own:
            self._own[key] = _reads_receiver(function)
        return self._own[key]


def context_insensitive_key(place: Closure) -> Hashable:
    """What tells such a place from others: the class of the object decides which methods run, and the files that make it
    may set attributes from outside.
    """
    given = place.environment.arguments
    makers = frozenset(each.path for values in given.values() for each in values)
    return place.path, id(place.value), place.environment.receiver_class, bool(given), makers


def _binds_any(path: str, function: Function, environment: Environment) -> bool:
    own = f"{path}{function.name}.<locals>."
    return any(name.startswith(own) for name in (*environment.arguments, *environment.star_arguments))


def _reads_receiver(function: Function) -> bool:
    """Whether a method names its first parameter, or what it inherits."""
    if not function.owner or not function.params:
        return False
    first = f"{function.name}.<locals>.{function.params[0].name}"
    return any(
        isinstance(each, Ref) and any(root == first or root.endswith(".<super>") for root in each.roots)
        for statement in statements(function.body)
        for expression in expressions(statement)
        for each in subexpressions(expression)
    )
