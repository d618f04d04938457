"""Taint of a callee's side effects: what a function called in a loop appends to its receiver, to its arguments or to
the variables of its module, in the order of the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import TypeAlias

from torchrepro_lint.dataflow.taint.context import TaintContext, TaintStep
from torchrepro_lint.dataflow.taint.transfer import LISTING, SCALAR, OrderTaint, container_of
from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Expression, Function, Ref, Subscript
from torchrepro_lint.syntax.qualified_names import in_project, is_own, locals_prefix, path_of
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    last_identifier,
    receiving_parameters,
    statements,
    subexpressions,
)

# A reference compared by value: its roots and its path.
_RefKey: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


def callee_effects(
    analysis: TaintContext,
    path: str,
    call: Call,
    names: tuple[str, ...],
    spot: ExpressionPosition,
    is_outside: Callable[[Ref], bool],
) -> Iterator[TaintStep]:
    """The side effects of a callee: reads of what it appends to its receiver, its arguments or module variables."""
    for name in names:
        file = path_of(name)
        for function in analysis.names.functions(name) if in_project(name) else ():
            for ref, taint in _containers_filled(function):
                yield from _read(analysis, path, file, call, function, ref, taint, spot, is_outside)


def _read(
    analysis: TaintContext,
    path: str,
    file: str,
    call: Call,
    function: Function,
    ref: Ref,
    taint: OrderTaint,
    spot: ExpressionPosition,
    is_outside: Callable[[Ref], bool],
) -> Iterator[TaintStep]:
    start = locals_prefix(function.name)
    params = [param.name for param in function.params]
    passed = {param.name: arg.value for arg, param in receiving_parameters(function, call, bound=False)}
    for root in ref.roots:
        word = root[len(start) :] if root.startswith(start) else ""
        if function.owner and params and word == params[0] and len(ref.path) == 1:
            receiver = call.func
            if isinstance(receiver, Ref) and is_outside(receiver):
                inside = analysis.uses.spots(file).of(ref) or spot
                yield from analysis.reads(file, ref, taint, inside, ref.end)
        elif word in params and not ref.path and not function.owner:
            given = passed.get(word)
            if isinstance(given, Ref) and is_outside(given):
                yield from analysis.reads(path, given, taint, spot, call.end)
        elif not word and is_own(root):
            inside = analysis.uses.spots(file).of(ref) or spot
            yield from analysis.reads(file, ref, taint, inside, ref.end)


def _containers_filled(function: Function) -> Iterator[tuple[Ref, OrderTaint]]:
    """The containers that a function appends to, or in which it numbers something, each with its taint."""
    filled = {_ref_key(whole) for _, whole, _ in _element_assignments(function)}
    numbers = set(_counters(function, filled))
    for statement, whole, keys in _element_assignments(function):
        said = [*subexpressions(statement.value), *keys] if statement.value is not None else []
        if any(_is_length(each, filled) or _ref_key(each) in numbers for each in said):
            yield whole, container_of(SCALAR)
    for each in body_expressions(function.body):
        match each:
            case Call(func=Ref(path=(*words, "append" | "extend" | "insert")) as func):
                yield func._replace(path=tuple(words)), LISTING


def _element_assignments(function: Function) -> Iterator[tuple[Assign, Ref, tuple[Expression, ...]]]:
    """The assignments ``whole[keys] = …`` of a function."""
    for each in statements(function.body):
        if isinstance(each, Assign):
            for target in each.targets:
                if isinstance(target, Subscript) and isinstance(target.value, Ref):
                    yield each, target.value, target.indices


def _counters(function: Function, filled: Container[_RefKey | None]) -> Iterator[_RefKey]:
    """The counters of a function: ``number = len(self.ids)``, ``self.size += 1``."""
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.value is not None:
            counts = statement.op == "+=" and isinstance(statement.value, Constant) and statement.value.value == 1
            if counts or (statement.op == "=" and _is_length(statement.value, filled)):
                yield from (found for target in statement.targets if (found := _ref_key(target)) is not None)


def _ref_key(expression: Expression) -> _RefKey | None:
    return (expression.roots, expression.path) if isinstance(expression, Ref) else None


def _is_length(expression: Expression, filled: Container[_RefKey | None]) -> bool:
    """Whether an expression is ``len(self.ids)`` of a container that the function fills."""
    if not isinstance(expression, Call) or last_identifier(expression.func) != "len":
        return False
    return any(_ref_key(arg.value) in filled for arg in expression.args if isinstance(arg.value, Ref))
