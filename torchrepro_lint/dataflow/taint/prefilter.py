"""Prefilter of the taint sources: which expressions are provably no sets.

It works on syntax and names alone, so type inference is asked about few expressions. ``NonSets`` explores everything
that an expression may stand for. What it rules out is remembered: each variable and each call of a project is followed
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    PROGRESS_BARS,
    class_of,
    in_project,
    is_instance,
    path_of,
    project_classes,
    simple_name,
    split_name,
)
from torchrepro_lint.syntax.scopes import stored_before
from torchrepro_lint.syntax.visitor import (
    last_identifier,
    receiver_of,
    subexpressions,
)

_MAKERS = frozenset({"set", "frozenset", "union", "intersection", "difference", "symmetric_difference", "WeakSet"})
_ANNOTATIONS = frozenset({"set", "Set", "FrozenSet", "frozenset", "AbstractSet", "MutableSet", "WeakSet"})


def makes_set(value: Expression) -> bool:
    """Whether an expression is written like a set: a display, a comprehension, a call named like a set method, or a
    container of these.
    """
    match value:
        case Collection(kind="set") | Comprehension(kind="set"):
            return True
        case Call(func=func):
            return last_identifier(func) in _MAKERS
        case Operation(op=op, operands=operands) if op in SET_ALGEBRA:
            return any(map(is_view, operands))
        case Comprehension(elements=elements):
            return makes_set(elements[-1])
        case Collection(items=items):
            return any(makes_set(each) for each in items[: limits.MAX_DISPLAY_ITEMS] if each is not None)
    return False


def is_view(value: Expression) -> bool:
    """Whether an expression is written like the keys or items of a dictionary, whose algebra gives sets."""
    return type(value) is Call and not value.args and last_identifier(value.func) in ("keys", "items")


def mentions_set_type(annotation: Expression | None) -> bool:
    """Whether an annotation or factory mentions a set type."""
    if annotation is None:
        return False
    if type(annotation) is Ref:  # most are
        return _word(annotation) in _ANNOTATIONS
    return any(type(each) is Ref and _word(each) in _ANNOTATIONS for each in subexpressions(annotation))


def is_annotated_as_set(names: Names, variable: str) -> bool:
    """Whether a variable or an attribute is annotated as a set."""
    return any(how == ":" and mentions_set_type(each) for how, each in names.assigned(variable))


def is_set_parameter(names: Names, variable: str) -> bool:
    """Whether a variable is a parameter annotated as a set."""
    found = names.parameter(variable)
    return found is not None and mentions_set_type(found.param.annotation)


def returns_set(names: Names, function: str) -> bool:
    """Whether a function's result is annotated as a set."""
    return any(mentions_set_type(each.returns) for each in names.functions(function))


def member_returns(names: Names, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
    """What a property returns that an expression reads, or a method that it calls on an object that calls pass on."""
    match value:
        case Ref(path=(*before, word)) as ref if word in names.property_words:
            base, is_call = ref._replace(path=tuple(before)), False
        case Call(func=Ref(path=(*before, word)) as ref) if not names.names(path, ref):
            base, is_call = ref._replace(path=tuple(before)), True
        case _:
            return
    for owner in _classes_of(names, path, base):
        for method in names.methods(owner, word):
            if in_project(method) and (is_call or names.is_property(method)):
                yield from ((path_of(method), each) for each in names.return_expressions(method))
                if returns_set(names, method):
                    yield path_of(method), _SET


def _classes_of(names: Names, path: str, base: Ref) -> Iterator[str]:
    """The classes of the project of which a variable holds an object."""
    found = [*project_classes(names.names_of(path, base))]
    if not found:
        made = ((file, value) for file, value in names.values(path, base) if isinstance(value, Call))
        found = [name for file, call in made for name in names.names(file, call.func) if in_project(name)]
    yield from (name for name in dict.fromkeys(found) if names.classes(name))


# Stands for a set among values.
_SET = Collection(0, 0, "set", ())


def _word(ref: Ref) -> str:
    return ref.path[-1] if ref.path else simple_name(ref.roots[-1])


# Operators of sets that give a set.
SET_ALGEBRA = frozenset({"-", "|", "&", "^"})
# Operators that give one of their operands, or a set made of them.
SET_OPERATORS = frozenset({"-", "|", "&", "^", "or", "and", "if", ":="})
# Methods that return their receiver or an element of it; calls that return their argument.
LOOKUP_METHODS = frozenset({"copy", "get", "pop", "setdefault"})
IDENTITY_CALLS = frozenset({"defaultdict", "field", "cast", "copy", "deepcopy", "iter"}) | PROGRESS_BARS
# Methods that iterate their receiver, and calls that iterate their arguments.
PART_METHODS = frozenset({"items", "values"})
_PASSING_METHODS = LOOKUP_METHODS | PART_METHODS
ITERATING_CALLS = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "sorted"})


_Key: TypeAlias = "tuple[str, tuple[str, ...], tuple[str, ...]] | tuple[str, Call]"
# Stands for a value without a key.
_UNNAMED: _Key = ("", (), ())


class _Step(Record, frozen=True):
    """A value that is explored, and the key of the one that may stand for it."""

    path: str
    value: Expression
    to: _Key | None


