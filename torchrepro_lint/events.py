"""What running a function does, in evaluation order: calls, iterations, imports, subscripts, with what surrounds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.facts import (
    Call,
    Comprehension,
    Constant,
    Define,
    Expression,
    If,
    Import,
    Loop,
    Operation,
    Ref,
    Statement,
    Subscript,
    Try,
    With,
)
from torchrepro_lint.walk import blocks, expressions, parts


class Guard(NamedTuple):
    """What surrounds an event: ``with`` (the entered value), ``if`` or ``else`` (the test of that branch)."""

    kind: str
    value: Expression


class Event(NamedTuple):
    """One thing that happens: a ``call``, ``iterate``, ``index`` of ``value``, or an ``import`` of ``modules``.

    ``statement`` is the innermost statement that it happens in.
    """

    kind: str
    value: Expression | None
    statement: Statement
    guards: tuple[Guard, ...]
    modules: tuple[str, ...] = ()


def events(body: tuple[Statement, ...], main: bool) -> Iterator[Event]:
    """The events of a body. ``main`` says whether the module is the one that is started.

    Branches that a constant test rules out are not there.
    """
    yield from _body(body, (), main)


def _body(body: tuple[Statement, ...], guards: tuple[Guard, ...], main: bool) -> Iterator[Event]:
    for statement in body:
        if isinstance(statement, Import):
            yield Event("import", None, statement, guards, tuple(_loaded(statement)))
        inner = guards
        for expression in expressions(statement):
            yield from _expression(expression, statement, inner)
            if isinstance(statement, With):
                inner = (*inner, Guard("with", expression))
        match statement:
            case If(test=test, body=then, orelse=orelse):
                truth = constant_truth(test, main)
                if truth is not False:
                    yield from _body(then, (*guards, Guard("if", test)), main)
                if truth is not True:
                    yield from _body(orelse, (*guards, Guard("else", test)), main)
            case Loop(target=target, source=source):
                if target is not None:
                    yield Event("iterate", source, statement, guards)
                for block in blocks(statement):
                    yield from _body(block, guards, main)
            case Define():
                pass
            case Try() | With():
                for block in blocks(statement):
                    yield from _body(block, inner, main)
            case _:
                for block in blocks(statement):
                    yield from _body(block, guards, main)


def _loaded(statement: Import) -> Iterator[str]:
    """The modules that an import may run: those named, and names that may be submodules."""
    yield from statement.modules
    yield from (name for _, name in statement.names)


def _expression(expression: Expression, statement: Statement, guards: tuple[Guard, ...]) -> Iterator[Event]:
    kind = type(expression)
    if kind is Ref or kind is Constant:
        return
    if isinstance(expression, Comprehension):
        for clause in expression.clauses:
            yield from _expression(clause.source, statement, guards)
            yield Event("iterate", clause.source, statement, guards)
            for test in clause.tests:
                yield from _expression(test, statement, guards)
        for element in expression.elements:
            yield from _expression(element, statement, guards)
        return
    if isinstance(expression, Operation) and expression.op == "if":
        yield from _conditional(expression, statement, guards)
        return
    for part in parts(expression):
        yield from _expression(part, statement, guards)
    if kind is Call:
        yield Event("call", expression, statement, guards)
    elif isinstance(expression, Subscript):
        yield Event("index", expression.value, statement, guards)


def _conditional(expression: Operation, statement: Statement, guards: tuple[Guard, ...]) -> Iterator[Event]:
    test, one, other = expression.operands
    yield from _expression(test, statement, guards)
    yield from _expression(one, statement, (*guards, Guard("if", test)))
    yield from _expression(other, statement, (*guards, Guard("else", test)))


def constant_truth(test: Expression, main: bool) -> bool | None:
    """Whether a test is always true or false: constants, ``TYPE_CHECKING``, and ``__name__ == "__main__"``."""
    match test:
        case Constant(value=value):
            return bool(value)
        case Operation(op="not", operands=(operand,)):
            truth = constant_truth(operand, main)
            return None if truth is None else not truth
        case Ref(roots=roots, path=path):
            if (*roots, *path)[-1].rpartition(".")[2] == "TYPE_CHECKING":
                return False
        case Operation(op="and" | "or", operands=operands):
            truths = [constant_truth(operand, main) for operand in operands]
            decisive = test.op == "or"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
    return main if is_main_test(test) else None


def is_main_test(test: Expression) -> bool:
    """Whether a test is ``__name__ == "__main__"``, either way round."""
    match test:
        case Operation(op="==", operands=(Ref(roots=("builtins.__name__",), path=()), Constant(value="__main__"))):
            return True
        case Operation(op="==", operands=(Constant(value="__main__"), Ref(roots=("builtins.__name__",), path=()))):
            return True
    return False
