"""Path feasibility: which branches of a function are pruned in an environment, and what path conditions imply.

A path condition may imply that a value is not None, that it is falsy, or that a container has one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.query import limits
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Try,
    With,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition, UseDefIndex
from torchrepro_lint.syntax.visitor import blocks, expressions, is_none, statements, subexpressions

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.syntax.control_flow import Guard


_LEAVING = ("return", "raise")
_CHOOSING = frozenset({"if", "and", "or"})


def infeasible_ranges(
    sources: ValueSources, path: str, body: tuple[Statement, ...], environment: Environment
) -> tuple[tuple[int, int], ...]:
    """The ranges of a function's text that are infeasible in an environment. Only tests of parameters that are not rebound before, and
    of attributes of the receiver, are evaluated.
    """
    pruning = _BranchPruning(sources, path, environment)
    pruning.ends(body)
    return tuple(pruning.found)


def evaluate_test(
    sources: ValueSources, path: str, test: Expression, environment: Environment, depth: int = 0
) -> bool | None:
    """The truth value of a test in an environment; None if unknown. ``depth`` counts the variables that hold tests."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = evaluate_test(sources, path, inner, environment, depth)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            answers = [evaluate_test(sources, path, each, environment, depth) for each in operands]
            decisive = op == "or"
            return decisive if decisive in answers else None if None in answers else not decisive
        case Operation(op=op, operands=(left, right)) if op in _COMPARISONS:
            answers = [
                _COMPARISONS[op](one, other)
                for one in _values(sources, path, left, environment, depth)
                for other in _values(sources, path, right, environment, depth)
            ]
        case _:
            answers = [bool(value) for value in _values(sources, path, test, environment, depth)]
    return answers[0] if answers and len(set(answers)) == 1 else None


class _BranchPruning:
    def __init__(self, sources: ValueSources, path: str, environment: Environment) -> None:
        self._sources, self._path, self._environment = sources, path, environment
        self.found: list[tuple[int, int]] = []

    def ends(self, body: tuple[Statement, ...]) -> bool:
        """Collect what does not run; return whether every path through this body leaves the function."""
        for statement in body:
            self._choose(statement)
            if self._leaves(statement):
                self._leave_out(tuple(each for each in body if each.start > statement.start))
                return True
        return False

    def _leaves(self, statement: Statement) -> bool:
        match statement:
            case If(test=test, body=body, orelse=orelse):
                answer = evaluate_test(self._sources, self._path, test, self._environment)
                if answer is None:
                    return all([self.ends(body), self.ends(orelse)])
                self._leave_out(orelse if answer else body)
                return self.ends(body if answer else orelse)
            case With(body=body):
                return self.ends(body)
            case SimpleStatement(kind=kind):
                return kind in _LEAVING
        for block in blocks(statement):
            self.ends(block)
        return False

    def _choose(self, statement: Statement) -> None:
        """Collect the operands that are not evaluated, of ``one if test else other`` and after a short circuit."""
        for choice in _conditional_operations(self._sources, self._path, statement):
            operands = choice.operands
            if choice.op == "if":
                test, one, other = operands
                answer = evaluate_test(self._sources, self._path, test, self._environment)
                unused: tuple[Expression, ...] = () if answer is None else (other if answer else one,)
            else:
                unused = self._undecided(choice.op == "or", operands)
            self.found += ((part.start, part.end) for part in unused)

    def _undecided(self, decisive: bool, operands: tuple[Expression, ...]) -> tuple[Expression, ...]:
        for index, operand in enumerate(operands):
            if evaluate_test(self._sources, self._path, operand, self._environment) is decisive:
                return operands[index + 1 :]
        return ()

    def _leave_out(self, body: tuple[Statement, ...]) -> None:
        if body:
            self.found.append((body[0].start, body[-1].end))


def runs_always(sources: ValueSources, path: str, function: Function, offset: int) -> bool:
    """Whether a place of a function runs in every environment: it is in no branch, and nothing before it may leave the function."""
    key = path, function, offset
    if key not in sources.certain:
        sources.certain[key] = _runs_always(sources, path, function.body, offset)
    return sources.certain[key]


