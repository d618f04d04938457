"""Nullability: which variables are known not to be None, from the tests that a program point lies behind.

Whether a value may be None at all is ``AbstractValue.optional``. What tests exclude stands in the type environment,
by binding, so a variable that is bound again loses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types.bindings import NOT_NONE, Binding, given_bindings
from torchrepro_lint.syntax.nodes import Constant, Expression, Operation, Ref

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import TypeEnvironment


def assume(test: Expression, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    """The type environment where a test holds, or fails, with the variables that are then not None."""
    tested = [env[root] for root in _excluded(test, truth=truth) if root in env]
    known = given_bindings(env)
    new = tuple(each for each in tested if each not in known)
    return {**env, NOT_NONE: Binding(NOT_NONE, predecessors=(*known, *new))} if new else env


def _excluded(test: Expression, *, truth: bool) -> list[str]:
    """The variables that are not None where a test holds, or fails."""
    match test:
        case Ref(roots=(root,), path=()) if truth:
            return [root]
        case Operation(op="not", operands=(inner,)):
            return _excluded(inner, truth=not truth)
        case Operation(op="and" | "or" as op, operands=operands) if (op == "and") is truth:
            return [root for each in operands for root in _excluded(each, truth=truth)]
        case Operation(
            op="is" | "is not" | "==" | "!=" as op, operands=(Ref(roots=(root,), path=()), Constant(value=None))
        ) if (op in ("is not", "!=")) is truth:
            return [root]
    return []
