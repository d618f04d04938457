"""Definitions: the statements that bind a place (a variable, an attribute, an element), with destructuring and in-place updates.

A definition names the part of a value that a variable gets; a mutation site, the entry or item that is set, merged, dropped or added. A
place that is stored to is a name, an attribute or an element.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    AssignedValues,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    FrozenRecord,
    Function,
    Loop,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    With,
)
from torchrepro_lint.syntax.qualified_names import is_self, local_symbol
from torchrepro_lint.syntax.visitor import (
    all_statements,
    expressions_within,
    is_starred,
    last_identifier,
    receiver_of,
    statements,
)


class Assignment(FrozenRecord, frozen=True):
    """A definition (as in reaching definitions): a statement that binds a variable, and the value.

    An element is a ``Subscript``: with its index in a destructuring, without indices for any element, as in a loop.
    """

    statement: Statement
    value: Expression


Assignments: TypeAlias = dict[str, list[Assignment]]


def assignments(facts: SyntaxTree) -> Assignments:
    """The definitions of all variables of a file, by name (``:f.<locals>.x``), in the order of the text."""
    found: Assignments = {}
    for statement in all_statements(facts):
        for name, value in _definitions_in(statement):
            found.setdefault(name, []).append(Assignment(statement, value))
    return found


def attribute_stores(facts: SyntaxTree) -> Iterator[tuple[Ref, Expression]]:
    """The stores to attributes of objects other than ``self``: the target, and the value; the sum for ``+=``."""
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            if isinstance(statement, Assign) and (value := statement.value) is not None:
                for target in statement.targets:
                    if isinstance(target, Ref) and len(target.path) > any(map(is_self, target.roots)):  # not ``self.x``
                        counts = Operation(statement.start, statement.end, statement.op[:-1], (target, value))
                        yield target, counts if counts.op else value


def _definitions_in(statement: Statement) -> Iterator[tuple[str, Expression]]:
    for target, value, iterated in _bindings(statement):
        yield from _definitions_of(target, _subscript(value) if iterated else value)


def _bindings(statement: Statement) -> Iterator[tuple[Expression, Expression, bool]]:
    """The targets that a statement binds, each with the value, and whether the target gets the elements of the value."""
    match statement:
        case Assign(targets=targets, value=value, op="=" | ":") if value is not None:
            yield from ((target, value, False) for target in targets)
        case Loop(target=target, source=source) if target is not None:
            yield target, source, True
        case With(items=items):
            yield from ((name, entered, False) for entered, name in items if name is not None)
    for each in expressions_within(statement):
        if isinstance(each, Comprehension):
            yield from ((clause.target, clause.source, True) for clause in each.clauses)
        elif isinstance(each, Operation) and each.op == ":=":
            yield each.operands[0], each.operands[1], False


def _definitions_of(target: Expression, value: Expression) -> Sequence[tuple[str, Expression]]:
    """The variables that a target binds, each with its part of the value."""
    return [
        (root, reduce(part_taken, steps, part) if steps else part)
        for place, part, steps in unpack(target, value)
        if type(place) is Ref and not place.path
        for root in place.roots
    ]


def part_taken(value: Expression, step: Step) -> Expression:
    """The element, or the elements, that a step of a destructuring takes."""
    at = value.end
    if isinstance(step, int):
        return _subscript(value, Constant(at, at, step))
    bounds = (step.before or None, -step.after or None, None)
    return _subscript(value, Operation(at, at, ":", tuple(Constant(at, at, bound) for bound in bounds)))


def _subscript(value: Expression, *indices: Expression) -> Subscript:
    return Subscript(value.start, value.end, value, indices, value.end)


class Rest(Record, frozen=True):
    """What a starred target gets: the list of all elements but so many at both ends."""

    before: int
    after: int


# The index of an element, counted from the end behind a star.
Step: TypeAlias = int | Rest


class Taking(Enum):
    """What is taken of a container where no literal says it: what is under some key, what iteration gives, or a list of some items."""

    ITEM, EACH, SOME = "item", "each", "some"


ITEM, EACH, SOME = Taking.ITEM, Taking.EACH, Taking.SOME
# The keys and indices by which a part is taken of a container, the outermost first.
Keys: TypeAlias = tuple[int | str | Taking, ...]

Unpacked: TypeAlias = tuple[Expression, Expression, tuple[Step, ...]]


def unpack(target: Expression, value: Expression, *, whole: bool = False) -> Sequence[Unpacked]:
    """Destructuring: the names, attributes and elements that a target stores to, each with the smallest part of the value that is
    written out, and the steps from there to what it gets: none if that is the part itself.

    ``whole`` takes no part: the target gets not the value, but what is made of it, as that of a loop.
    """
    if type(target) is not Collection:  # most are names
        return ((target, value, ()),)
    items = None if whole else _items_written(target, value)
    found: list[Unpacked] = []
    for step, item in unpacking_steps(target):
        if items is not None and isinstance(step, int):
            found += unpack(item, items[step])
        else:
            found += [(place, value, (step, *steps)) for place, _, steps in unpack(item, value, whole=True)]
    return found


def bound_references(target: Expression) -> Sequence[Ref]:
    """The references that a target binds, including those in tuples and behind a star."""
    if type(target) is Ref:
        return (target,)
    return [place for place, _, _ in unpack(target, target, whole=True) if type(place) is Ref]


def unpacking_steps(target: Collection) -> Iterator[tuple[Step, Expression]]:
    """The items of a tuple or list of targets, without their stars, each with the step to what it gets."""
    items = [item for item in target.items if item is not None]
    star = next((index for index, item in enumerate(items) if is_starred(item)), len(items))
    for index, item in enumerate(items):
        if index == star:
            assert isinstance(item, Operation)
            yield Rest(index, len(items) - index - 1), item.operands[0]
        else:
            yield index if index < star else index - len(items), item


def _items_written(target: Collection, value: Expression) -> list[Expression] | None:
    """The items of a display of as many items as the target takes; None where they are not all written."""
    if type(value) is not Collection or value.kind not in ("tuple", "list"):
        return None
    items = [item for item in value.items if item is not None and not is_starred(item)]
    wanted, stars = len(target.items), sum(map(is_starred, target.items))
    fits = len(items) == len(value.items) and (len(items) >= wanted - 1 if stars else len(items) == wanted)
    return items if fits else None


def instance_assignments(function: Function) -> Iterator[tuple[str, str, Expression]]:
    """The attributes of its first parameter that a method assigns: (attribute, how, value)."""
    own = local_symbol(function.name, function.params[0].name) if function.params else ""
    for statement in statements(function.body) if own else ():
        if isinstance(statement, Assign) and statement.value is not None:
            for target in statement.targets:
                for place, part, steps in unpack(target, statement.value):
                    if isinstance(place, Ref) and len(place.path) == 1 and own in place.roots:
                        yield place.path[0], "[]" if steps else "=" if statement.op == ":" else statement.op, part


_METHODS = {"append": "add", "insert": "add", "extend": "join"}
_METHODS |= {"update": "merge", "setdefault": "default", "pop": "drop"}


class ContainerUpdate(Record, frozen=True):
    """An in-place update of a dictionary: ``set``, ``default`` or ``drop`` of a ``key`` (None: unknown), or ``merge`` of ``args``,
    which are as those of ``dict``; of a list: ``add`` of one item, or ``join`` of the items of another.
    """

    kind: str
    key: str | None = None
    value: Expression | None = None
    args: tuple[Arg, ...] = ()


class MutationSite(NamedTuple):
    """An in-place update, and the statement that makes it."""

    statement: Statement
    change: ContainerUpdate


# By the container: a name of the file (``:f.<locals>.x``) and the attributes read from it.
MutationSites: TypeAlias = dict[tuple[str, tuple[str, ...]], list[MutationSite]]


def mutation_sites(facts: SyntaxTree) -> MutationSites:
    """The in-place updates of variables and their attributes in a file, in the order of the text."""
    found: MutationSites = {}
    for statement in all_statements(facts):
        for container, change in container_updates(statement):
            if isinstance(container, Ref):
                for root in container.roots:
                    found.setdefault((root, container.path), []).append(MutationSite(statement, change))
    return found


def container_updates(statement: Statement) -> Iterator[tuple[Expression, ContainerUpdate]]:
    """The containers that a statement updates in place, without those of its blocks."""
    if isinstance(statement, Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, Subscript):
                yield target.value, ContainerUpdate("set", _key(target.indices), statement.value)
            elif statement.op in ("|=", "+=") and isinstance(target, Ref):
                kind = "merge" if statement.op == "|=" else "join"
                arg = Arg(statement.value.start, statement.value.end, None, "", statement.value)
                yield target, ContainerUpdate(kind, None, statement.value, (arg,))
    if isinstance(statement, SimpleStatement) and statement.kind == "del":
        for value in statement.values:
            for each in value.items if isinstance(value, Collection) else (value,):
                if isinstance(each, Subscript):
                    yield each.value, ContainerUpdate("drop", _key(each.indices))
    for part in expressions_within(statement):
        if isinstance(part, Call) and (container := receiver_of(part.func)) is not None:
            yield from _updates_by_method(part, last_identifier(part.func), container)


def _updates_by_method(call: Call, method: str, container: Expression) -> Iterator[tuple[Expression, ContainerUpdate]]:
    kind = _METHODS.get(method)
    if kind == "merge":
        yield container, ContainerUpdate("merge", None, None, call.args)
    elif kind in ("add", "join") and call.args:
        yield container, ContainerUpdate(kind, None, call.args[-1].value)
    elif kind in ("default", "drop") and call.args:
        value = call.args[1].value if len(call.args) > 1 else None
        if kind == "drop" or value is not None:
            yield container, ContainerUpdate(kind, _key((call.args[0].value,)), value)


def _key(indices: tuple[Expression, ...]) -> str | None:
    match indices:
        case (Constant(value=str(key)),):
            return key
    return None


def targets(statement: Statement) -> tuple[Expression, ...]:
    """The assignment targets of a statement, those in the header of a loop or a ``with`` included."""
    match statement:
        case Assign(targets=found):
            return found
        case Loop(target=target) if target is not None:
            return (target,)
        case With(items=items):
            return tuple(target for _, target in items if target is not None)
    return ()


def stored_places(target: Expression, value: Expression) -> Iterator[tuple[Expression, Expression | None]]:
    """The attributes and elements that an assignment stores to (places), each with its part of the value."""
    for place, part, steps in unpack(target, value):
        if isinstance(place, Subscript) or (
            isinstance(place, Ref) and place.path and not any(map(is_self, place.roots))
        ):
            yield place, None if steps else part


def unpacking_keys(body: Iterable[Statement], root: str, value: Expression, path: tuple[str, ...] = ()) -> Keys | None:
    """The keys by which a variable, or an attribute of it, gets its part of a value: ``(0,)`` for ``net`` in ``net, step = build()``,
    ``(EACH, 1)`` in ``for i, net in enumerate(nets)``. None where the body does not bind it to a part of that value.
    """
    for statement in statements(body):
        if statement.start <= value.start < statement.end:
            for target, source, iterated in _bindings(statement):
                for place, part, steps in unpack(target, source, whole=iterated):
                    if part == value and isinstance(place, Ref) and place.path == path and root in place.roots:
                        keys = tuple(SOME if isinstance(each, Rest) else each for each in steps)
                        return (EACH, *keys) if iterated else keys
    return None


def subscript_keys(subscript: Subscript, keys: Keys = ()) -> Keys:
    """The keys by which an element of a subscript's result is taken of its container."""
    match subscript.indices:
        case ():
            return (EACH, *keys)
        case (Constant(value=str() | int() as key),):
            return (key, *keys)
        case (Operation(op=":"),):
            return joined_keys((SOME,), keys)
    return (ITEM, *keys)