def _runs_always(sources: ValueSources, path: str, body: tuple[Statement, ...], offset: int) -> bool:
    for statement in body:
        if statement.start <= offset < statement.end:
            for block in blocks(statement):
                if block and block[0].start <= offset < block[-1].end:
                    return not isinstance(statement, If) and _runs_always(sources, path, block, offset)
            chosen = (
                each for choice in _conditional_operations(sources, path, statement) for each in choice.operands[1:]
            )
            return not any(each.start <= offset < each.end for each in chosen)
        if _may_leave(statement):
            return False
    return True


def _may_leave(statement: Statement) -> bool:
    return any(isinstance(each, SimpleStatement) and each.kind in _LEAVING for each in statements((statement,)))


def _conditional_operations(sources: ValueSources, path: str, statement: Statement) -> tuple[Operation, ...]:
    """The operations of a statement that may not evaluate all their operands."""
    found = sources.choices.get((path, statement))
    if found is None:
        found = sources.choices[path, statement] = tuple(
            each
            for expression in expressions(statement)
            for each in subexpressions(expression)
            if isinstance(each, Operation) and each.op in _CHOOSING
        )
    return found


def _values(
    sources: ValueSources, path: str, operand: Expression, environment: Environment, depth: int
) -> list[object]:
    """The constants that an operand may be; none if it may be something else."""
    match operand:
        case Constant(value=value):
            return [value]
        case Collection(kind="tuple" | "list" | "set", items=items):
            values = [each.value if isinstance(each, Constant) else ... for each in items]
            return [values] if ... not in values else []
        case Ref(path=()):
            found = [each for one in _values_passed(sources, path, operand, environment, depth) for each in one]
            return found if ... not in found else []
        case Ref(path=(word,)) if environment.receiver_class and not is_set_from_outside(
            sources, path, word, environment
        ):
            found = [_known_value(sources, each, depth) for each in sources.of(Closure(path, operand, environment))]
            return found if ... not in found else []
    return []


def _values_passed(
    sources: ValueSources, path: str, ref: Ref, environment: Environment, depth: int
) -> Iterator[list[object]]:
    for root in ref.roots:
        given = environment.arguments.get(path + root, ())
        if not given or any(
            _may_rebind_before(sources, path, each.statement, ref) for each in sources.assignments(path).get(root, ())
        ):
            yield [...]
        for each in given:
            yield [_known_value(sources, one, depth) for one in sources.of(each)]


def _may_rebind_before(sources: ValueSources, path: str, statement: Statement, ref: Ref) -> bool:
    """Whether a statement may rebind a variable before it is read: it stands above the read, or in a loop around both. The
    right side of an assignment is read before it binds.
    """
    if (statement.end if isinstance(statement, Assign) else statement.start) <= ref.start:
        return True
    inside = (each for each in sources.project.files[path].functions if each.start <= ref.start < each.end)
    return any(
        isinstance(each, Loop) and each.start <= ref.start and statement.end <= each.end
        for function in inside
        for each in statements(function.body)
    )


def is_set_from_outside(
    sources: ValueSources, path: str, word: str, environment: Environment, others: Iterable[str] = ()
) -> bool:
    """Whether a file assigns the attribute from outside, ``rows.train = True``: the file of the class, those that construct
    its objects, or one of ``others``.
    """
    makers = {each.path for given in environment.arguments.values() for each in given}
    return any(sources.set_attributes(file, (word,)) for file in sorted({path, *makers, *others}))


def _known_value(sources: ValueSources, source: Closure, depth: int) -> object:
    """The constant that a value source is, or the truth value of the test that it is; ``...`` if unknown."""
    match source.value:
        case Constant(value=value):
            return value
        case Operation(op=op) if (op == "not" or op in _COMPARISONS) and depth < limits.MAX_HELD_TESTS:
            answer = evaluate_test(sources, source.path, source.value, source.environment, depth + 1)
            return ... if answer is None else answer
    return ...


def _is_member(one: object, other: object) -> bool:
    return isinstance(other, list) and one in other


