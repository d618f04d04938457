"""Whether a program makes sure that there is one element: by an assertion, or by a test of the length."""

from __future__ import annotations

from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Expression, If, Leave, Operation, Ref, Statement, Try
from torchrepro_lint.syntax.use_def import Spot, Spots

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
            return _leaves(tested.body) or _is_in(here, tested, 1)
        case If() as tested if compared in _ONE:
            return _leaves(tested.orelse) or _is_in(here, tested, 0)
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


def _is_in(here: Spot, tested: If, number: int) -> bool:
    return any(block.owner is tested and block.number == number for block in here.blocks)
