"""Closures: an expression together with the argument environment in which it is evaluated.

An environment is the calling context that value analysis works with: what one particular call passes, and the class
of its receiver. Environments are hash-consed: calls that pass the same have the same one.
Code that reads neither its arguments nor its receiver is context-insensitive: it means the same in all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.definitions import attribute_stores, bound_references, targets
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Expression, Function, Record, Ref
from torchrepro_lint.syntax.qualified_names import is_local, is_super, local_symbol, locals_prefix
from torchrepro_lint.syntax.scopes import functions_around
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import (
    all_expressions,
    all_statements,
    blocks,
    body_expressions,
    is_none,
    last_identifier,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.definitions import Assignments, ContainerUpdate, MutationSites


class Budget:
    """A budget for nested queries: it counts down from ``most`` while a question is open.

    The outermost question starts afresh, so that no answer depends on earlier questions.
    """

    __slots__ = ("_left", "_most", "_open")

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = 0
        self._open = 0

    def begin(self) -> None:
        """Open a question, which costs nothing itself; ``leave`` closes it."""
        if not self._open:
            self._left = self._most
        self._open += 1

    def spend(self) -> bool:
        """Spend one unit on a nested question, until ``leave``. Returns False, with nothing to leave, where none is left."""
        if self._open and self._left <= 0:
            return False
        self.begin()
        self._left -= 1
        return True

    def leave(self) -> None:
        """Close the question that was opened last."""
        self._open -= 1


class ConstructedObject(Record, frozen=True):
    """An abstract object: the environment of its methods, and the calls of library constructors that its own constructor
    reaches, each with the name of the class.
    """

    environment: Environment
    library_calls: tuple[tuple[str, Closure], ...]


class ReachingDefinition(Record, frozen=True):
    """A definition of a variable or attribute, or an in-place update of it, which is ``certain`` if it is executed on every path."""

    path: str
    value: Closure | BoundArguments | None = None
    change: ContainerUpdate | None = None
    certain: bool = False


class ValueSources(Protocol):
    """The protocol of value source analysis, for the modules that implement it."""

    project: ProgramIndex
    certain: dict[tuple[str, Function, int], bool]
    dictionaries: Budget

    def of(self, closure: Closure, steps: int = ...) -> tuple[Closure, ...]:
        """The value sources of an expression; the expression itself if it has no other."""
        ...

    def step_back(self, closure: Closure) -> Iterator[Closure]:
        """The sources of an expression one step back."""
        ...

    def assignments(self, path: str) -> Assignments:
        """The definitions of the variables of a file."""
        ...

    def correlated_tests(self, path: str) -> Mapping[Expression, bool]:
        """The tests of a file that earlier ones decide."""
        ...

    def mutations(self, path: str) -> MutationSites:
        """The in-place updates of containers in a file."""
        ...

    def reaching_definitions(self, closure: Closure, *, changes: bool = True) -> Iterator[ReachingDefinition]:
        """The reaching definitions of a variable or an attribute, and with ``changes`` its in-place updates."""
        ...

    def set_attributes(self, path: str, words: Sequence[str], made: Closure | None = None) -> list[Closure]:
        """The values that a file assigns to attributes of these names."""
        ...

    def appended_to(self, made: Closure, words: Sequence[str]) -> Iterator[Closure]:
        """The values that a file appends to list attributes of these names, of the object that a call constructs."""
        ...

    def is_feasible(self, path: str, function: Function, offset: int, environment: Environment) -> bool:
        """Whether a place of a function can be reached in an environment."""
        ...

    def truth(self, test: Closure) -> bool | None:
        """The truth value of a test of a function; None if it is unknown."""
        ...

    def construct(self, call: Closure, owner: str) -> ConstructedObject:
        """The object of a class of the project that a call constructs."""
        ...

    def list_items(self, closure: Closure) -> BoundArguments:
        """The items of a list or tuple, appended ones included, as excess arguments."""
        ...


_NONE: Mapping[str, Any] = {}
# All environments that anything refers to. Of two revisions of a project they are the same only where all that they hold is.
_INTERNED: WeakValueDictionary[tuple[object, ...], Environment] = WeakValueDictionary()


class Environment(Record, frozen=True, eq=False, order=False, weakref=True):
    """An argument environment: the values of parameters (``path:f.<locals>.x``), what ``*`` and ``**`` parameters collect,
    and the class of ``self`` (empty if unknown).

    Environments are hash-consed: ``of`` returns the same object for the same contents, and each is equal only to itself, so that
    closures are keys at little cost.
    """

    arguments: Mapping[str, tuple[Closure, ...]] = {}
    star_arguments: Mapping[str, BoundArguments] = {}
    receiver_class: str = ""

    @classmethod
    def of(
        cls,
        arguments: Mapping[str, tuple[Closure, ...]] = _NONE,
        star_arguments: Mapping[str, BoundArguments] = _NONE,
        receiver_class: str = "",
    ) -> Environment:
        """The one environment with these contents."""
        stars = [(name, *each.named.items(), each.excess, each.complete) for name, each in star_arguments.items()]
        key = receiver_class, *arguments.items(), *stars
        found = _INTERNED.get(key)
        if found is None:
            found = _INTERNED[key] = cls(arguments, star_arguments, receiver_class)
        return found

    def with_arguments(self, arguments: Mapping[str, tuple[Closure, ...]]) -> Environment:
        """The same environment with other values of the parameters."""
        return Environment.of(arguments, self.star_arguments, self.receiver_class)

    def located(self, call: Closure) -> dict[str, tuple[Closure, ...]]:
        """The arguments of a call, evaluated where the call stands; defaults keep their own place."""
        return {
            name: tuple(
                each._replace(environment=call.environment) if each.path == call.path else each for each in values
            )
            for name, values in self.arguments.items()
        }


class Closure(Record, frozen=True):
    """A closure: an expression of a file and the environment in which it is evaluated."""

    path: str
    value: Expression
    environment: Environment = Environment.of()

    def within(self, value: Expression) -> Closure:
        """An expression of the same place; a literal or a name of the module means the same in every environment."""
        if isinstance(value, Constant) or (
            isinstance(value, Ref) and not any(is_local(root) or is_super(root) for root in value.roots)
        ):
            return Closure(self.path, value)
        return Closure(self.path, value, self.environment)

    @property
    def place(self) -> tuple[str, Expression]:
        """The expression with its file, whatever the environment."""
        return self.path, self.value


class BoundArguments(Record, frozen=True):
    """The arguments of a call, or the entries of a dictionary: by name, and positional ones in excess of the parameters.

    A name has all values that are possible. ``complete`` is false if there may be arguments that are not known.
    """

    named: Mapping[str, tuple[Closure, ...]] = {}
    excess: tuple[Closure, ...] = ()
    complete: bool = True


UNKNOWN_ARGUMENTS = BoundArguments(complete=False)


def override(one: BoundArguments, other: BoundArguments) -> BoundArguments:
    """Both together; the second's values override those of the first."""
    return BoundArguments({**one.named, **other.named}, one.excess + other.excess, one.complete and other.complete)