_COMPARISONS: Mapping[str, Callable[[object, object], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "is": lambda one, other: one is other,
    "is not": lambda one, other: one is not other,
    "in": _is_member,
    "not in": lambda one, other: not _is_member(one, other),
}


_IMPLIES_ONE = {("==", 1), ("<", 2), ("<=", 1)}
_EXCLUDES_ONE = {("!=", 1), (">", 1), (">=", 2)}


def is_length_read(spots: UseDefIndex, ref: Ref) -> bool:
    """Whether a read of a variable is the ``x`` of ``len(x)``."""
    spot = spots.of(ref)
    call = spot.parent if spot is not None else None
    return isinstance(call, Call) and isinstance(call.func, Ref) and call.func.roots == ("builtins.len",)


def implies_one_element(
    spots: UseDefIndex, asked: ExpressionPosition, here: ExpressionPosition, raises: Callable[[Call], bool]
) -> bool:
    """Whether a test of ``len(x)`` implies that ``x`` has one element ``here``; ``raises`` says of a call that it only raises."""
    outer = spots.of(asked.parent) if asked.parent is not None else None
    if outer is None:
        return False
    compared = _length_comparison(outer.parent)
    implying, excluding = _IMPLIES_ONE, _EXCLUDES_ONE
    negation = spots.of(outer.parent) if outer.parent is not None else None
    if negation is not None and isinstance(negation.parent, Operation) and negation.parent.op == "not":
        implying, excluding = excluding, implying
    match outer.statement:
        case If() as tested if compared in excluding:
            return _leaves(tested.body, raises) or _is_in_block(here, tested, 1)
        case If() as tested if compared in implying:
            return _leaves(tested.orelse, raises) or _is_in_block(here, tested, 0)
        case SimpleStatement(kind="assert") | Assign():
            return compared in implying
    return compared in implying | excluding


def _length_comparison(expression: Expression | None) -> tuple[str, int] | None:
    match expression:
        case Operation(op=op, operands=(_, Constant(value=int(bound)))):
            return op, bound
    return None


def _leaves(body: tuple[Statement, ...], raises: Callable[[Call], bool]) -> bool:
    """Whether every path through a block leaves it by a jump, or by a call that only raises."""
    match body[-1:]:
        case (SimpleStatement(kind="raise" | "return" | "continue" | "break"),):
            return True
        case (ExpressionStatement(value=Call() as call),):
            return raises(call)
        case (If(body=then, orelse=orelse),):
            return _leaves(then, raises) and _leaves(orelse, raises)
        case (Try(body=tried, handlers=handlers, orelse=orelse, final=final),):
            return _leaves(final, raises) or (
                _leaves(orelse or tried, raises) and all(_leaves(each, raises) for _, each in handlers)
            )
    return False


def _is_in_block(here: ExpressionPosition, tested: If, number: int) -> bool:
    return any(block.owner is tested and block.number == number for block in here.blocks)


def implies_not_none(guard: Guard, value: Expression | None) -> bool:
    """Whether a path condition implies that a value is not None: ``if seed is not None``, ``if seed``."""
    match guard.kind, guard.value:
        case "if", Operation(op="and", operands=operands):
            return any(implies_not_none(guard._replace(value=each), value) for each in operands)
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


def implies_none(test: Expression, value: Expression) -> bool:
    """Whether a test implies that a value is None, or is falsy: ``sampler is None``, ``not sampler``, ``True if not sampler else False``."""
    match test:
        case Operation(op="if", operands=(condition, Constant(value=True), Constant(value=False))):
            return implies_none(condition, value)
        case Operation(op="not", operands=(tested,)):
            return _is_same(tested, value)
        case Operation(op="is" | "==", operands=(tested, other)):
            return is_none(other) and _is_same(tested, value)
    return False


def implies_falsy(guard: Guard, value: Expression | None) -> bool:
    """Whether a path condition implies that a value is falsy: ``if not shuffle``, and the ``else`` of ``if shuffle``."""
    match guard.kind, guard.value:
        case "if", Operation(op="not", operands=(tested,)):
            return _is_same(tested, value)
        case "if", Operation(op="and", operands=operands):
            return any(implies_falsy(guard._replace(value=each), value) for each in operands)
        case "else", tested:
            return _is_same(tested, value)
    return False


def _is_same(one: Expression, other: Expression | None) -> bool:
    return isinstance(one, Ref) and isinstance(other, Ref) and (one.roots, one.path) == (other.roots, other.path)
