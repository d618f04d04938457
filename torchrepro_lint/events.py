"""What running a function does, in evaluation order: calls, iterations, imports, subscripts, with what surrounds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.facts import (
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Define,
    Do,
    Expression,
    If,
    Import,
    Leave,
    Loop,
    Operation,
    Ref,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.truth import Setting, constant_truth
from torchrepro_lint.walk import blocks, expressions, parts


class Guard(NamedTuple):
    """What surrounds an event: ``with`` (the entered value), ``if`` or ``else`` (the test of that branch).

    ``certain`` says that whatever comes after the ``if`` has been in this branch: the other one raises or leaves.
    """

    kind: str
    value: Expression
    certain: bool = False


class Event(NamedTuple):
    """One thing that happens to ``value``: ``call``, ``iterate``, ``index``, ``enter`` (by ``with``), ``read`` (of a property),
    ``set`` (an attribute or an item is assigned ``given``; those of ``self`` are left out); or an ``import`` of ``modules``.

    ``statement`` is the innermost statement that it happens in. ``given`` is None where it is an unknown part of a value.
    """

    kind: str
    value: Expression | None
    statement: Statement
    guards: tuple[Guard, ...]
    modules: tuple[str, ...] = ()
    given: Expression | None = None


def events(body: tuple[Statement, ...], setting: Setting) -> Iterator[Event]:
    """The events of a body. Branches that a constant test rules out are not there."""
    yield from _body(body, (), setting)


def _body(body: tuple[Statement, ...], guards: tuple[Guard, ...], setting: Setting) -> Iterator[Event]:
    for statement in body:
        if isinstance(statement, Import):
            yield Event("import", None, statement, guards, tuple(_loaded(statement)))
        inner = guards
        stored = _stored(statement)
        for expression in expressions(statement):
            if any(expression is each for each in stored):
                yield from _target(expression, statement, inner, setting)
                continue
            yield from _expression(expression, statement, inner, setting)
            if isinstance(statement, With):
                yield Event("enter", expression, statement, inner)
                inner = (*inner, Guard("with", expression))
        if isinstance(statement, Assign) and statement.value is not None:
            for target in statement.targets:
                for place, given in _places(target, statement.value):
                    yield Event("set", place, statement, guards, given=given)
        if isinstance(statement, Leave) and statement.kind in ("return", "raise", "break", "continue"):
            return  # what follows in this block never runs
        if isinstance(statement, Loop) and statement.target is not None:
            yield from (Event("iterate", each, statement, guards) for each in _iterated(statement.source))
        yield from _blocks(statement, inner, setting)


def _stored(statement: Statement) -> tuple[Expression, ...]:
    """What a statement assigns to without reading it first."""
    match statement:
        case Assign(targets=targets, op="=" | ":"):
            return targets
        case Loop(target=target) if target is not None:
            return (target,)
        case With(items=items):
            return tuple(target for _, target in items if target is not None)
    return ()


def _target(target: Expression, statement: Statement, guards: tuple[Guard, ...], setting: Setting) -> Iterator[Event]:
    """What evaluating a target runs: of ``table[key]`` the table and the key, but no look-up."""
    match target:
        case Subscript(value=value, indices=indices):
            for each in (value, *indices):
                yield from _expression(each, statement, guards, setting)
        case Collection(items=items):
            for item in items:
                if item is not None:
                    yield from _target(item, statement, guards, setting)
        case _:
            yield from _expression(target, statement, guards, setting)


def _places(target: Expression, value: Expression | None) -> Iterator[tuple[Expression, Expression | None]]:
    """The attributes and items that an assignment changes, each with its part of the value."""
    match target:
        case Subscript():
            yield target, value
        case Ref(roots=roots, path=(_, *_)) if not any(root.endswith(".<locals>.self") for root in roots):
            yield target, value
        case Collection(items=items):
            whole = isinstance(value, Collection) and len(value.items) == len(items)
            for index, item in enumerate(items):
                if item is not None:
                    yield from _places(item, value.items[index] if whole and isinstance(value, Collection) else None)


def _blocks(statement: Statement, guards: tuple[Guard, ...], setting: Setting) -> Iterator[Event]:
    match statement:
        case If(test=test, body=then, orelse=orelse):
            truth = constant_truth(test, setting)
            if truth is not False:
                yield from _body(then, (*guards, Guard("if", test, _leaves(orelse))), setting)
            if truth is not True:
                yield from _body(orelse, (*guards, Guard("else", test, _leaves(then))), setting)
        case Define(body=definitions):
            yield from _body(definitions, guards, setting)
        case _:
            for block in blocks(statement):
                yield from _body(block, guards, setting)


def _leaves(body: tuple[Statement, ...]) -> bool:
    """Whether a branch ends the function or the program: its last statement returns, raises or exits."""
    match body[-1:]:
        case (Leave(kind="return" | "raise" | "continue" | "break"),):
            return True
        case (Do(value=Call(func=Ref(roots=roots, path=path))),):
            return ".".join((roots[0], *path)) in ("sys.exit", "os._exit", "builtins.exit", "builtins.quit")
    return False


def _loaded(statement: Import) -> Iterator[str]:
    """The modules that an import may run: those named, and names that may be submodules."""
    yield from statement.modules
    yield from (name for _, name in statement.names)


def _expression(
    expression: Expression, statement: Statement, guards: tuple[Guard, ...], setting: Setting
) -> Iterator[Event]:
    kind = type(expression)
    if kind is Ref:
        if not setting.properties.isdisjoint(expression.path):  # type: ignore[union-attr]  # narrowed by exact type
            yield Event("read", expression, statement, guards)
        return
    if kind is Constant:
        return
    if isinstance(expression, Comprehension):
        for clause in expression.clauses:
            yield from _expression(clause.source, statement, guards, setting)
            yield from (Event("iterate", each, statement, guards) for each in _iterated(clause.source))
            for test in clause.tests:
                yield from _expression(test, statement, guards, setting)
        for element in expression.elements:
            yield from _expression(element, statement, guards, setting)
        return
    if isinstance(expression, Operation) and expression.op == "if":
        yield from _conditional(expression, statement, guards, setting)
        return
    for part in parts(expression):
        yield from _expression(part, statement, guards, setting)
    if kind is Call:
        yield Event("call", expression, statement, guards)
    elif isinstance(expression, Subscript):
        yield Event("index", expression.value, statement, guards)


_ALONG = frozenset(f"builtins.{word}" for word in ("enumerate", "zip", "list", "tuple", "iter", "reversed"))


def _iterated(source: Expression) -> Iterator[Expression]:
    """What iterating an expression iterates: it, and what ``enumerate`` and its like go along."""
    yield source
    match source:
        case Call(func=Ref(roots=roots, path=()), args=args) if not _ALONG.isdisjoint(roots):
            for arg in args:
                yield from _iterated(arg.value)


def _conditional(
    expression: Operation, statement: Statement, guards: tuple[Guard, ...], setting: Setting
) -> Iterator[Event]:
    test, one, other = expression.operands
    yield from _expression(test, statement, guards, setting)
    yield from _expression(one, statement, (*guards, Guard("if", test)), setting)
    yield from _expression(other, statement, (*guards, Guard("else", test)), setting)
