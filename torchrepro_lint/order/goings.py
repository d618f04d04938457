"""What the statements and expressions of a file may go along, found without a spot for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Define,
    Do,
    Expression,
    Facts,
    If,
    Leave,
    Loop,
    Match,
    Operation,
    Ref,
    Statement,
    Subscript,
    Try,
    With,
)
from torchrepro_lint.syntax.visitor import blocks, bodies, expressions, last_word, parts

# The words of calls that may take an order.
_TAKERS = frozenset(
    {"list", "tuple", "enumerate", "iter", "zip", "map", "imap", "starmap", "filter", "reversed", "next", "chain"}
    | {"from_iterable", "islice", "cycle", "product", "permutations", "combinations", "join", "deque", "array"}
    | {"asarray", "fromiter", "tensor", "as_tensor", "stack", "cat", "concat", "concatenate", "Series", "Index"}
    | {"DataFrame", "tqdm", "track", "choice", "choices", "sample", "shuffle", "permutation", "fromkeys", "dict"}
    | {"OrderedDict", "extend", "dumps", "ModuleList", "Sequential", "Parallel", "gather", "Subset"}
)
_BY_KEYWORDS = frozenset({"dict", "OrderedDict"})


def goings(facts: Facts) -> list[Expression]:
    """All expressions that stand where an order can be taken, and some that do not, in no order."""
    found: list[Expression] = []
    left: list[Any] = [statement for body in bodies(facts) for statement in body]
    take, look = left.pop, _INSIDE.get
    while left:
        it = take()
        inside = look(type(it))
        if inside is not None:  # mere names and constants have nothing inside
            left += inside(it, found)
    return found


def is_giving(operation: Operation) -> bool:
    """Whether an operation goes along its operand: ``yield from`` and a star, which a product has not."""
    return operation.op == "yield from" or (operation.op == "*" and len(operation.operands) == 1)


def taken_by(call: Call) -> list[Expression]:
    """What a call may go along; what ``dict`` is given by keywords it keeps as it is."""
    word = last_word(call.func)
    if word in _BY_KEYWORDS:
        return [arg.value for arg in call.args if arg.keyword is None]
    if word == "iter" and len(call.args) > 1:
        return []  # it calls the one until that gives the other
    return [arg.value for arg in call.args if word in _TAKERS or arg.star == "*"]


def is_unpacking(statement: Assign) -> bool:
    """Whether an assignment may go along its value."""
    return statement.op == "+=" or any(type(target) is Collection for target in statement.targets)


def _of_call(it: Call, found: list[Expression]) -> Sequence[Expression]:
    func, args = it.func, it.args
    if not args:
        return () if type(func) is Ref else (func,)
    found += taken_by(it)
    values = [arg.value for arg in args]
    return values if type(func) is Ref else (func, *values)


def _of_comprehension(it: Comprehension, found: list[Expression]) -> Sequence[Expression]:
    found += [clause.source for clause in it.clauses]
    return parts(it)


def _of_operation(it: Operation, found: list[Expression]) -> Sequence[Expression]:
    if is_giving(it):
        found += it.operands
    return it.operands


def _of_assign(it: Assign, found: list[Expression]) -> Sequence[Expression]:
    if it.value is None:
        return it.targets
    if is_unpacking(it):
        found.append(it.value)
    return (it.value, *it.targets)


def _of_loop(it: Loop, found: list[Expression]) -> Sequence[Expression | Statement]:
    found.append(it.source)
    return _of_statement(it, found)


def _of_statement(it: Statement, _: list[Expression]) -> Sequence[Expression | Statement]:
    return [*expressions(it), *[each for block in blocks(it) for each in block]]


# What is in each kind of record but names; what it may go along is added to what has been found.
_INSIDE: Mapping[type, Callable[[Any, list[Expression]], Sequence[Any]]] = {
    Call: _of_call,
    Comprehension: _of_comprehension,
    Operation: _of_operation,
    Attribute: lambda it, _: (it.value,),
    Subscript: lambda it, _: (it.value, *it.indices),
    Collection: lambda it, _: it.items,
    Assign: _of_assign,
    Do: lambda it, _: (it.value,),
    If: lambda it, _: (it.test, *it.body, *it.orelse),
    Loop: _of_loop,
    Leave: lambda it, _: it.values,
    Define: lambda it, _: it.values,
    **dict.fromkeys((With, Try, Match), _of_statement),
}
