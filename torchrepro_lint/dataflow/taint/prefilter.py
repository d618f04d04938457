"""Prefilter of the taint sources: which expressions are iterated, and which of them are provably no sets.

It works on syntax and names alone, so type inference is asked about few expressions. There are two tests.
``may_be_set`` is a bounded search that gives up after so many steps. ``NonSets`` explores everything that an
expression may stand for; it finds more sets than the first, so what it rules out can be remembered: each variable
and each call of a project is followed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from torchrepro_lint.dataflow.taint.ties import KEYED_WORDS, takes_key
from torchrepro_lint.query import limits
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    If,
    Loop,
    Match,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    is_instance,
    path_of,
    project_classes,
    simple_name,
    split_name,
)
from torchrepro_lint.syntax.visitor import (
    blocks,
    bodies,
    expressions,
    last_identifier,
    operands_of,
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
IDENTITY_CALLS = frozenset({"defaultdict", "field", "cast", "copy", "deepcopy", "iter", "tqdm"})
# Methods that iterate their receiver, and calls that iterate their arguments.
PART_METHODS = frozenset({"items", "values"})
_PASSING_METHODS = LOOKUP_METHODS | PART_METHODS
ITERATING_CALLS = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "sorted"})


def may_be_set(names: Names, path: str, expression: Expression) -> bool:
    """Whether an expression may be a set: a bounded search over what it stands for."""
    return _SetSearch(names).may_be(path, expression)


class _SetSearch:
    """One search; each value is visited once."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.seen: set[tuple[str, int]] = set()
        self.iterated: set[tuple[str, str]] = set()

    def may_be(self, path: str, expression: Expression) -> bool:
        if _is_annotated(self.names, path, expression):
            return True
        for file, value in self.names.values_through_calls(path, expression):
            if len(self.seen) > limits.MAX_SET_VALUES:
                break
            if self._is_written(file, value):
                return True
        return any(self.may_be(path, each) for each in self._around(path, expression))

    def _is_written(self, path: str, value: Expression) -> bool:
        key = (path, value.start * 1000003 + value.end)
        if key in self.seen:
            return False
        self.seen.add(key)
        return self._is_written_as_set(path, value)

    def _around(self, path: str, value: Expression) -> Iterator[Expression]:
        """The iterables whose elements a variable takes, each once."""
        if isinstance(value, Ref) and not value.path:
            for root in value.roots:
                if (path, root) not in self.iterated and len(self.iterated) < limits.MAX_SET_VALUES:
                    self.iterated.add((path, root))
                    yield from (each for how, each in self.names.assigned(f"{path}{root}") if how == "[]")

    def _is_written_as_set(self, path: str, value: Expression) -> bool:
        names = self.names
        match value:
            case _ if makes_set(value):
                return True
            case Call(func=func) if (
                last_identifier(func) in _PASSING_METHODS and (inner := receiver_of(func)) is not None
            ):
                return self.may_be(path, inner)
            case Call(func=func, args=args):
                if last_identifier(func) in IDENTITY_CALLS or last_identifier(func) in ITERATING_CALLS:
                    return any(self.may_be(path, arg.value) or mentions_set_type(arg.value) for arg in args)
                if any(returns_set(names, name) for name in names.names(path, func) if in_project(name)):
                    return True
            case Operation(op=op, operands=operands) if op in SET_OPERATORS:
                return any(self.may_be(path, each) for each in operands)
            case Subscript(value=inner) | Attribute(value=inner):
                return self.may_be(path, inner)
            case Collection(kind="list" | "tuple", items=items):
                return any(
                    isinstance(each, Ref) and self.may_be(path, each) for each in items[: limits.MAX_DISPLAY_ITEMS]
                )
        if _is_annotated(names, path, value):
            return True
        return any(self.may_be(file, each) for file, each in member_returns(names, path, value))


def _is_annotated(names: Names, path: str, value: Expression) -> bool:
    """Whether a variable, parameter or attribute is annotated as a set, or updated with ``|=``."""
    if not isinstance(value, Ref):
        return False
    for root in value.roots:
        if not value.path:
            if is_set_parameter(names, f"{path}{root}"):
                return True
            if any(
                how == "|=" or (how == ":" and mentions_set_type(each)) for how, each in names.assigned(f"{path}{root}")
            ):
                return True
    if len(value.path) == 1:
        for owner in names.names_of(path, value._replace(path=())):
            if is_annotated_as_set(names, f"{class_of(owner)}.{value.path[0]}"):
                return True
    return False


_Key: TypeAlias = "tuple[str, tuple[str, ...], tuple[str, ...]] | tuple[str, Call]"
# Stands for a value without a key.
_UNNAMED: _Key = ("", (), ())


class _Step(NamedTuple):
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
        since = len(reads.asked)
        with reads.apart():
            last, steps = self._followed(path, expression, reached_from)
            self._steps_left -= 0 if last is None else steps
            found = reached_from if last is None else _predecessors(reached_from, last)
            self._known.put_all(
                found, last is None, since, lambda key: self._explore(found[key].path, found[key].value)
            )
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
                yield from self._of_attribute(path, value, word)
            case Call():
                yield from self._of_call(path, value)
            case Operation(op=op, operands=operands) if op in SET_OPERATORS:
                yield from ((path, each) for each in operands)
            case Subscript(value=inner) | Attribute(value=inner):
                yield path, inner
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

    def _of_attribute(self, path: str, ref: Ref, word: str) -> Iterator[tuple[str, Expression]]:
        names = self._names
        for owner in names.names_of(path, ref._replace(path=())):
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


