"""What the statements and expressions of a file may go along, found without a spot for each."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.facts import Assign, Call, Collection, Comprehension, Expression, Facts, Loop, Operation, Statement
from torchrepro_lint.walk import bodies, expressions, last_word, statements, within

TAKING = frozenset({"yield from", "*"})
# The words of calls that may take an order.
TAKERS = frozenset(
    {"list", "tuple", "enumerate", "iter", "zip", "map", "imap", "starmap", "filter", "reversed", "next", "chain"}
    | {"from_iterable", "islice", "cycle", "product", "permutations", "combinations", "join", "deque", "array"}
    | {"asarray", "fromiter", "tensor", "as_tensor", "stack", "cat", "concat", "concatenate", "Series", "Index"}
    | {"DataFrame", "tqdm", "track", "choice", "choices", "sample", "shuffle", "permutation", "fromkeys", "dict"}
    | {"OrderedDict", "extend", "dumps", "ModuleList", "Sequential", "Parallel", "gather", "Subset"}
)


def goings(facts: Facts) -> Iterator[Expression]:
    """All expressions that stand where an order can be taken, and some that do not, in the order of the bodies."""
    for body in bodies(facts):
        for statement in statements(body):
            if (whole := _taken_apart(statement)) is not None:
                yield whole
            for expression in expressions(statement):
                for each in within(expression):
                    kind = type(each)
                    if kind is Call:
                        yield from _given(each)  # type: ignore[arg-type]  # narrowed by exact type, as below
                    elif kind is Comprehension:
                        yield from [clause.source for clause in each.clauses]  # type: ignore[union-attr]
                    elif kind is Operation and each.op in TAKING:  # type: ignore[union-attr]
                        yield from each.operands  # type: ignore[union-attr]


def _taken_apart(statement: Statement) -> Expression | None:
    """What a statement goes along itself."""
    kind = type(statement)
    if kind is Loop:
        return statement.source  # type: ignore[union-attr]
    return statement.value if kind is Assign and is_unpacking(statement) else None  # type: ignore[union-attr, arg-type]


def is_unpacking(statement: Assign) -> bool:
    """Whether an assignment may go along its value."""
    return statement.op == "+=" or any(isinstance(target, Collection) for target in statement.targets)


def _given(call: Call) -> list[Expression]:
    """What a call may go along."""
    if last_word(call.func) in TAKERS:
        return [arg.value for arg in call.args]
    return [arg.value for arg in call.args if arg.star == "*"]
