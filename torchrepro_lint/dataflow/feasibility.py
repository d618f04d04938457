"""What does not run with what one particular call passes: ``if train: …`` where ``False`` is passed.

Whether a program makes sure that there is one element: by an assertion, or by a test of the length.

What a test around an event says of a value: that it is not None, or that it is not true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    If,
    Leave,
    Loop,
    Operation,
    Ref,
    Statement,
    Try,
    With,
)
from torchrepro_lint.syntax.use_def import Spot, Spots
from torchrepro_lint.syntax.visitor import blocks, expressions, is_none, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.syntax.events import Guard


_LEAVING = ("return", "raise")
_CHOOSING = frozenset({"if", "and", "or"})


def idle(origins: ValueSources, path: str, body: tuple[Statement, ...], scope: Scope) -> tuple[tuple[int, int], ...]:
    """The ranges of a function's text that do not run in a scope. Only tests of parameters count that it has not assigned
    before, and of attributes of the scope's object.
    """
    look = _Look(origins, path, scope)
    look.ends(body)
    return tuple(look.found)


def truth(origins: ValueSources, path: str, test: Expression, scope: Scope) -> bool | None:
    """What a test gives in a scope; None where that is not known."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = truth(origins, path, inner, scope)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            answers = [truth(origins, path, each, scope) for each in operands]
            decisive = op == "or"
            return decisive if decisive in answers else None if None in answers else not decisive
        case Operation(op=op, operands=(left, right)) if op in _COMPARING:
            answers = [
                _COMPARING[op](one, other)
                for one in _values(origins, path, left, scope)
                for other in _values(origins, path, right, scope)
            ]
        case _:
            answers = [bool(value) for value in _values(origins, path, test, scope)]
    return answers[0] if answers and len(set(answers)) == 1 else None


class _Look:
    def __init__(self, origins: ValueSources, path: str, scope: Scope) -> None:
        self._origins, self._path, self._scope = origins, path, scope
        self.found: list[tuple[int, int]] = []

    def ends(self, body: tuple[Statement, ...]) -> bool:
        """Note what does not run, and whether the function is surely left in this body."""
        for statement in body:
            self._choose(statement)
            if self._leaves(statement):
                self._leave_out(tuple(each for each in body if each.start > statement.start))
                return True
        return False

    def _leaves(self, statement: Statement) -> bool:
        match statement:
            case If(test=test, body=body, orelse=orelse):
                answer = truth(self._origins, self._path, test, self._scope)
                if answer is None:
                    return all([self.ends(body), self.ends(orelse)])
                self._leave_out(orelse if answer else body)
                return self.ends(body if answer else orelse)
            case With(body=body):
                return self.ends(body)
            case Leave(kind=kind):
                return kind in _LEAVING
        for block in blocks(statement):
            self.ends(block)
        return False

    def _choose(self, statement: Statement) -> None:
        """Note what is not evaluated of ``one if test else other``, and after what decides an ``and`` or ``or``."""
        for choice in _choices(self._origins, statement):
            operands = choice.operands
            if choice.op == "if":
                test, one, other = operands
                answer = truth(self._origins, self._path, test, self._scope)
                unused: tuple[Expression, ...] = () if answer is None else (other if answer else one,)
            else:
                unused = self._undecided(choice.op == "or", operands)
            self.found += ((part.start, part.end) for part in unused)

    def _undecided(self, decisive: bool, operands: tuple[Expression, ...]) -> tuple[Expression, ...]:
        for index, operand in enumerate(operands):
            if truth(self._origins, self._path, operand, self._scope) is decisive:
                return operands[index + 1 :]
        return ()

    def _leave_out(self, body: tuple[Statement, ...]) -> None:
        if body:
            self.found.append((body[0].start, body[-1].end))


def is_certain(origins: ValueSources, body: tuple[Statement, ...], offset: int) -> bool:
    """Whether a place of a function is in no branch and after nothing that may leave the function: it runs in any scope."""
    key = (id(body), offset)
    if key not in origins.certain:
        origins.certain[key] = _is_certain(origins, body, offset)
    return origins.certain[key]


def _is_certain(origins: ValueSources, body: tuple[Statement, ...], offset: int) -> bool:
    for statement in body:
        if statement.start <= offset < statement.end:
            for block in blocks(statement):
                if block and block[0].start <= offset < block[-1].end:
                    return not isinstance(statement, If) and _is_certain(origins, block, offset)
            chosen = (each for choice in _choices(origins, statement) for each in choice.operands[1:])
            return not any(each.start <= offset < each.end for each in chosen)
        if _may_leave(statement):
            return False
    return True


def _may_leave(statement: Statement) -> bool:
    return any(isinstance(each, Leave) and each.kind in _LEAVING for each in statements((statement,)))


def _choices(origins: ValueSources, statement: Statement) -> tuple[Operation, ...]:
    """What of a statement may evaluate its first operand alone, or leave out one of the others."""
    found = origins.choices.get(id(statement))
    if found is None:
        found = origins.choices[id(statement)] = tuple(
            each
            for expression in expressions(statement)
            for each in within(expression)
            if isinstance(each, Operation) and each.op in _CHOOSING
        )
    return found


def _values(origins: ValueSources, path: str, operand: Expression, scope: Scope) -> list[object]:
    """The literals that an operand may be; none where it may be something else."""
    match operand:
        case Constant(value=value):
            return [value]
        case Collection(kind="tuple" | "list" | "set", items=items):
            values = [each.value if isinstance(each, Constant) else ... for each in items]
            return [values] if ... not in values else []
        case Ref(path=()):
            found = [each for one in _passed(origins, path, operand, scope) for each in one]
            return found if ... not in found else []
        case Ref(path=(word,)) if scope.owner and not is_set_outside(origins, path, word, scope):
            found = [_constant(each.value) for each in origins.of(Scoped(path, operand, scope))]
            return found if ... not in found else []
    return []