def joined_keys(outer: Keys, inner: Keys) -> Keys:
    """The keys in a container of what is under the inner keys in its part; which items a list of some items has is not asked."""
    if outer[-1:] != (SOME,):
        return outer + inner
    return outer[:-1] + ((ITEM, *inner[1:]) if inner and isinstance(inner[0], int) else inner)


class DefinitionTable(Mapping[str, AssignedValues]):
    """The definition table of a file: the values assigned to each variable, by name, sorted.

    It is compact, since a project has a hundred thousand variables: most are assigned one plain value, and only that is stored. Of
    others it is a flat row of pairs.
    """

    __slots__ = ("_names", "_rows")

    def __init__(self, values: Mapping[str, Sequence[tuple[str, Expression]]]) -> None:
        self._names = tuple(sorted(values))
        self._rows = tuple([_row(values[name]) for name in self._names])

    def __getitem__(self, name: str) -> AssignedValues:
        found: AssignedValues | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """As ``dict.get``. Most names that are asked for are no variables, so no error is raised on the way."""
        at = bisect_left(self._names, name)
        if at == len(self._names) or self._names[at] != name:
            return default
        return _values(self._rows[at])

    def items(self) -> ItemsView[str, AssignedValues]:
        """The variables with their values, without a search for each."""
        return _DefinitionItems(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def rows(self) -> Iterator[tuple[str, AssignedValues]]:
        """What ``items`` iterates over."""
        return zip(self._names, map(_values, self._rows), strict=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


class _DefinitionItems(ItemsView[str, "AssignedValues"]):
    def __init__(self, table: DefinitionTable) -> None:
        super().__init__(table)
        self._table = table

    def __iter__(self) -> Iterator[tuple[str, AssignedValues]]:
        return self._table.rows()


def _row(values: Sequence[tuple[str, Expression]]) -> Any:
    match values:
        case [("=", value)]:
            return value
    return tuple([each for pair in values for each in pair])


def _values(row: Any) -> AssignedValues:
    """The values that ``_row`` made compact."""
    return tuple(zip(row[::2], row[1::2], strict=True)) if type(row) is tuple else (("=", row),)