class NonSets:
    """Expressions that are provably no sets, by exploring all that they may stand for."""

    def __init__(self, names: Names) -> None:
        self._names = names
        # Whether a value is known to be no set, or that it may be one.
        self._known: MemoTable[_Key, bool] = names.database.table("never sets", compare=True)
        # The budget of steps that end in a set: only proofs are remembered step by step.
        self._steps_left = limits.MAX_NON_SET_STEPS

    def is_never_set(self, path: str, expression: Expression) -> bool:
        """Whether nothing that an expression may stand for is written like a set; false if the budget is spent."""
        key = _key(path, expression)
        if key is not None and (known := self._known.get(key)) is not None:
            return known
        if self._steps_left <= 0 or makes_set(expression):
            return False
        if key is None:
            return self._explore(path, expression)
        return self._known.of(key, lambda: self._explore(path, expression))

    def _explore(self, path: str, expression: Expression) -> bool:
        reads, reached_from = self._names.modules.reads, dict[_Key, _Step]()
        mark = len(reads.asked)
        with reads.apart():
            last, steps = self._followed(path, expression, reached_from)
            self._steps_left -= 0 if last is None else steps
            found = reached_from if last is None else _predecessors(reached_from, last)
            # Each depends on all that was read, since all were explored together.
            depends_on = reads.since(mark)
            for key, step in found.items():
                again = partial(self._explore, step.path, step.value)
                self._known.put(key, last is None, depends_on, partial(self._known.run, key, again))
        return last is None

    def _followed(self, path: str, expression: Expression, reached_from: dict[_Key, _Step]) -> tuple[_Key | None, int]:
        """The key that leads to a set or exceeds a limit (None: a proof), and the number of steps; fills ``reached_from``, the
        predecessor of each value.
        """
        left: list[tuple[str, Expression, _Key | None]] = [(path, expression, None)]
        steps = 0
        while left:
            file, value, to = left.pop()
            key = _key(file, value)
            self._names.modules.reads.record_read(file)  # the key may be a call of this file
            if key is not None:
                if key in reached_from or (known := self._known.get(key)):
                    continue
                if known is False:
                    return to or _UNNAMED, steps
                reached_from[key] = _Step(file, value, to)
                to = key
            found = list(self._sources_of(file, value))
            steps += len(found)
            if (
                len(found) > limits.MAX_NON_SET_VALUES
                or steps > limits.MAX_NON_SET_STEPS
                or any(makes_set(each) for _, each in found)
            ):
                return to or _UNNAMED, steps
            left += [(at, each, to) for at, each in found]
        return None, steps

    def _sources_of(self, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
        """What a value may stand for, one step back."""
        yield from member_returns(self._names, path, value)
        match value:
            case Ref(path=()):
                for root in value.roots:
                    for name in self._names.modules.resolve(path, root):
                        yield from self._of_variable(name)
            case Ref(path=(word,)):
                yield from self._of_attribute(self._names.names_of(path, value._replace(path=())), word)
            case Attribute(value=inner, name=word):
                yield path, inner
                yield from self._of_attribute(self._names.names(path, inner), word)
            case Call():
                yield from self._of_call(path, value)
            case Operation(op=op, operands=operands) if op in SET_OPERATORS:
                yield from ((path, each) for each in operands)
            case Subscript(value=inner, indices=indices):
                yield path, inner
                literal = isinstance(inner, Ref) and isinstance(indices[0] if indices else None, Constant)
                stored = stored_before(self._names.modules.files[path], value) if literal else None
                yield from [(path, stored)] if stored is not None else ()
            case Collection(kind="list" | "tuple", items=items):
                yield from ((path, each) for each in items[: limits.MAX_DISPLAY_ITEMS] if isinstance(each, Ref))

    def _of_variable(self, name: str) -> Iterator[tuple[str, Expression]]:
        path = path_of(name)
        if not in_project(name):
            return
        for how, value in self._names.assigned(name):
            if how in ("=", "[]"):
                yield path, value
            elif how == "|=" or (how == ":" and mentions_set_type(value)):
                yield path, _SET
        if is_set_parameter(self._names, name):
            yield path, _SET
        yield from self._names.passed(name)

    def _of_attribute(self, owners: Sequence[str], word: str) -> Iterator[tuple[str, Expression]]:
        names = self._names
        for owner in owners:
            file, colon, rest = split_name(owner)
            if colon and not rest:
                for target in names.modules.attribute(file, word) or ():
                    yield from self._of_variable(target)
            elif colon:
                if is_annotated_as_set(names, f"{class_of(owner)}.{word}"):
                    yield file, _SET
                if is_instance(owner):
                    yield from names.attribute_values(class_of(owner), word)

    def _of_call(self, path: str, call: Call) -> Iterator[tuple[str, Expression]]:
        func, word = call.func, last_identifier(call.func)
        if word in _PASSING_METHODS and (receiver := receiver_of(func)) is not None:
            yield path, receiver
        if word in IDENTITY_CALLS or word in ITERATING_CALLS:
            for arg in call.args:
                yield path, _SET if mentions_set_type(arg.value) else arg.value
        for name in self._names.names(path, func):
            if in_project(name):
                if returns_set(self._names, name):
                    yield path, _SET
                yield from ((path_of(name), each) for each in self._names.return_expressions(name))


def _key(path: str, value: Expression) -> _Key | None:
    """The key of a value with sources elsewhere; None for a value that only leads to its own parts."""
    if type(value) is Ref:
        return path, value.roots, value.path
    return (path, value) if type(value) is Call else None


def _predecessors(reached_from: dict[_Key, _Step], to: _Key | None) -> dict[_Key, _Step]:
    """All predecessors of a set."""
    found: dict[_Key, _Step] = {}
    while to is not None and to != _UNNAMED:
        found[to] = reached_from[to]
        to = reached_from[to].to
    return found