def join_arguments(one: BoundArguments, other: BoundArguments) -> BoundArguments:
    """The join: one or the other."""
    words = dict.fromkeys((*one.named, *other.named))
    given = {word: distinct((*one.named.get(word, ()), *other.named.get(word, ()))) for word in words}
    return BoundArguments(given, one.excess or other.excess, one.complete and other.complete)


def distinct(values: Iterable[Closure]) -> tuple[Closure, ...]:
    """The values without repetitions."""
    return tuple(dict.fromkeys(values))


# Passing torch's global generator is the same as passing none.
_GLOBAL_GENERATORS = frozenset({"torch.default_generator", "torch.random.default_generator"})


def argument_values(sources: ValueSources, passed: BoundArguments, word: str) -> tuple[Closure, ...]:
    """The value sources of the argument for a parameter."""
    return distinct(each for given in passed.named.get(word, ()) for each in sources.of(given))


def passes_value(sources: ValueSources, passed: BoundArguments, word: str) -> bool:
    """Whether the argument may be something other than None; torch's global generator counts as None."""
    return any(
        not is_none(each.value)
        and not (
            isinstance(each.value, Ref)
            and _GLOBAL_GENERATORS.intersection(sources.project.names(each.path, each.value))
        )
        for each in argument_values(sources, passed, word)
    )


def argument_constants(sources: ValueSources, passed: BoundArguments, word: str) -> list[object] | None:
    """The constants that the argument may be; None if one of its sources is no constant."""
    found = [each.value for each in argument_values(sources, passed, word)]
    known: list[object] = [each.value for each in found if isinstance(each, Constant)]
    return known if len(known) == len(found) else None


class ContextInsensitivity:
    """Which places are context-insensitive: they mean the same in all environments with the same key."""

    def __init__(self, project: ProgramIndex) -> None:
        self._project = project
        # By file and start of the function.
        self._own: dict[tuple[str, int], bool] = {}

    def is_one(self, place: Closure) -> bool:
        """Whether a place is context-insensitive: its environment binds nothing of the enclosing functions, and they do not read
        their receiver.
        """
        return not any(
            _binds_any(place.path, each, place.environment) or self._is_own(place.path, each)
            for each in functions_around(self._project.files[place.path], place.value.start)
        )

    def _is_own(self, path: str, function: Function) -> bool:
        key = path, function.start
        if key not in self._own:
            self._own[key] = _reads_receiver(function)
        return self._own[key]


def context_insensitive_key(place: Closure) -> Hashable:
    """The key of a context-insensitive place: the class of the receiver decides which methods run, and the files that
    construct it may set its attributes.
    """
    given = place.environment.arguments
    makers = frozenset(each.path for values in given.values() for each in values)
    return place.path, place.value, place.environment.receiver_class, bool(given), makers


def _binds_any(path: str, function: Function, environment: Environment) -> bool:
    own = locals_prefix(path + function.name)
    return any(name.startswith(own) for name in (*environment.arguments, *environment.star_arguments))


def _reads_receiver(function: Function) -> bool:
    """Whether a method reads its first parameter or ``super()``."""
    if not function.owner or not function.params:
        return False
    first = local_symbol(function.name, function.params[0].name)
    return any(
        isinstance(each, Ref) and any(root == first or is_super(root) for root in each.roots)
        for each in body_expressions(function.body)
    )


# Stands for all attributes.
ANY_ATTRIBUTE = "*"


@query()
def attributes_set(names: Names, path: str) -> frozenset[str]:
    """The attributes that a file may set in other ways than by ``self.word = value``; ``ANY_ATTRIBUTE`` where it may set any."""
    names.modules.reads.record_read(path)
    facts = names.modules.files[path]
    found = {target.path[-1] for target, _ in attribute_stores(facts)}
    headers = (target for each in all_statements(facts) if blocks(each) for target in targets(each))
    found.update(each.path[-1] for target in headers for each in bound_references(target) if each.path)
    if has_word(facts.summary.calls, "vars") or has_word(facts.summary.inner, "__dict__"):
        found.add(ANY_ATTRIBUTE)
    for each in all_expressions(facts) if has_word(facts.summary.calls, "setattr") else ():
        match each:
            case Call(func=func, args=(_, Arg(value=named), *_)) if last_identifier(func) == "setattr":
                found.add(str(named.value) if isinstance(named, Constant) else ANY_ATTRIBUTE)
    return frozenset(found)