# Names of calls that may iterate their arguments.
_ITERATING_WORDS = frozenset(
    {"list", "tuple", "enumerate", "iter", "zip", "map", "imap", "starmap", "filter", "reversed", "next", "chain"}
    | {"from_iterable", "islice", "cycle", "product", "permutations", "combinations", "join", "deque", "array"}
    | {"asarray", "fromiter", "tensor", "as_tensor", "stack", "cat", "concat", "concatenate", "Series", "Index"}
    | {"DataFrame", "tqdm", "track", "choice", "choices", "sample", "shuffle", "permutation", "fromkeys", "dict"}
    | {"OrderedDict", "extend", "dumps", "ModuleList", "Sequential", "Parallel", "gather", "Subset", "Counter"}
)
_BY_KEYWORDS = frozenset({"dict", "OrderedDict"})


def iteration_sites(facts: SyntaxTree) -> list[Expression]:
    """All expressions that may be iterated (a superset), in no order."""
    found: list[Expression] = []
    left: list[Any] = [statement for body in bodies(facts) for statement in body]
    take, look = left.pop, _CHILDREN.get
    while left:
        it = take()
        inside = look(type(it))
        if inside is not None:  # names and constants have no children
            left += inside(it, found)
    return found


def iterates_operand(operation: Operation) -> bool:
    """Whether an operation iterates its operand: ``yield from``, and a star (a product has two operands)."""
    return operation.op == "yield from" or (operation.op == "*" and len(operation.operands) == 1)


def iterated_arguments(call: Call) -> list[Expression]:
    """The arguments that a call may iterate; keyword arguments of ``dict`` are stored as they are."""
    word = last_identifier(call.func)
    if word in _BY_KEYWORDS:
        return [arg.value for arg in call.args if arg.keyword is None]
    if word == "iter" and len(call.args) > 1:
        return []  # it calls the first until it returns the second
    if word in KEYED_WORDS:
        return [arg.value for arg in call.args if arg.star == "*" or (arg.keyword is None and takes_key(call))]
    if word == "update" and len(call.args) == 1:
        return [call.args[0].value]  # of a counter
    return [arg.value for arg in call.args if word in _ITERATING_WORDS or arg.star == "*"]


def popped(call: Call) -> Expression | None:
    """The expression whose method ``pop`` a call without arguments runs; it stands for the method of the set."""
    return call.func if not call.args and last_identifier(call.func) == "pop" else None


def iterates_value(statement: Assign) -> bool:
    """Whether an assignment may iterate its value."""
    return statement.op == "+=" or any(type(target) is Collection for target in statement.targets)


def _of_call(it: Call, found: list[Expression]) -> Sequence[Expression]:
    func, args = it.func, it.args
    if not args:
        if popped(it) is not None:
            found.append(func)
        return () if type(func) is Ref else (func,)
    found += iterated_arguments(it)
    values = [arg.value for arg in args]
    return values if type(func) is Ref else (func, *values)


def _of_comprehension(it: Comprehension, found: list[Expression]) -> Sequence[Expression]:
    found += [clause.source for clause in it.clauses]
    return operands_of(it)


def _of_operation(it: Operation, found: list[Expression]) -> Sequence[Expression]:
    if iterates_operand(it):
        found += it.operands
    return it.operands


def _of_assign(it: Assign, found: list[Expression]) -> Sequence[Expression]:
    if it.value is None:
        return it.targets
    if iterates_value(it):
        found.append(it.value)
    return (it.value, *it.targets)


def _of_loop(it: Loop, found: list[Expression]) -> Sequence[Expression | Statement]:
    found.append(it.source)
    return _of_statement(it, found)


def _of_statement(it: Statement, _: list[Expression]) -> Sequence[Expression | Statement]:
    return [*expressions(it), *[each for block in blocks(it) for each in block]]


# The children of each kind of node; a handler adds the expressions that the node may iterate to the result.
_CHILDREN: Mapping[type, Callable[[Any, list[Expression]], Sequence[Any]]] = {
    Call: _of_call,
    Comprehension: _of_comprehension,
    Operation: _of_operation,
    Attribute: lambda it, _: (it.value,),
    Subscript: lambda it, _: (it.value, *it.indices),
    Collection: lambda it, _: it.items,
    Assign: _of_assign,
    ExpressionStatement: lambda it, _: (it.value,),
    If: lambda it, _: (it.test, *it.body, *it.orelse),
    Loop: _of_loop,
    SimpleStatement: lambda it, _: it.values,
    DefinitionStatement: lambda it, _: it.values,
    **dict.fromkeys((With, Try, Match), _of_statement),
}


def _predecessors(reached_from: dict[_Key, _Step], to: _Key | None) -> dict[_Key, _Step]:
    """All predecessors of a set."""
    found: dict[_Key, _Step] = {}
    while to is not None and to != _UNNAMED:
        found[to] = reached_from[to]
        to = reached_from[to].to
    return found
