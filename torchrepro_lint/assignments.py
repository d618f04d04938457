"""Where the variables of a file get their values: the statement, and the part of a value that it binds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from torchrepro_lint.facts import (
    Assign,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Facts,
    Loop,
    Operation,
    Ref,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.small import Small
from torchrepro_lint.walk import expressions, statements, within


class Assignment(Small, frozen=True):
    """A statement that binds a variable, and to what. An element is a ``Subscript``: with its place in an unpacking, and
    without indices for any of them, as in a loop.
    """

    statement: Statement
    value: Expression


Assignments: TypeAlias = dict[str, list[Assignment]]


def assignments(facts: Facts) -> Assignments:
    """What all variables of a file are given, by name (``:f.<locals>.x``), in the order of the text."""
    found: Assignments = {}
    for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
        for statement in statements(body):
            for name, value in _bindings(statement):
                found.setdefault(name, []).append(Assignment(statement, value))
    return found


def set_attributes(facts: Facts) -> Iterator[tuple[Ref, Expression]]:
    """What is set as an attribute of an object other than ``self``: the object, with the attribute, and what it gets."""
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            if isinstance(statement, Assign) and statement.value is not None and statement.op == "=":
                for target in statement.targets:
                    if isinstance(target, Ref) and target.path and not _is_own(target):
                        yield target, statement.value


def _is_own(target: Ref) -> bool:
    """``self.x``, but not ``self.x.y``."""
    return len(target.path) == 1 and any(root.endswith(".self") for root in target.roots)


def _bindings(statement: Statement) -> Iterator[tuple[str, Expression]]:
    match statement:
        case Assign(targets=targets, value=value, op="=" | ":") if value is not None:
            for target in targets:
                yield from _bound(target, value)
        case Loop(target=target, source=source) if target is not None:
            yield from _bound(target, _any_of(source))
        case With(items=items):
            for entered, name in items:
                if name is not None:
                    yield from _bound(name, entered)
    for expression in expressions(statement):
        for each in within(expression):
            if isinstance(each, Comprehension):
                for clause in each.clauses:
                    yield from _bound(clause.target, _any_of(clause.source))
            elif isinstance(each, Operation) and each.op == ":=":
                yield from _bound(each.operands[0], each.operands[1])


def _bound(target: Expression, value: Expression) -> Iterator[tuple[str, Expression]]:
    """The variables that a target binds, each with its part of the value."""
    match target:
        case Ref(roots=roots, path=()):
            yield from ((root, value) for root in roots)
        case Collection(items=items):
            whole = isinstance(value, Collection) and len(value.items) == len(items) and value.kind != "dict"
            starred = any(_is_starred(item) for item in items)
            for index, item in enumerate(items):
                if item is not None and not _is_starred(item):
                    picked = value.items[index] if whole and isinstance(value, Collection) else None
                    yield from _bound(item, picked or (_any_of(value) if starred else _part(value, index)))


def _is_starred(item: Expression | None) -> bool:
    return isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1


def _part(value: Expression, index: int) -> Expression:
    return Subscript(value.start, value.end, value, (Constant(value.end, value.end, index),), value.end)


def _any_of(value: Expression) -> Expression:
    return Subscript(value.start, value.end, value, (), value.end)