def _passed(origins: ValueSources, path: str, ref: Ref, scope: Scope) -> Iterator[list[object]]:
    for root in ref.roots:
        given = scope.given.get(path + root, ())
        if not given or any(
            _comes_first(origins, path, each.statement, ref) for each in origins.assignments(path).get(root, ())
        ):
            yield [...]
        for each in given:
            yield [_constant(one.value) for one in origins.of(each)]


def _comes_first(origins: ValueSources, path: str, statement: Statement, ref: Ref) -> bool:
    """Whether a statement may have bound its variables where a reference is read: it stands above it, or in a loop around both. What
    is assigned is worked out first.
    """
    if (statement.end if isinstance(statement, Assign) else statement.start) <= ref.start:
        return True
    inside = (each for each in origins.project.files[path].functions if each.start <= ref.start < each.end)
    return any(
        isinstance(each, Loop) and each.start <= ref.start and statement.end <= each.end
        for function in inside
        for each in statements(function.body)
    )


def is_set_outside(origins: ValueSources, path: str, word: str, scope: Scope, others: Iterable[str] = ()) -> bool:
    """Whether the file of a class, or one that makes its objects, sets an attribute of some object: ``rows.train = True``;
    ``others`` are looked into, too.
    """
    makers = {each.path for given in scope.given.values() for each in given}
    return any(origins.set_attributes(file, (word,)) for file in sorted({path, *makers, *others}))


def _constant(value: Expression) -> object:
    return value.value if isinstance(value, Constant) else ...


def _is_member(one: object, other: object) -> bool:
    return isinstance(other, list) and one in other


_COMPARING: Mapping[str, Callable[[object, object], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "is": lambda one, other: one is other,
    "is not": lambda one, other: one is not other,
    "in": _is_member,
    "not in": lambda one, other: not _is_member(one, other),
}


_ONE = {("==", 1), ("<", 2), ("<=", 1)}
_OTHERS = {("!=", 1), (">", 1), (">=", 2)}


def is_measured(spots: Spots, ref: Ref) -> bool:
    """Whether a read of a variable is that of ``len(x)``."""
    spot = spots.of(ref)
    call = spot.parent if spot is not None else None
    return isinstance(call, Call) and isinstance(call.func, Ref) and call.func.roots == ("builtins.len",)


def is_single(spots: Spots, asked: Spot, here: Spot) -> bool:
    """Whether the ``len(x)`` of a variable is asked to be 1, or the like, in a place that rules out more elements ``here``."""
    outer = spots.of(asked.parent) if asked.parent is not None else None
    if outer is None:
        return False
    compared = _compared(outer.parent)
    match outer.statement:
        case If() as tested if compared in _OTHERS:
            return _leaves(tested.body) or _is_in_block(here, tested, 1)
        case If() as tested if compared in _ONE:
            return _leaves(tested.orelse) or _is_in_block(here, tested, 0)
        case Leave(kind="assert") | Assign():
            return compared in _ONE
    return compared in _ONE | _OTHERS


def _compared(expression: Expression | None) -> tuple[str, int] | None:
    match expression:
        case Operation(op=op, operands=(_, Constant(value=int(bound)))):
            return op, bound
    return None


def _leaves(body: tuple[Statement, ...]) -> bool:
    """Whether whatever comes after a block has not been in it."""
    match body[-1:]:
        case (Leave(kind="raise" | "return" | "continue" | "break"),):
            return True
        case (If(body=then, orelse=orelse),):
            return _leaves(then) and _leaves(orelse)
        case (Try(body=tried, handlers=handlers, orelse=orelse, final=final),):
            return _leaves(final) or (_leaves(orelse or tried) and all(_leaves(each) for _, each in handlers))
    return False


def _is_in_block(here: Spot, tested: If, number: int) -> bool:
    return any(block.owner is tested and block.number == number for block in here.blocks)


def is_given(guard: Guard, value: Expression | None) -> bool:
    """Whether a test around rules out that a value is None: ``if seed is not None``, ``if seed``."""
    match guard.kind, guard.value:
        case "if", Operation(op="and", operands=operands):
            return any(is_given(guard._replace(value=each), value) for each in operands)
        case ("if", Operation(op="is not" | "!=", operands=(tested, other))) | (
            "else",
            Operation(op="is" | "==", operands=(tested, other)),
        ):
            return is_none(other) and _is_same(tested, value)
        case "else", Operation(op="not", operands=(tested,)):
            return _is_same(tested, value)
        case "if", tested:
            return _is_same(tested, value)
    return False


def is_off(guard: Guard, value: Expression | None) -> bool:
    """Whether a test around lets come only what is not true: ``if not shuffle``, and the ``else`` of ``if shuffle``."""
    match guard.kind, guard.value:
        case "if", Operation(op="not", operands=(tested,)):
            return _is_same(tested, value)
        case "if", Operation(op="and", operands=operands):
            return any(is_off(guard._replace(value=each), value) for each in operands)
        case "else", tested:
            return _is_same(tested, value)
    return False


def _is_same(one: Expression, other: Expression | None) -> bool:
    return isinstance(one, Ref) and isinstance(other, Ref) and (one.roots, one.path) == (other.roots, other.path)
